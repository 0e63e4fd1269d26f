package onboarding_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	baseline "github.com/gpuaas/app-platform/domain/onboarding"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/onboarding"
)

// bench is an app that a tenant's project publishes, with a version for which all that onboarding needs is recorded.
type bench struct {
	*platformtest.Kit
	t         *testing.T
	verbs     *onboarding.Service
	operator  context.Context
	publisher context.Context // a service account of the publishing project
	robot     *db.ServiceAccount
	project   *db.Project
	app       *db.App
	adapter   *db.Adapter
	artifact  *db.Artifact
	manifest  *db.Manifest
	instance  *db.Instance
	create    *db.Operation
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	b := &bench{Kit: kit, t: t, verbs: &onboarding.Service{DB: kit.DB}, operator: kit.As(kit.Operator())}
	b.project = b.Project(b.Tenant())
	var credential string
	b.robot, credential = b.ServiceAccount(b.project, authz.ManifestRead, authz.ManifestSmoke, authz.GapRead,
		authz.AppsInstanceRead, authz.OperationRead, authz.AuditRead, authz.TaskRead)
	b.publisher = b.With(credential)
	b.app = b.App("apps")
	b.SQL(`UPDATE app SET publisher_tenant_id = $1, publisher_project_id = $2
		WHERE id = $3`, b.project.TenantID, b.project.ID,
		b.app.ID)
	said, err := json.Marshal(map[string]any{"name": "a", "build": "b1", "contractVersions": []string{"1.1"},
		"apps": []map[string]any{{"slug": b.app.Slug}}})
	require.NoError(t, err)
	b.adapter, b.artifact = b.Adapter("http://adapter.test", said), b.Artifact(lifecycle.StageActive)
	b.publish()
	b.run()
	return b
}

// publish stores the version, what was brought for it and where its artifact is from.
func (b *bench) publish() {
	source := b.Source(nil, lifecycle.SourceOCI, "registry.test")
	b.SQL(`UPDATE artifact SET source_id = $1, signature = 'VERIFIED', verified_at = now()
		WHERE id = $2`, source.ID, b.artifact.ID)
	mode := map[string]any{"mode": "in_place", "keepsWork": false}
	document := platformtest.Document(b.app, "1.1.0", b.adapter, b.artifact)
	document["lifecycle"] = map[string]any{"upgrade": mode, "rollback": mode,
		"delete": map[string]any{"mode": "graceful", "keepsWork": false}}
	document["runbooks"] = []any{map[string]any{"title": "Stuck", "url": "https://runbooks.example/stuck",
		"triage": []any{
			map[string]any{"by": "correlation_id", "do": "Ask for triage."},
			map[string]any{"by": "event", "do": "Compare."}}}}
	b.manifest = b.Manifest(lifecycle.StageCanary, document)
	runner := ids.New(ids.Runner)
	b.SQL(`INSERT INTO evidence_runner (id, name, public_key, created_at) VALUES ($1, 'bench', 'key', now())`, runner)
	report := `{"digested": {"clauses": [{"id": "rollback.completes", "outcome": "passed"}, {"id": "upgrade.completes", "outcome": "skipped"}]}}`
	for _, kind := range []string{"CONFORMANCE", "TENANCY"} {
		b.SQL(`INSERT INTO promotion_evidence (id, manifest_id, tenant_id, kind, digest, report, summary, passed,
			runner_id, created_at)
			VALUES ($1, $2, $3, $4::text, $4::text, $5, $6, true, $7,
			now())`, ids.New(ids.Evidence), b.manifest.ID, b.project.TenantID, kind,
			[]byte(report), fmt.Sprintf(`{"adapter": %q, "build": "b1", "app": %q, "failed": 0, "missing": []}`,
				b.adapter.Name, b.app.Slug), runner)
	}
	b.audited("SERVICE_ACCOUNT", b.robot.ID, "publishManifest", b.manifest.ID, "", b.project.TenantID, b.project.ID)
}

