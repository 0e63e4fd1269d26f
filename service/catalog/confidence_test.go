package catalog_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/signing"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/trust"
)

// ran is a launch of a version in a project that succeeded.
func (b *bench) ran(of *db.Manifest, project *db.Project) *db.Instance {
	b.t.Helper()
	row := b.Instance(project, of, lifecycle.InstanceRunning)
	op := b.Operation(row, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	require.NoError(b.t, b.Ent.Generation.Create().SetID(ids.New(ids.Generation)).SetTenantID(row.TenantID).
		SetProjectID(row.ProjectID).SetInstanceID(row.ID).SetNumber(1).SetManifestID(of.ID).SetAppVersion(of.Version).
		SetConfig(row.Config).SetOperationID(op.ID).SetCreatedAt(op.CreatedAt).Exec(b.t.Context()))
	return row
}

// A publisher launches its canary as often as it likes: what others may launch becomes ACTIVE by others' launches.
func TestAPublishersOwnLaunchesAreNoConfidence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	tenant, other := b.Tenant(), b.Tenant()
	own, publisher := b.published(w, tenant)
	beside, elsewhere := b.Project(tenant), b.Project(other)
	_, err := b.trust.SetTerms(b.operator, trust.TermsInput{AppSlug: w.app.Slug, MinLaunches: 2, Reason: "two"})
	require.NoError(t, err)
	canary := b.Manifest(lifecycle.StageCanary, w.document("2.0.0"))
	b.SQL(`UPDATE manifest SET canary_percent = 10, canary_started_at = now() - interval '1 day'
		WHERE id = $1`, canary.ID)
	lacks := func(want string) {
		t.Helper()
		_, err := b.verbs.PromoteManifest(publisher, catalog.PromoteManifestInput{ManifestID: canary.ID,
			To: lifecycle.StageActive, Reason: "now"})
		platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
		require.Equal(t, want, fault.From(err).Reasons[0].Message)
		shown, err := b.verbs.Lacks(publisher, ids1(canary))
		require.NoError(t, err)
		require.Equal(t, want, shown[canary.ID][0].Message)
		require.Equal(t, lifecycle.StageCanary, b.stage(canary))
	}
	for range 5 {
		b.ran(canary, own)
	}
	b.Entitle(own, w.app)
	b.Entitle(elsewhere, w.app)
	lacks("0 of its launches by tenants other than its publisher's have succeeded, and 2 are needed")
	b.ran(canary, beside)
	b.ran(canary, elsewhere)
	lacks("1 of its launches by tenants other than its publisher's have succeeded, and 2 are needed")
	b.SQL(`UPDATE instance SET smoke = true WHERE project_id = $1`, elsewhere.ID)
	lacks("0 of its launches by tenants other than its publisher's have succeeded, and 2 are needed")
	b.SQL(`UPDATE entitlement SET expires_at = now() - interval '1 hour' WHERE project_id = $1`, elsewhere.ID)
	b.Entitle(beside, w.app)
	lacks("1 of its launches in projects other than the one that publishes it have succeeded, and 2 are needed")
	b.ran(canary, beside)
	moved, err := b.verbs.PromoteManifest(publisher, catalog.PromoteManifestInput{ManifestID: canary.ID,
		To: lifecycle.StageActive, Reason: "now"})
	require.NoError(t, err)
	require.Equal(t, lifecycle.StageActive, moved.Stage)
}

