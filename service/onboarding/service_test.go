package onboarding_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	baseline "github.com/gpuaas/app-platform/domain/onboarding"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/onboarding"
)

// mutants are what the database would hold of an app that breaks one condition.
var mutants = []struct {
	of   baseline.Condition
	to   baseline.Verdict
	says string
	sql  string // $1 is the instance
}{
	{baseline.ContractsOnly, baseline.Failed, "without a recorded call",
		`DELETE FROM audit_entry WHERE action = 'runNodeTask'
			AND object_id IN (SELECT id FROM node_task WHERE instance_id = $1)`},
	{baseline.ContractsOnly, baseline.Failed, "1 row without a recorded call",
		`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id, kind, spec, spec_digest,
			state, timeout_seconds, idempotency_key, created_at) SELECT 'tsk_hidden', tenant_id, project_id, instance_id, member_id,
			node_id, operation_id, kind, spec, spec_digest, state, 1, 'hidden', now() FROM node_task
			WHERE instance_id = $1 LIMIT 1`},
	{baseline.ContractsOnly, baseline.Failed, "made 1 call that its tokens do not permit",
		`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, permission_key, action, allowed, code,
			object_id, correlation_id, created_at) SELECT 'aud_no', tenant_id, project_id, 'OPERATION', id, 'x', 'runNodeTask',
			false, 'FORBIDDEN', '', '', now() FROM operation WHERE instance_id = $1 LIMIT 1`},
	{baseline.ContractsOnly, baseline.Failed, "1 instance in projects that are not entitled",
		`DELETE FROM entitlement WHERE project_id = (SELECT project_id FROM instance WHERE id = $1)`},
	{baseline.ServiceAccount, baseline.Failed, "only people", `UPDATE audit_entry SET actor_kind = 'USER'
		WHERE actor_kind = 'SERVICE_ACCOUNT' AND project_id = (SELECT project_id FROM instance WHERE id = $1)`},
	{baseline.TenantBoundary, baseline.Failed, "no registered runner", `UPDATE promotion_evidence SET runner_id = ''
		WHERE kind = 'TENANCY' AND manifest_id = (SELECT manifest_id FROM instance WHERE id = $1)`},
	{baseline.TenantBoundary, baseline.NotKnown, `build "b1"`, `DELETE FROM promotion_evidence
		WHERE kind = 'TENANCY' AND manifest_id = (SELECT manifest_id FROM instance WHERE id = $1)`},
	{baseline.LifecycleEvents, baseline.Failed, "1 required event", `UPDATE app_instance_event SET correlation_id = ''
		WHERE instance_id = $1 AND type = 'apps.instance.running'`},
	{baseline.LifecycleEvents, baseline.Failed, "1 required event", `UPDATE app_instance_event SET app_slug = 'another'
		WHERE instance_id = $1 AND type = 'apps.instance.deleted'`},
	{baseline.LifecycleEvents, baseline.Failed, "1 required event", `DELETE FROM app_instance_event
		WHERE instance_id = $1 AND type = 'apps.instance.deleting'`},
	{baseline.ArtifactSources, baseline.Failed, "1 artifact", `UPDATE artifact SET source_id = NULL WHERE id IN (
		SELECT artifact_id FROM manifest_artifact WHERE manifest_id = (SELECT manifest_id FROM instance
		WHERE id = $1))`},
	{baseline.LifecycleWalked, baseline.NotKnown, "upgrade", `DELETE FROM operation WHERE instance_id = $1
		AND kind = 'INSTANCE_UPGRADE'`},
	{baseline.LifecycleWalked, baseline.Failed, "upgrade", `UPDATE operation SET state = 'FAILED'
		WHERE instance_id = $1 AND kind = 'INSTANCE_UPGRADE'`},
	{baseline.SupportRunbook, baseline.Failed, "correlation id", `UPDATE manifest SET document = convert_to(replace(
		convert_from(document, 'UTF8'), '"by":"correlation_id"', '"by":"log"'), 'UTF8') WHERE id = (
		SELECT manifest_id FROM instance WHERE id = $1)`},
}

