package frozen_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/migrations"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/reference/frozen"
)

// walled are the tables that the frozen handlers read.
var walled = []string{"instance", "member", "operation", "operation_step", "app_instance_event"}

func TestTheFrozenScopeHidesOtherTenantsRows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	set, err := dataset.Open(ctx, dataset.Config{Dir: t.TempDir(), Size: dataset.Tiny, Log: slog.New(slog.DiscardHandler),
		Profile: postgres.Throwaway})
	require.NoError(t, err)
	defer set.Close()
	callers, err := set.Callers(ctx, 2)
	require.NoError(t, err)
	require.NotEqual(t, callers[0].Number/set.Size.Projects, callers[1].Number/set.Size.Projects, "two tenants")
	address, err := migrations.RoleDSN(set.DSN, frozen.Login)
	require.NoError(t, err)
	conn, err := pgx.Connect(ctx, address)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, table := range walled {
		require.Zero(t, count(t, conn, table, ""), "%s, to a connection that has not entered", table)
	}
	for _, who := range callers {
		tenant := string(set.Tenant(who))
		inside(t, conn, who, func() {
			for _, table := range walled {
				require.Positive(t, count(t, conn, table, tenant), "%s of the caller's tenant", table)
				require.Equal(t, count(t, conn, table, tenant), count(t, conn, table, ""), "%s of other tenants", table)
			}
			changed, err := conn.Exec(ctx, `UPDATE instance SET repair_stopped = 'x' WHERE tenant_id <> $1`, tenant)
			require.NoError(t, err)
			require.Zero(t, changed.RowsAffected(), "rows of other tenants")
			forged := strings.Repeat("0", 32) + string(set.Tenant(callers[0])) + "," + string(set.Tenant(callers[1]))
			_, err = conn.Exec(ctx, `SELECT set_config('app.tenants', $1, true)`, forged)
			require.NoError(t, err)
			require.Equal(t, count(t, conn, "instance", tenant), count(t, conn, "instance", ""),
				"by a setting whose seal is none")
		})
	}
	inside(t, conn, callers[0], func() {
		secret, err := token.ParseSecret(callers[1].Token)
		require.NoError(t, err)
		_, err = conn.Exec(ctx, `SELECT frozen.enter('session', $1, $2)`, string(secret.ID), secret.Hash)
		require.ErrorContains(t, err, "the caller of a transaction is set once")
	})
}

// inside runs do in a transaction that the caller has entered, and rolls it back.
func inside(t *testing.T, conn *pgx.Conn, who dataset.Caller, do func()) {
	secret, err := token.ParseSecret(who.Token)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `BEGIN`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SELECT frozen.enter('session', $1, $2)`, string(secret.ID), secret.Hash)
	require.NoError(t, err)
	do()
	_, err = conn.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
}

// count returns the rows of a table that the connection sees, of one tenant or of all.
func count(t *testing.T, conn *pgx.Conn, table, tenant string) (n int) {
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize()+
		` WHERE $1 = '' OR tenant_id = $1`, tenant).Scan(&n))
	return n
}
