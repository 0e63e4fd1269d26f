package triage_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/triage"
	"github.com/gpuaas/app-platform/service/triage/links"
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
		require.True(t, has(report, lifecycle.EvidenceOfAudit))

		_, err = service.Report(stranger, about)
		require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	}
	// Who may read the operation alone does not get the audit.
	_, reader := kit.ServiceAccount(project, authz.OperationRead)
	report, err := service.Report(kit.With(reader), string(op.ID))
	require.NoError(t, err)
	require.Equal(t, "NO_WORKER", report.Code)
	require.False(t, has(report, lifecycle.EvidenceOfAudit))
	_, lacking := kit.ServiceAccount(project, authz.TaskRead)
	_, err = service.Report(kit.With(lacking), string(op.ID))
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	_, err = service.Report(admin, "nothing-of-this-name")
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	_, err = service.Report(admin, "")
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
}

func has(report *triage.Report, kind lifecycle.TriageEvidenceKind) bool {
	return slices.ContainsFunc(report.Evidence, func(e *triage.Evidence) bool { return e.Kind == kind })
}

// For an instance whose newest operation succeeded, only a report by the instance's id names what is wrong since.
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

// The dead member of an instance explains what an app could not do on it, also to the caller that made the request.
func TestARefusalByTheAppHasTheInstancesCause(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(4)
	_, manifest := kit.Launchable(project, "apps")
	instance := kit.Instance(project, manifest, lifecycle.InstanceRunning, kit.Allocation(project, node))
	kit.SQL(`UPDATE member SET status = 'FAILED' WHERE instance_id = $1`, instance.ID)
	var member ids.ID
	require.NoError(t, kit.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1`, instance.ID).
		Scan((*string)(&member)))
	account, credential := kit.ServiceAccount(project, authz.AppsInstanceRead, authz.AppsMemberRecover, authz.TaskRead)
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed,
		object_id,
		correlation_id, created_at) VALUES ($1, $2, $3, 'SERVICE_ACCOUNT', $4, 'apps.queue.submit', 'invokeAction', true, $5,
		'cor-recorded', now())`, ids.New(ids.Audit), tenant.ID, project.ID, account.ID, instance.ID)
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed,
		object_id,
		correlation_id, created_at) VALUES ($1, $2, $3, 'OPERATION', $4, 'task.run', 'runNodeTask', true, 'tsk_of_the_app',
		'cor-recorded', now())`, ids.New(ids.Audit), tenant.ID, project.ID, instance.ID)
	attempt := func(code, correlation string) {
		kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action,
			allowed, code,
			object_id, correlation_id, created_at) VALUES ($1, $2, $3, 'SERVICE_ACCOUNT', $4, 'apps.queue.submit', 'invokeAction',
			false, $5, $6, $7, now())`, ids.New(ids.Audit), tenant.ID, project.ID, account.ID, code, instance.ID,
			correlation)
	}
	attempt("ADAPTER_REJECTED", "cor-acted")
	attempt("CONFIG_INVALID", "cor-mistaken")
	task := ids.New(ids.NodeTask)
	kit.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec, spec_digest,
		state,
		timeout_seconds, idempotency_key, correlation_id, created_at, ended_at) VALUES ($1, $2, $3, $4, $5, $6, 'RUN', '{}', '',
		'FAILED', 60, 'x', 'cor-acted', now(), now())`, task, tenant.ID, project.ID, instance.ID, member, node.ID)

	report, err := service.Report(kit.With(credential), "cor-acted")
	require.NoError(t, err)
	require.Equal(t, lifecycle.TriageRefused, report.Stands)
	require.Equal(t, "MEMBER_FAILED", report.Code)
	require.Equal(t, instance.ID, *report.InstanceID)
	require.Equal(t, "recoverMember", report.Next.Mutation)
	require.Equal(t, member, report.Next.Value)
	require.True(t, report.Next.Allowed)
	require.Contains(t, string(report.Next.Variables), "MEMBER_FAILED at invokeAction, correlation id cor-acted")
	found := slices.IndexFunc(report.Evidence, func(e *triage.Evidence) bool {
		return e.Kind == lifecycle.EvidenceOfTask
	})
	require.GreaterOrEqual(t, found, 0)
	require.Equal(t, task, *report.Evidence[found].ID)

	report, err = service.Report(kit.With(credential), "cor-recorded")
	require.NoError(t, err)
	require.Equal(t, lifecycle.TriageAccepted, report.Stands, "nothing of it is known to have failed")
	require.Nil(t, report.Next)
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed,
		code,
		object_id, correlation_id, created_at) VALUES ($1, $2, $3, 'SERVICE_ACCOUNT', $4, 'apps.queue.submit', 'invokeAction',
		true, 'ADAPTER_FAILED', $5, 'cor-recorded',
		now())`, ids.New(ids.Audit), tenant.ID, project.ID, account.ID, instance.ID)
	report, err = service.Report(kit.With(credential), "cor-recorded")
	require.NoError(t, err)
	require.Equal(t, lifecycle.TriageFailed, report.Stands)
	require.Equal(t, "recoverMember", report.Next.Mutation)

	report, err = service.Report(kit.With(credential), "cor-mistaken")
	require.NoError(t, err)
	require.Equal(t, "CONFIG_INVALID", report.Code, "what the caller got wrong is not the member's doing")
	require.Nil(t, report.Next)
	_, err = service.Bundle(kit.With(credential), "cor-mistaken")
	require.NoError(t, err)
	require.Equal(t, 1, kit.Count("audit_entry", `action = 'supportBundle' AND allowed AND permission_key = 'audit.read' AND actor_id = $1
		AND object_id = (SELECT id FROM audit_entry WHERE correlation_id = 'cor-mistaken')`, account.ID),
		"a bundle of a request that made no operation is noted at the request's entry")

	_, other := kit.ServiceAccount(project, authz.AppsInstanceRead)
	_, err = service.Report(kit.With(other), "cor-acted")
	require.True(t, fault.Is(err, fault.Forbidden), "the request is another's: %v", err)

	limited, within := kit.ServiceAccount(project, authz.AppsInstanceRead, authz.AuditRead)
	kit.SQL(`UPDATE service_account SET limits = jsonb_build_object('objectIds', jsonb_build_array($2::text))
		WHERE id = $1`,
		limited.ID, instance.ID)
	_, err = service.Report(kit.With(within), "cor-acted")
	require.True(t, fault.Is(err, fault.Forbidden), "limited to the instance, it reads no audit: %v", err)
}

