package identity_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/posix"
)

func TestWhoSeesAnIdentity(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	project, elsewhere := b.Project(tenant), b.Project(other)
	person := b.User(tenant, platformtest.In(authz.ProjectMember, project))
	account, key := b.ServiceAccount(project, authz.AppsQueueRead)
	give := func(as context.Context) *posix.Identity {
		var given *posix.Identity
		require.NoError(t, b.Kit.DB.Write(as, func(ctx context.Context, t *tx.Tx) (err error) {
			given, err = posix.Own(ctx, t, tenant.ID)
			return err
		}))
		return given
	}
	hers, its := give(b.As(person)), give(b.With(key))
	require.Equal(t, []int{1000, 1001}, []int{hers.UID, its.GID})

	all := map[ids.ID]*posix.Identity{person.ID: hers, account.ID: its}
	herOwn := map[ids.ID]*posix.Identity{person.ID: hers}
	itsOwn := map[ids.ID]*posix.Identity{account.ID: its}
	none := map[ids.ID]*posix.Identity{}
	for who, one := range map[string]struct {
		as   context.Context
		sees map[ids.ID]*posix.Identity
	}{
		"herself":                    {b.As(person), herOwn},
		"the account":                {b.With(key), itsOwn},
		"the tenant's admin":         {b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), all},
		"the project's admin":        {b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project))), itsOwn},
		"the platform's operator":    {b.As(b.Operator()), all},
		"another tenant's admin":     {b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other))), none},
		"a person without a role":    {b.As(b.User(tenant)), none},
		"another tenant's own robot": {b.With(second(b.ServiceAccount(elsewhere, authz.ServiceAccountRead))), none},
	} {
		seen, err := b.PosixOf(one.as, []ids.ID{person.ID, account.ID})
		require.NoError(t, err, who)
		require.Equal(t, one.sees, seen, who)
	}
}

// The database itself shows another tenant nothing, whatever the statement.
func TestRowsOfIdentitiesAreTheirTenants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	person := b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))
	stranger := b.User(other, platformtest.Across(authz.TenantAdmin, other))
	rows := func(as context.Context, want int, statement string) {
		require.NoError(t, b.Kit.DB.Write(as, func(ctx context.Context, tx *tx.Tx) error {
			found, err := tx.Exec(ctx, statement)
			require.EqualValues(t, want, found.RowsAffected())
			return err
		}))
	}
	require.NoError(t, b.Kit.DB.Write(b.As(person), func(ctx context.Context, t *tx.Tx) error {
		_, err := posix.Own(ctx, t, tenant.ID)
		return err
	}))
	rows(b.As(person), 1, `SELECT FROM posix_identity`)
	rows(b.As(stranger), 0, `SELECT FROM posix_identity`)
	for _, statement := range []string{`INSERT INTO posix_identity VALUES ('t', 's', 'n', 1000)`,
		`UPDATE posix_identity SET name = 'root'`, `DELETE FROM posix_identity`} {
		err := b.Kit.DB.Write(b.As(person), func(ctx context.Context, t *tx.Tx) error {
			_, err := t.Exec(ctx, statement)
			return err
		})
		require.ErrorContains(t, err, "permission denied for table posix_identity", statement)
	}
}

func second[A, B any](_ A, b B) B { return b }