// No one but its publisher may launch it, so no one else can vouch for it, and no one else gets it.
func TestAnAppOfItsPublisherAloneRestsOnItsOwnLaunches(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	own, publisher := b.published(w, b.Tenant())
	_, err := b.trust.SetTerms(b.operator, trust.TermsInput{AppSlug: w.app.Slug, MinLaunches: 1, Reason: "one"})
	require.NoError(t, err)
	canary := b.Manifest(lifecycle.StageCanary, w.document("2.0.0"))
	b.SQL(`UPDATE manifest SET canary_percent = 10, canary_started_at = now() - interval '1 day'
		WHERE id = $1`, canary.ID)
	b.Entitle(own, w.app)
	step := catalog.PromoteManifestInput{ManifestID: canary.ID, To: lifecycle.StageActive, Reason: "now"}
	_, err = b.verbs.PromoteManifest(publisher, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	b.ran(canary, own)
	_, err = b.verbs.PromoteManifest(publisher, step)
	require.NoError(t, err)
}

// A tenant's artifact reaches others with the version that pins it: not before a runner has smoked it.
func TestAVersionReachesOthersWithSmokedArtifactsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	tenant := b.Tenant()
	_, publisher := b.published(w, tenant)
	b.SQL(`UPDATE artifact SET tenant_id = $1, kind = 'BLOB'`, tenant.ID)
	document := w.document("1.0.0")
	document["artifactKind"] = "oci"
	staged := b.Manifest(lifecycle.StageStaged, document)
	b.SQL(`UPDATE artifact SET tenant_id = $1, kind = 'BLOB'`, tenant.ID)
	b.SQL(`UPDATE adapter SET description = jsonb_set(description, '{apps,0,slug}', '"*"')`)
	step := catalog.PromoteManifestInput{ManifestID: staged.ID, To: lifecycle.StageCanary, Reason: "mine"}
	_, err := b.verbs.PromoteManifest(publisher, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	require.ErrorContains(t, err, "fetched, digest")
	require.Equal(t, lifecycle.StageStaged, b.stage(staged))
	step.Override = "trust me"
	_, err = b.verbs.PromoteManifest(publisher, step)
	platformtest.Refused(t, err, fault.Forbidden)

	step.Override = ""
	b.smokedBy("ci", w.artifact)
	_, err = b.verbs.PromoteManifest(publisher, step)
	require.NoError(t, err)
	b.SQL(`UPDATE manifest SET stage = 'STAGED'`)
	b.SQL(`UPDATE evidence_runner SET revoked_at = now()`)
	_, err = b.verbs.PromoteManifest(publisher, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	_, err = b.trust.SetTerms(b.operator, trust.TermsInput{AppSlug: w.app.Slug, Reason: "its publisher's alone"})
	require.NoError(t, err)
	_, err = b.verbs.PromoteManifest(publisher, step)
	require.NoError(t, err, "an app's terms may ask for none")
}

// A document that calls itself "oci" gets round no report where its adapter was written for the app.
func TestWhatADocumentCallsItselfDoesNotSpareAControllerItsReports(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	_, publisher := b.published(w, b.Tenant())
	document := w.document("1.0.0")
	document["artifactKind"] = "oci"
	delete(document, "lifecycle")
	staged := b.Manifest(lifecycle.StageStaged, document)
	step := catalog.PromoteManifestInput{ManifestID: staged.ID, To: lifecycle.StageCanary, Reason: "mine"}
	_, err := b.verbs.PromoteManifest(publisher, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	require.ErrorContains(t, err, "signed by a registered runner: no conformance report")
	require.Equal(t, lifecycle.StageStaged, b.stage(staged))
	_, key := newKey(t)
	platformtest.Refused(t, b.attested(staged, w, key), fault.SignatureUntrusted, "input.signature")
	for _, kind := range []lifecycle.EvidenceKind{lifecycle.EvidenceConformance, lifecycle.EvidenceTenancy} {
		in := b.signed(report(t, kind, w))
		in.ManifestID = staged.ID
		_, err := b.verbs.SubmitEvidence(b.operator, in)
		require.NoError(t, err)
	}
	_, err = b.verbs.PromoteManifest(publisher, step)
	require.NoError(t, err)
}

// smokedBy brings a passed report of a smoke that a new runner signed.
func (b *bench) smokedBy(name string, of *db.Artifact) {
	b.t.Helper()
	public, key := newKey(b.t)
	_, err := b.trust.RegisterRunner(b.operator, trust.RunnerInput{Name: name, PublicKey: public, Reason: "a test"})
	require.NoError(b.t, err)
	row, err := b.Ent.Artifact.Get(context.WithoutCancel(b.t.Context()), of.ID)
	require.NoError(b.t, err)
	said := evidence.SmokeReport{Schema: evidence.SmokeSchema, Artifact: row.Digest, Kind: row.Kind, Tool: "a test"}
	for _, check := range evidence.SmokeChecks(row.Kind) {
		said.Checks = append(said.Checks, evidence.SmokeCheck{Name: check, Outcome: "passed"})
	}
	text, err := json.Marshal(said)
	require.NoError(b.t, err)
	signature, err := signing.SignReport(key, string(evidence.Smoke), text)
	require.NoError(b.t, err)
	_, err = b.trust.SubmitSmoke(b.operator, trust.SmokeInput{ArtifactID: of.ID,
		Report: string(text), Digest: platformtest.Digest(text), Signature: signature})
	require.NoError(b.t, err)
}