// A request that was refused created no operation: the audit has it, and only its readers get it.
func TestARefusalIsReportedFromTheAudit(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed,
		code,
		correlation_id, created_at) VALUES ($1, $2, $3, 'USER', 'usr_1', 'apps.instance.create', 'launchInstance', false,
		'NOT_ENTITLED', 'cor-refused', now())`, ids.New(ids.Audit), tenant.ID, project.ID)
	report, err := service.Report(kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))),
		"cor-refused")
	require.NoError(t, err)
	require.Equal(t, lifecycle.TriageRefused, report.Stands)
	require.Equal(t, "catalog/start/not-entitled", report.Branch.Ref())
	require.Equal(t, "launchInstance", report.Asked)

	account, credential := kit.ServiceAccount(project, authz.OperationRead)
	require.NotEmpty(t, account.ID)
	_, err = service.Report(kit.With(credential), "cor-refused")
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
}

// Whatever an instance consists of leads to its report: a member, an allocation, a task, an event, an entry of the
// audit.
func TestAReportIsFoundByWhatAnInstanceConsistsOf(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB,
		Links: links.Templates{Logs: "https://tools.example.com/?id={correlation_id}"}}
	tenant, other := kit.Tenant(), kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(4)
	_, manifest := kit.Launchable(project, "apps")
	allocation := kit.Allocation(project, node)
	instance := kit.Instance(project, manifest, lifecycle.InstanceRunning, allocation)
	op := kit.Operation(instance, lifecycle.MembersAdd, lifecycle.OperationPending)
	kit.SQL(`UPDATE member SET last_operation_id = $2 WHERE instance_id = $1`, instance.ID, op.ID)
	kit.SQL(`UPDATE instance SET last_operation_id = $2 WHERE id = $1`, instance.ID, op.ID)
	kit.SQL(`UPDATE allocation SET instance_id = $2 WHERE id = $1`, allocation.ID, instance.ID)
	var member ids.ID
	require.NoError(t, kit.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1`, instance.ID).
		Scan((*string)(&member)))
	task, entry, happening := ids.New(ids.NodeTask), ids.New(ids.Audit), ids.New(ids.Event)
	kit.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id, kind,
		spec,
		spec_digest, state, timeout_seconds, idempotency_key, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 'RUN', '{}', '',
		'PENDING', 60, 'x', now())`, task, tenant.ID, project.ID, instance.ID, member, node.ID, op.ID)
	kit.SQL(`INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug,
		permission_family,
		operation_id, correlation_id, occurred_at) VALUES ($1, $2, $3, $4, 900, 'apps.instance.progress', 'x', 'apps', $5, $6,
		now())`, happening, tenant.ID, project.ID, instance.ID, op.ID, op.CorrelationID)
	kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed,
		object_id, correlation_id, created_at) VALUES ($1, $2, $3, 'USER', 'usr_1', 'apps.member.add', 'addMembers', true,
		$4, $5, now())`, entry, tenant.ID, project.ID, instance.ID, op.CorrelationID)
	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	stranger := kit.As(kit.User(other, platformtest.Across(authz.TenantAdmin, other)))
	for _, about := range []ids.ID{op.ID, instance.ID, member, allocation.ID, task, entry, happening} {
		report, err := service.Report(admin, string(about))
		require.NoError(t, err, about)
		require.Equal(t, op.ID, *report.OperationID, about)
		require.Empty(t, report.Others, about)
		require.Equal(t, []links.Link{{Name: "logs", URL: "https://tools.example.com/?id=" + op.CorrelationID}},
			report.Links)
		for _, kind := range []lifecycle.TriageEvidenceKind{lifecycle.EvidenceOfTask, lifecycle.EvidenceOfEvent,
			lifecycle.EvidenceOfAudit, lifecycle.EvidenceOfBlocker, lifecycle.EvidenceOfTrace,
			lifecycle.EvidenceOfLogs} {
			require.True(t, has(report, kind), "%s %s", about, kind)
		}
		_, err = service.Report(stranger, string(about))
		require.True(t, fault.Is(err, fault.NotFound), "%s %v", about, err)
		_, err = service.Bundle(stranger, string(about))
		require.True(t, fault.Is(err, fault.NotFound), "%s %v", about, err)
	}
}