// run creates an instance that ran the version, was upgraded to it, and is released.
func (b *bench) run() {
	b.Entitle(b.project, b.app)
	node, _ := b.Node(0)
	b.instance = b.Instance(b.project, b.manifest, lifecycle.InstanceStopped, b.Allocation(b.project, node))
	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, b.instance.ID)
	b.SQL(`INSERT INTO instance_generation (id, tenant_id, project_id, instance_id, number, manifest_id, app_version,
		created_at)
		VALUES ($1, $2, $3, $4, 1, $5, '1.1.0', now())`, ids.New(ids.Generation), b.project.TenantID, b.project.ID,
		b.instance.ID,
		b.manifest.ID)
	b.create = b.Operation(b.instance, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	upgrade := b.Operation(b.instance, lifecycle.InstanceUpgrade, lifecycle.OperationSucceeded)
	b.SQL(`UPDATE operation SET desired_change = jsonb_build_object('platform', jsonb_build_object(
		'from', jsonb_build_object('manifestId', 'man_old', 'version', '1.0.0'),
		'to', jsonb_build_object('manifestId', $2::text, 'version', '1.1.0')))
		WHERE id = $1`, upgrade.ID, b.manifest.ID)
	b.Operation(b.instance, lifecycle.InstanceDecommission, lifecycle.OperationSucceeded)
	b.audited("USER", "usr_fixture", "launchInstance", b.instance.ID, b.instance.CorrelationID, b.project.TenantID,
		b.project.ID)
	for i, kind := range []lifecycle.EventType{lifecycle.EventInstanceRequested, lifecycle.EventInstanceRunning,
		lifecycle.EventInstanceDeleting, lifecycle.EventInstanceDeleted} {
		b.SQL(`INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug,
			permission_family,
			message, correlation_id, occurred_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 'apps', '', $8,
			now())`, ids.New(ids.Event),
			b.project.TenantID, b.project.ID, b.instance.ID, i+1, string(kind), b.app.Slug, b.instance.CorrelationID)
	}
	b.audited("OPERATION", b.create.ID, "runNodeTask", b.task("k1"), b.instance.CorrelationID, b.project.TenantID,
		b.project.ID)
	b.task("platform probe")
}

// task stores a task of the launch, under a key, as a call of its token or the platform itself does.
func (b *bench) task(key string) ids.ID {
	id := ids.New(ids.NodeTask)
	b.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id, kind, spec,
		spec_digest, state, timeout_seconds, idempotency_key, created_at)
		SELECT $1, m.tenant_id, m.project_id, m.instance_id, m.id, m.node_id, $3, 'RUN', '{}', '', 'SUCCEEDED', 10, $4, now()
		FROM member m WHERE m.instance_id = $2`, id, b.instance.ID, b.create.ID, key)
	return id
}

// audited stores an entry of the audit.
func (b *bench) audited(kind string, who ids.ID, action string, object ids.ID, correlation string, tenant,
	project ids.ID) {
	b.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, actor_name, permission_key, action,
		allowed,
		object_id, correlation_id, created_at) VALUES ($1, $2, $3, $4, $5, 'robot', 'x', $6, true, $7, $8, $9)`,
		ids.New(ids.Audit), tenant, project, kind, who, action, object, correlation, time.Now())
}

// read checks the version as somebody.
func (b *bench) read(as context.Context) *onboarding.Report {
	b.t.Helper()
	report, err := b.verbs.Read(as, b.app.Slug, "1.1.0")
	require.NoError(b.t, err)
	return report
}

// verdicts are the verdicts by condition.
func verdicts(checks []*baseline.Check) map[baseline.Condition]baseline.Verdict {
	out := map[baseline.Condition]baseline.Verdict{}
	for _, one := range checks {
		out[one.Condition] = one.Verdict
	}
	return out
}