func TestAVersionIsReadyByWhatWasRecordedAndEachMutantFailsItsCondition(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	report := b.read(b.publisher)
	require.True(t, report.Passed, "%v", verdicts(report.Checks))
	require.Equal(t, lifecycle.StageCanary, report.Stage)
	require.Len(t, report.Checks, 7)
	for _, check := range report.Checks {
		require.NotEmpty(t, check.Evidence, check.Condition)
		require.True(t, check.At != nil || check.Condition == baseline.SupportRunbook, check.Condition)
	}
	failed := map[baseline.Condition]bool{}
	for i, mutant := range mutants {
		t.Run(fmt.Sprintf("%02d %s", i, mutant.of), func(t *testing.T) {
			m := newBench(t)
			m.SQL(`SET session_replication_role = replica`) // past every guard, as a hand in the database is
			m.SQL(mutant.sql, m.instance.ID)
			checks := m.read(m.operator).Checks
			require.Equal(t, []baseline.Condition{mutant.of}, baseline.Lacking(checks))
			require.Equal(t, mutant.to, verdicts(checks)[mutant.of])
			for _, one := range checks {
				if one.Condition == mutant.of {
					require.Contains(t, one.Message, mutant.says)
				}
			}
		})
		failed[mutant.of] = failed[mutant.of] || mutant.to == baseline.Failed
	}
	require.Len(t, failed, len(baseline.Conditions()))
	for of, did := range failed {
		require.True(t, did, of)
	}
}

func TestReportsOfOneKindDoNotHideThoseOfTheOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`INSERT INTO promotion_evidence (id, manifest_id, tenant_id, kind, digest, report, summary, passed, runner_id,
		created_at)
		SELECT $1 || lpad(n::text, 2, '0'), manifest_id, tenant_id, kind, 'again ' || n, report, summary, passed, runner_id,
		now() FROM promotion_evidence, generate_series(1, 12) n WHERE kind = 'CONFORMANCE' AND manifest_id = $2`,
		ids.New(ids.Evidence)[:28], b.manifest.ID)
	require.True(t, b.read(b.publisher).Passed, "the tenancy report is older than twelve of the other kind")
}

func TestACheckIsKeptAndWhatFailedIsNotedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := onboarding.CheckInput{AppSlug: b.app.Slug, Version: "1.1.0", Reason: "for the release"}
	first, err := b.verbs.Check(b.publisher, in)
	require.NoError(t, err)
	require.True(t, first.Passed)
	require.Zero(t, b.Count("gap", ""))
	b.SQL(`UPDATE promotion_evidence SET runner_id = ''`)
	b.SQL(`UPDATE artifact SET quarantined_at = now(), quarantine_reason = 'leaked'`)
	for range 2 {
		second, err := b.verbs.Check(b.publisher, in)
		require.NoError(t, err)
		require.False(t, second.Passed)
		var noted []baseline.Condition
		for _, check := range second.Checks {
			if check.GapID != nil {
				noted = append(noted, check.Condition)
				require.Equal(t, 1, b.Count("gap", "id = $1 AND condition = $2 AND manifest_id = $3 AND state = 'OPEN'",
					*check.GapID, string(check.Condition), b.manifest.ID))
			}
		}
		require.Equal(t, []baseline.Condition{baseline.TenantBoundary, baseline.ArtifactSources}, noted,
			"what is not known is no gap")
	}
	require.Equal(t, 2, b.Count("gap", "project_id = $1 AND raiser_id = $2", b.project.ID, b.robot.ID))
	report := b.read(b.publisher)
	require.Len(t, report.Records, 3)
	require.True(t, report.Records[2].Passed)
	require.Equal(t, "for the release", report.Records[0].Reason)
	require.Equal(t, string(b.robot.ID), report.Records[0].CheckedBy.ID)
	entries := map[string]int{}
	for _, entry := range b.Audit() {
		entries[entry.Action]++
	}
	require.Equal(t, 3, entries["checkAppOnboarding"])
	require.Equal(t, 2, entries["raiseGap"])
	for range onboarding.MaxRecords {
		_, err := b.verbs.Check(b.publisher, in)
		require.NoError(t, err)
	}
	require.Equal(t, onboarding.MaxRecords, b.Count("onboarding_record", ""), "the newest are kept")
}

func TestACheckIsThePublishersAndTheStaffsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := onboarding.CheckInput{AppSlug: b.app.Slug}
	tenant := b.Tenant()
	other := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	_, err := b.verbs.Read(other, b.app.Slug, "")
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.Check(other, in)
	platformtest.Refused(t, err, fault.NotFound)
	viewer := b.As(b.User(&db.Tenant{ID: b.project.TenantID}, platformtest.In(authz.ProjectViewer, b.project)))
	require.True(t, b.read(viewer).Passed)
	for _, check := range b.read(viewer).Checks {
		for _, one := range check.Evidence {
			require.False(t, one.ID != nil && strings.HasPrefix(string(*one.ID), "aud_"),
				"audit.read is wanted for entries")
		}
	}
	_, err = b.verbs.Check(viewer, in)
	platformtest.Refused(t, err, fault.Forbidden)
	require.Zero(t, b.Count("onboarding_record", ""))

	_, err = b.verbs.Read(b.operator, "nothing", "")
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.Check(b.operator, onboarding.CheckInput{AppSlug: b.app.Slug, Version: "9.9.9"})
	platformtest.Refused(t, err, fault.NotFound, "input.appSlug")
	_, err = b.verbs.Check(b.operator, onboarding.CheckInput{AppSlug: b.app.Slug, Reason: strings.Repeat("x", 2000)})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.reason")

	staff := b.As(b.User(nil, platformtest.OnPlatform(authz.AppPublisher)))
	seen := b.read(staff)
	require.True(t, seen.Passed, "the verdict is the same for all who may ask")
	for _, check := range seen.Checks {
		for _, one := range check.Evidence {
			require.False(t, one.ID != nil && one.ID.Is("ins"), "whose instances they are is not the role's to see")
		}
	}
}

// What others run is not a publisher's to see, and decides nothing.
func TestInstancesOfOtherTenantsAreNotLookedAt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	elsewhere := b.Project(b.Tenant())
	stray := b.Instance(elsewhere, b.manifest, lifecycle.InstanceRunning)
	b.SQL(`INSERT INTO instance_generation (id, tenant_id, project_id, instance_id, number, manifest_id, app_version,
		created_at)
		VALUES ('gen_stray', $1, $2, $3, 1, $4, '1.1.0',
		now())`, elsewhere.TenantID, elsewhere.ID, stray.ID, b.manifest.ID)
	require.True(t, b.read(b.operator).Passed)
	require.True(t, b.read(b.publisher).Passed)
	b.SQL(`UPDATE app SET publisher_tenant_id = NULL, publisher_project_id = NULL`)
	require.Equal(t, []baseline.Condition{baseline.ContractsOnly, baseline.LifecycleEvents},
		baseline.Lacking(b.read(b.operator).Checks),
		"of the platform's apps all are: this one was never entitled, and has no timeline")
}

// Where only people publish and launch, the account that the adapter or an instance acts by is the one.
func TestAnAccountThatWasNamedActsForTheVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`SET session_replication_role = replica`) // the audit is append only
	b.SQL(`UPDATE audit_entry SET actor_kind = 'USER' WHERE actor_kind = 'SERVICE_ACCOUNT'`)
	require.Equal(t, baseline.Failed, verdicts(b.read(b.operator).Checks)[baseline.ServiceAccount])
	b.SQL(`UPDATE instance SET operator_service_account_id = $1 WHERE id = $2`, b.robot.ID, b.instance.ID)
	require.True(t, b.read(b.operator).Passed)
	b.SQL(`UPDATE instance SET operator_service_account_id = NULL`)
	b.SQL(`UPDATE adapter SET service_account_id = $1`, b.robot.ID)
	require.True(t, b.read(b.operator).Passed)
	b.SQL(`UPDATE service_account SET deleted_at = now() WHERE id = $1`, b.robot.ID)
	require.Equal(t, baseline.Failed, verdicts(b.read(b.operator).Checks)[baseline.ServiceAccount])
}
