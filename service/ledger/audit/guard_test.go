package audit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/migrations"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

func TestNobodyButTheGuardsRemovalChangesTheAudit(t *testing.T) {
	t.Parallel()
	s := newSealed(t, 2)
	s.seal()
	for _, role := range []string{"app_api", "app_operator", "app_node", "app_worker", "app_owner"} {
		dsn := s.DSN
		if role != "app_owner" {
			var err error
			dsn, err = migrations.RoleDSN(dsn, role)
			require.NoError(t, err)
		}
		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err, role)
		defer func() { _ = conn.Close(context.Background()) }()
		if role == "app_owner" {
			_, err := conn.Exec(t.Context(), `SET ROLE app_owner`)
			require.NoError(t, err)
		}
		for _, table := range []string{"audit_entry", "audit_link", "audit_checkpoint"} {
			column := map[string]string{"audit_entry": "reason = ''", "audit_link": "leaf = ''",
				"audit_checkpoint": "signature = ''"}[table]
			for _, statement := range []string{`UPDATE ` + table + ` SET ` + column, `DELETE
				FROM ` + table, `TRUNCATE ` + table + ` CASCADE`} {
				_, err := conn.Exec(t.Context(), statement)
				var refused *pgconn.PgError
				require.True(t, errors.As(err, &refused), "%s as %s: %v", statement, role, err)
				require.Equal(t, "42501", refused.Code, "%s as %s", statement, role)
			}
		}
	}
	require.Nil(t, s.verify())
}

func TestTheChainIsThePlatformsAlone(t *testing.T) {
	t.Parallel()
	s := newSealed(t, 2)
	s.seal()
	tenant := s.Tenant()
	admin := s.As(s.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	_, err := audit.Chain(admin, s.DB, 0, 10)
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	_, err = audit.Checkpoints(admin, s.DB, 0)
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	operator := s.As(s.Operator())
	for path, ask := range map[string]func() error{
		"first":    func() error { _, err := audit.Chain(operator, s.DB, 0, 501); return err },
		"afterSeq": func() error { _, err := audit.Chain(operator, s.DB, -1, 10); return err },
	} {
		err := ask()
		require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
		require.Equal(t, path, fault.From(err).Reasons[0].Path)
	}
	page, err := audit.Chain(operator, s.DB, 1, 10)
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.WithinDuration(t, time.Now(), page[0].SealedAt, patience)
}
