package platformtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestFixturesAreSeenByTheirTenantAlone(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant, other := kit.Tenant(), kit.Tenant()
	project, theirs := kit.Project(tenant), kit.Project(other)
	_, stored := kit.Launchable(project, "apps")
	node, credential := kit.Node(2)
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	operation := kit.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)

	count := func(credential string) (n int) {
		read := tx.Query{SQL: `SELECT (SELECT count(*) FROM instance) + (SELECT count(*) FROM member)`,
			Scan: func(rows pgx.Rows) error {
				counted, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
				n = counted
				return err
			}}
		_, err := kit.DB.Read(kit.With(credential), read)
		require.NoError(t, err)
		return n
	}
	_, key := kit.ServiceAccount(project, authz.AppsInstanceRead)
	require.Equal(t, 2, count(kit.Session(kit.User(tenant, platformtest.In(authz.ProjectViewer, project)))))
	require.Equal(t, 2, count(kit.Session(kit.Operator())))
	require.Equal(t, 2, count(key))
	require.Equal(t, 2, count(kit.OperationToken(operation, authz.AppsInstanceRead)))
	require.Zero(t, count(kit.Session(kit.User(other, platformtest.In(authz.ProjectAdmin, theirs),
		platformtest.Across(authz.TenantAdmin, other)))))

	actor, err := kit.DB.Read(kit.With(credential))
	require.NoError(t, err)
	require.Equal(t, node.ID, actor.NodeID)
	_, err = kit.DB.Read(t.Context())
	require.True(t, fault.Is(err, fault.Unauthenticated))
	require.Equal(t, 1, kit.Count("operation", "state = $1", "RUNNING"))
}
