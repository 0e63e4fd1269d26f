package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestReportsAndRenewalsByTheWrongTokenAreAudited(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	node, _ := kit.Node(1)
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	first := kit.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	second := kit.Operation(instance, lifecycle.MembersAdd, lifecycle.OperationRunning)
	token := kit.OperationToken(second, authz.OperationReport)

	_, err := operation.Report(kit.With(token), kit.DB, operation.ReportInput{OperationID: first.ID, Attempt: 1})
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	admin := kit.User(nil, platformtest.In(authz.ProjectAdmin, project))
	_, err = operation.RenewToken(kit.As(admin), kit.DB, kit.Ring)
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	denied := map[string]string{}
	for _, entry := range kit.Audit() {
		require.False(t, entry.Allowed)
		require.Equal(t, "FORBIDDEN", entry.Code)
		denied[entry.Action] = entry.PermissionKey
	}
	require.Equal(t, map[string]string{"reportOperation": "operation.report",
		"renewOperationToken": "operation.report"},
		denied)
}
