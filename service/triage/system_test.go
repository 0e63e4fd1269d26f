package triage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/triage"
)

// What a tenant's people would mend is the operator's, where the operator runs the app.
func TestTheOwnerOfASystemAppsTroubleIsThePlatform(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(4)
	_, manifest := kit.Launchable(project, "apps")
	instance := kit.Instance(project, manifest, lifecycle.InstanceRunning, kit.Allocation(project, node))
	op := kit.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationFailed)
	kit.SQL(`UPDATE operation SET error_code = 'CONFIG_INVALID', error_owner = 'user' WHERE id = $1`, op.ID)
	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	for system, owner := range map[bool]string{false: "user", true: "platform"} {
		kit.SQL(`UPDATE instance SET system = $1`, system)
		report, err := service.Report(admin, string(op.ID))
		require.NoError(t, err)
		require.Equal(t, lifecycle.TriageFailed, report.Stands)
		require.Equal(t, owner, report.Owner)
	}
}
