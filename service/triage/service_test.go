package triage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/triage"
)

// With no worker alive, each of the ids finds the same report, for its readers alone.
func TestAReportIsFoundByEachIdAndNeedsNoWorker(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant, other := kit.Tenant(), kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(4)
	_, manifest := kit.Launchable(project, "apps")
	instance := kit.Instance(project, manifest, lifecycle.InstanceRunning, kit.Allocation(project, node))
	op := kit.Operation(instance, lifecycle.InstanceDecommission, lifecycle.OperationPending)
	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	stranger := kit.As(kit.User(other, platformtest.Across(authz.TenantAdmin, other)))
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed,
		object_id, correlation_id, created_at) VALUES ($1, $2, $3, 'USER', 'usr_1', 'apps.instance.delete', 'decommissionInstance', true,
		$4, $5, now())`, ids.New(ids.Audit), tenant.ID, project.ID, instance.ID, op.CorrelationID)
	for _, about := range []string{string(op.ID), string(instance.ID), op.CorrelationID} {
		report, err := service.Report(admin, about)
		require.NoError(t, err, about)
		require.Equal(t, op.ID, *report.OperationID)
		require.Equal(t, lifecycle.TriageBlocked, report.Stands)
		require.Equal(t, "NO_WORKER", report.Code)
		require.Equal(t, "operator/no-worker", report.Branch.Ref())
		require.Equal(t, lifecycle.EvidenceOfAudit, report.Evidence[len(report.Evidence)-1].Kind)

		_, err = service.Report(stranger, about)
		require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	}
	// Who may read the operation alone does not get the audit.
	_, reader := kit.ServiceAccount(project, authz.OperationRead)
	report, err := service.Report(kit.With(reader), string(op.ID))
	require.NoError(t, err)
	require.Equal(t, "NO_WORKER", report.Code)
	for _, one := range report.Evidence {
		require.NotEqual(t, lifecycle.EvidenceOfAudit, one.Kind)
	}
	_, lacking := kit.ServiceAccount(project, authz.TaskRead)
	_, err = service.Report(kit.With(lacking), string(op.ID))
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	_, err = service.Report(admin, "nothing-of-this-name")
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	_, err = service.Report(admin, "")
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
}

// Of an instance whose newest operation succeeded, what is wrong since is told by the instance's id alone.
func TestAnInstanceThatIsUnwellSinceItsOperationSaysWhy(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(4)
	_, manifest := kit.Launchable(project, "apps")
	instance := kit.Instance(project, manifest, lifecycle.InstanceRunning, kit.Allocation(project, node))
	op := kit.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	kit.SQL(`UPDATE compute_node SET last_seen_at = now() - interval '1 hour' WHERE id = $1`, node.ID)
	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	report, err := service.Report(admin, string(instance.ID))
	require.NoError(t, err)
	require.Equal(t, lifecycle.TriageUnwell, report.Stands)
	require.Equal(t, "NODE_OFFLINE", report.Code)
	require.Equal(t, "operator/node-is-offline", report.Branch.Ref())
	report, err = service.Report(admin, string(op.ID))
	require.NoError(t, err)
	require.Equal(t, lifecycle.TriageDone, report.Stands)
}

// A request that was refused made no operation: the audit has it, and only its readers get it.
func TestARefusalIsReportedFromTheAudit(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed, code,
		correlation_id, created_at) VALUES ($1, $2, $3, 'USER', 'usr_1', 'apps.instance.create', 'launchInstance', false,
		'NOT_ENTITLED', 'cor-refused', now())`, ids.New(ids.Audit), tenant.ID, project.ID)
	report, err := service.Report(kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), "cor-refused")
	require.NoError(t, err)
	require.Equal(t, lifecycle.TriageRefused, report.Stands)
	require.Equal(t, "catalog/start/not-entitled", report.Branch.Ref())
	require.Equal(t, "launchInstance", report.Asked)

	account, credential := kit.ServiceAccount(project, authz.OperationRead)
	require.NotEmpty(t, account.ID)
	_, err = service.Report(kit.With(credential), "cor-refused")
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
}
