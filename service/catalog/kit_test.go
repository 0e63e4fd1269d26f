package catalog_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/entry"
	"github.com/gpuaas/app-platform/service/catalog/trust"
)

// bench is the service under test with the people who use it.
type bench struct {
	*platformtest.Kit
	verbs               *catalog.Service
	entries             *entry.Service
	trust               *trust.Service
	operator, publisher context.Context
	t                   *testing.T
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	return &bench{Kit: kit, verbs: &catalog.Service{DB: kit.DB},
		entries: &entry.Service{DB: kit.DB}, trust: &trust.Service{DB: kit.DB}, t: t,
		operator: kit.As(kit.Operator()), publisher: kit.As(kit.User(nil, platformtest.OnPlatform(authz.AppPublisher)))}
}

func (b *bench) audited(action, code string) int {
	n := 0
	for _, entry := range b.Audit() {
		if entry.Action == action && entry.Code == code && entry.Allowed == (code == "") {
			n++
		}
	}
	return n
}

// described is what an adapter says of an app that fits platformtest.Document.
func described(slug, key string) json.RawMessage {
	said, _ := json.Marshal(map[string]any{"contractVersions": []string{"1.0"}, "name": "a", "build": "b1",
		"apps": []map[string]any{{
			"slug": slug, "components": []map[string]any{{"key": "worker", "displayName": "W", "min": 1, "max": 8,
				"default": 1}},
			"actions": []map[string]any{{"name": "queue.read", "displayName": "Q", "permissionKey": key,
				"risk": "read"}},
		}}})
	return said
}

// world is an app with an adapter that describes it and an active artifact.
type world struct {
	app      *db.App
	adapter  *db.Adapter
	artifact *db.Artifact
}

func (b *bench) world() world {
	app := b.App("apps")
	return world{app, b.Adapter("http://adapter.test", described(app.Slug, "apps.queue.read")),
		b.Artifact(lifecycle.StageActive)}
}

func (w world) document(version string) map[string]any {
	document := platformtest.Document(w.app, version, w.adapter, w.artifact)
	mode := func(word string) map[string]any { return map[string]any{"mode": word, "keepsWork": false} }
	document["lifecycle"] = map[string]any{"upgrade": mode("rolling"), "rollback": mode("rolling"),
		"delete": mode("immediate")}
	return document
}

// published gives the app to a new project of the tenant, with an account there that may do all that publishing takes.
func (b *bench) published(w world, tenant *db.Tenant) (project *db.Project, publisher context.Context) {
	project = b.Project(tenant)
	b.SQL(`UPDATE app SET promotion_terms = '{"minLaunches": 0, "minMinutes": 0, "graceHours": 0}' WHERE id = $1`,
		w.app.ID)
	b.SQL(`UPDATE app SET publisher_tenant_id = $1, publisher_project_id = $2 WHERE id = $3`, tenant.ID, project.ID,
		w.app.ID)
	return project, b.account(project)
}

// account is a service account of the project with the keys of a publisher.
func (b *bench) account(project *db.Project) context.Context {
	_, credential := b.ServiceAccount(project, authz.ManifestRead, authz.ManifestPublish, authz.ManifestPromote,
		authz.ManifestSmoke, authz.ArtifactRead)
	return b.With(credential)
}

// report is a report of the adapter's build in which every required clause of the kind has passed, and what changes it.
func report(t *testing.T, kind lifecycle.EvidenceKind, w world,
	change ...func(*conformance.Report)) catalog.EvidenceInput {
	t.Helper()
	said := conformance.Report{Digested: conformance.Digested{
		Suite: conformance.Version, Contract: "1.1", Adapter: conformance.AdapterID{Name: w.adapter.Name, Build: "b1"},
		App: w.app.Slug,
	}}
	for _, id := range evidence.Required(kind) {
		said.Digested.Clauses = append(said.Digested.Clauses, conformance.ClauseOutcome{ID: id,
			Outcome: conformance.Passed})
	}
	for _, one := range change {
		one(&said)
	}
	digest, err := said.Digested.Digest()
	require.NoError(t, err)
	said.Digest = digest
	data := encode(t, said)
	return catalog.EvidenceInput{Kind: kind, Report: string(data), Digest: platformtest.Digest(data)}
}

// proved brings both reports of a manifest.
func (b *bench) proved(of *db.Manifest, w world) {
	b.t.Helper()
	for _, kind := range []lifecycle.EvidenceKind{lifecycle.EvidenceConformance, lifecycle.EvidenceTenancy} {
		in := report(b.t, kind, w)
		in.ManifestID = of.ID
		_, err := b.verbs.SubmitEvidence(b.operator, in)
		require.NoError(b.t, err)
	}
}

// smoked is an instance that ran the manifest as a smoke launch and was torn down with proof.
func (b *bench) smoked(of *db.Manifest) ids.ID { return b.smokedIn(b.Project(b.Tenant()), of) }

func (b *bench) smokedIn(project *db.Project, of *db.Manifest) ids.ID {
	instance := b.Instance(project, of, lifecycle.InstanceStopped)
	b.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	b.Operation(instance, lifecycle.InstanceDecommission, lifecycle.OperationSucceeded)
	b.SQL(`UPDATE instance SET smoke = true, released_at = now() WHERE id = $1`, instance.ID)
	b.SQL(`UPDATE operation SET outcome = 'NORMAL' WHERE instance_id = $1`, instance.ID)
	return instance.ID
}

// copied is an artifact of the tenant with the digest of another one.
func (b *bench) copied(of *db.Artifact, tenant *db.Tenant) ids.ID {
	id := ids.New(ids.Artifact)
	b.SQL(`INSERT INTO artifact (id, name, media_type, ref, digest, size_bytes, stage, tenant_id, created_at)
		SELECT $1, name, media_type, ref, digest, size_bytes, stage, $2, now() FROM artifact
		WHERE id = $3`, id, tenant.ID, of.ID)
	return id
}

func (b *bench) promote(of *db.Manifest, to lifecycle.Stage, smoke ...ids.ID) (*db.Manifest, error) {
	in := catalog.PromoteManifestInput{ManifestID: of.ID, To: to, Reason: "tested"}
	if to == lifecycle.StageCanary || to == lifecycle.StageActive || to == lifecycle.StageRetired {
		in.Override = "a test"
	}
	if len(smoke) > 0 {
		in.SmokeInstanceID = &smoke[0]
	}
	return b.verbs.PromoteManifest(b.operator, in)
}

func (b *bench) stage(of *db.Manifest) (stage lifecycle.Stage) {
	require.NoError(b.t, b.Admin.QueryRow(b.t.Context(), `SELECT stage FROM manifest
		WHERE id = $1`, of.ID).Scan(&stage))
	return stage
}