// A correlation id that a caller sent with several requests leads to the newest, and names the others.
func TestACorrelationIdOfSeveralRequestsNamesThemAll(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(4)
	_, manifest := kit.Launchable(project, "apps")
	instance := kit.Instance(project, manifest, lifecycle.InstanceRunning, kit.Allocation(project, node))
	var all []ids.ID
	for range 3 {
		op := kit.Operation(instance, lifecycle.MembersAdd, lifecycle.OperationSucceeded)
		all = append(all, op.ID)
		kit.SQL(`UPDATE operation SET correlation_id = 'mine' WHERE id = $1`, op.ID)
		kit.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action,
			allowed,
			object_id, correlation_id, created_at) VALUES ($1, $2, $3, 'USER', 'usr_1', 'apps.member.add', 'addMembers', true,
			$4, 'mine', now())`, ids.New(ids.Audit), tenant.ID, project.ID, instance.ID)
	}
	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	report, err := service.Report(admin, "mine")
	require.NoError(t, err)
	require.Equal(t, all[2], *report.OperationID)
	require.Equal(t, []ids.ID{all[1], all[0]}, []ids.ID{report.Others[0].OperationID, report.Others[1].OperationID})
	report, err = service.Report(admin, string(all[0]))
	require.NoError(t, err)
	require.Equal(t, all[0], *report.OperationID, "an operation's own id means that one")
	require.Len(t, report.Others, 2)
}

// An allocation that no instance uses has a timeline of its own, and the report of its release has that.
func TestTheReportOfAReleaseHasTheAllocationsOwnTimeline(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &triage.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(4)
	allocation := kit.Allocation(project, node)
	op := ids.New(ids.Operation)
	kit.SQL(`INSERT INTO operation (id, tenant_id, project_id, allocation_id, kind, state, requester_kind, requester_id,
		correlation_id, error_code, error_owner, next_run_at, deadline, created_at, ended_at) VALUES ($1, $2, $3, $4, 'ALLOCATION_RELEASE', 'FAILED', 'USER',
		'usr_1', 'cor', 'RESIDUE_LEFT', 'node', now(), now(), now(), now())`, op, tenant.ID, project.ID, allocation.ID)
	kit.SQL(`UPDATE allocation SET release_operation_id = $2 WHERE id = $1`, allocation.ID, op)
	kit.SQL(`INSERT INTO app_instance_event (id, tenant_id, project_id, allocation_id, seq, type, app_slug,
		permission_family,
		operation_id, correlation_id, occurred_at) VALUES ($1, $2, $3, $4, 1, 'apps.allocation.releasing', '', 'allocation', $5, 'cor',
		now())`,
		ids.New(ids.Event), tenant.ID, project.ID, allocation.ID, op)
	report, err := service.Report(kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))),
		string(allocation.ID))
	require.NoError(t, err)
	require.Equal(t, op, *report.OperationID)
	require.Equal(t, "releaseAllocation", report.Next.Mutation)
	require.True(t, has(report, lifecycle.EvidenceOfEvent))
}
