package catalog_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/catalog"
)

func encode(t *testing.T, document any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(document)
	require.NoError(t, err)
	return data
}

func TestAManifestIsPublishedOnceUnderTheDigestOfItsCanonicalForm(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	document := w.document("1.0.0")
	document["docs"] = "a < b & c"
	in := catalog.PublishManifestInput{Document: encode(t, document), IdempotencyKey: "k"}
	made, err := b.verbs.PublishManifest(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, lifecycle.StageDraft, made.Stage)
	require.Equal(t, platformtest.Digest(made.Document), made.Digest)
	require.JSONEq(t, string(in.Document), string(made.Document))
	require.Contains(t, string(made.Document), "a < b & c", "no HTML escapes")
	require.Equal(t, 1, b.Count("manifest_artifact", "manifest_id = $1", made.ID))

	var spaced bytes.Buffer
	require.NoError(t, json.Indent(&spaced, in.Document, "", "    "))
	in.Document = spaced.Bytes()
	again, err := b.verbs.PublishManifest(b.publisher, in)
	require.NoError(t, err, "other white space is the same input")
	require.Equal(t, made.ID, again.ID)

	in.IdempotencyKey = "k2"
	_, err = b.verbs.PublishManifest(b.publisher, in)
	platformtest.Refused(t, err, fault.Conflict, "input.document.version")
	in.IdempotencyKey, in.Document = "k", encode(t, w.document("1.0.1"))
	_, err = b.verbs.PublishManifest(b.publisher, in)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused)
	require.Equal(t, 1, b.Count("manifest", ""))
	require.Equal(t, 1, b.audited("publishManifest", ""))
}

func TestAManifestMustLintAndFitTheCatalog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	publish := func(change func(document map[string]any)) error {
		document := w.document("1.0.0")
		change(document)
		_, err := b.verbs.PublishManifest(b.publisher, catalog.PublishManifestInput{Document: encode(t, document),
			IdempotencyKey: "k"})
		return err
	}
	stranger := platformtest.Document(w.app, "1.0.0", w.adapter, b.Artifact(lifecycle.StageRetired))
	platformtest.Refused(t, publish(func(d map[string]any) { d["version"] = "one" }), fault.ManifestInvalid,
		"input.document.version")
	platformtest.Refused(t, publish(func(d map[string]any) { d["app"] = "nothing" }), fault.ManifestInvalid,
		"input.document.app")
	platformtest.Refused(t, publish(func(d map[string]any) {
		d["permissionFamily"], d["actions"] = "scheduler", []any{}
	}), fault.ManifestInvalid, "input.document.permissionFamily")
	platformtest.Refused(t, publish(func(d map[string]any) {
		d["adapter"], d["artifacts"] = "nobody", stranger["artifacts"]
	}), fault.ManifestInvalid,
		"input.document.adapter", "input.document.artifacts.0.digest")
	tenant := b.Tenant()
	_, err := b.verbs.PublishManifest(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))),
		catalog.PublishManifestInput{Document: encode(t, w.document("1.0.0")), IdempotencyKey: "k"})
	platformtest.Refused(t, err, fault.Forbidden)
	require.Zero(t, b.Count("manifest", "")+b.Count("idempotency", ""))
}

func TestLintSaysWhatPublishingWould(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	viewer := b.As(b.User(b.Tenant(), platformtest.In(authz.ProjectViewer, b.Project(b.Tenant()))))
	reasons, err := b.verbs.LintManifest(viewer, encode(t, w.document("1.0.0")))
	require.NoError(t, err)
	require.Empty(t, reasons)
	document := w.document("1.0.0")
	document["adapter"] = "nobody"
	reasons, err = b.verbs.LintManifest(viewer, encode(t, document))
	require.NoError(t, err)
	require.Len(t, reasons, 1)
	require.Equal(t, "adapter", reasons[0].Path)
	require.Contains(t, reasons[0].Message, `no adapter "nobody" is registered`)
	require.Contains(t, reasons[0].Message, "sandbox.manage", "it says who can register one")
	reasons, err = b.verbs.LintManifest(viewer, json.RawMessage(`{"schema": 1}`))
	require.NoError(t, err)
	require.NotEmpty(t, reasons)
	_, err = b.verbs.LintManifest(b.As(b.User(b.Tenant())), json.RawMessage(`{}`))
	platformtest.Refused(t, err, fault.Forbidden)
	require.Zero(t, b.Count("manifest", ""))
}

func TestAManifestEarnsItsStagesOneByOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	old := b.Manifest(lifecycle.StageActive, w.document("1.0.0"))
	next := b.Manifest(lifecycle.StageDraft, w.document("1.1.0"))
	b.proved(next, w)
	staged, err := b.promote(next, lifecycle.StageStaged, b.smoked(next))
	require.NoError(t, err)
	var evidence struct {
		Lint, Smoke, Adapter map[string]any
		Reports              []map[string]any
	}
	require.NoError(t, json.Unmarshal(staged.Evidence, &evidence))
	require.Equal(t, next.Digest, evidence.Lint["digest"])
	require.Contains(t, evidence.Smoke["createOperationId"], "op_")
	require.Equal(t, "b1", evidence.Adapter["build"])
	require.Len(t, evidence.Reports, 2)

	for _, to := range []lifecycle.Stage{lifecycle.StageCanary, lifecycle.StageStaged, lifecycle.StageCanary,
		lifecycle.StageActive} {
		moved, err := b.promote(next, to)
		require.NoError(t, err)
		require.Equal(t, to, moved.Stage)
		require.NotEmpty(t, moved.Evidence, "evidence stays")
	}
	require.Equal(t, lifecycle.StageDeprecated, b.stage(old), "the version before stands aside")
	require.Equal(t, 6, b.audited("promoteManifest", ""), "five steps, and the one of the version before")
	require.Equal(t, 5, b.Count("promotion", "object_id = $1", next.ID))
	require.Equal(t, 1, b.Count("promotion", "object_id = $1 AND from_stage = 'ACTIVE' AND to_stage = 'DEPRECATED' "+
		"AND canary_percent IS NULL", old.ID))
	last := b.Audit()[b.Count("audit_entry", "")-1]
	require.Contains(t, string(last.Before)+string(last.After), "stage")
	require.NotEmpty(t, last.Reason)

	instance := b.Instance(b.Project(b.Tenant()), old, lifecycle.InstanceRunning)
	_, err = b.promote(old, lifecycle.StageRetired)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(instance.ID))
	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, instance.ID)
	_, err = b.promote(old, lifecycle.StageRetired)
	require.NoError(t, err)
}

func TestAStepThatIsNoneNamesBothStages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	draft := b.Manifest(lifecycle.StageDraft, w.document("1.0.0"))
	_, err := b.promote(draft, lifecycle.StageActive)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, "DRAFT")
	require.ErrorContains(t, err, "ACTIVE")
	_, err = b.verbs.PromoteManifest(b.operator, catalog.PromoteManifestInput{ManifestID: draft.ID,
		To: lifecycle.StageStaged})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.reason")
	_, err = b.verbs.PromoteManifest(b.publisher, catalog.PromoteManifestInput{ManifestID: draft.ID,
		To: lifecycle.StageStaged, Reason: "mine"})
	platformtest.Refused(t, err, fault.Forbidden)
	draft.ID = ids.New(ids.Manifest)
	_, err = b.promote(draft, lifecycle.StageStaged)
	platformtest.Refused(t, err, fault.NotFound)
	require.Zero(t, b.audited("promoteManifest", ""))
	require.Equal(t, 1, b.audited("promoteManifest", "FORBIDDEN"))
}

func TestStagingNeedsASmokeInstanceThatRanThisVersionAndIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	draft, other := b.Manifest(lifecycle.StageDraft, w.document("1.0.0")),
		b.Manifest(lifecycle.StageDraft, w.document("1.0.1"))
	_, err := b.promote(draft, lifecycle.StageStaged)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.smokeInstanceId")
	for says, spoil := range map[string]string{
		"not a smoke launch": `UPDATE instance SET smoke = false WHERE id = $1`,
		"launch did not": `UPDATE operation SET kind = 'MEMBERS_ADD' WHERE instance_id = $1
			AND kind = 'INSTANCE_CREATE'`,
		"teardown has not been": `UPDATE instance SET released_at = NULL WHERE id = $1`,
		"has not been proved": `UPDATE operation SET outcome = 'FORCED' WHERE instance_id = $1
			AND kind = 'INSTANCE_DECOMMISSION'`,
	} {
		smoke := b.smoked(draft)
		b.SQL(spoil, smoke)
		_, err := b.promote(draft, lifecycle.StageStaged, smoke)
		platformtest.Refused(t, err, fault.EvidenceMissing, "input.smokeInstanceId")
		require.ErrorContains(t, err, says)
	}
	_, err = b.promote(draft, lifecycle.StageStaged, b.smoked(other))
	platformtest.Refused(t, err, fault.EvidenceMissing)
	require.ErrorContains(t, err, "not launched from this version")
	_, err = b.promote(draft, lifecycle.StageStaged, ids.New(ids.Instance))
	platformtest.Refused(t, err, fault.EvidenceMissing)
	require.Equal(t, lifecycle.StageDraft, b.stage(draft))
	require.Zero(t, b.audited("promoteManifest", ""))
}

func TestStagingHoldsTheManifestAgainstWhatItsAdapterDescribes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	draft := b.Manifest(lifecycle.StageDraft, w.document("1.0.0"))
	smoke := b.smoked(draft)
	for name, c := range map[string]struct {
		path string
		said string
	}{
		"another app":  {"app", string(described("other", "apps.queue.read"))},
		"another key":  {"actions.0.permissionKey", string(described(w.app.Slug, "apps.queue.cancel"))},
		"no such part": {"components.0.key", `{"contractVersions":["1.0"],"apps":[{"slug":"` + w.app.Slug + `"}]}`},
		"narrower bounds": {"components.0", `{"contractVersions":["1.0"],"apps":[{"slug":"` + w.app.Slug +
			`","components":[{"key":"worker","min":1,"max":4}]}]}`},
		"graver risk": {"actions.0.risk", `{"contractVersions":["1.0"],"apps":[{"slug":"` + w.app.Slug +
			`","actions":[{"name":"queue.read","permissionKey":"apps.queue.read","risk":"write"}]}]}`},
		"another contract": {"adapter", `{"contractVersions":["2.0"],"apps":[]}`},
	} {
		b.SQL(`UPDATE adapter SET description = $1 WHERE id = $2`, c.said, w.adapter.ID)
		_, err := b.promote(draft, lifecycle.StageStaged, smoke)
		t.Log(name)
		platformtest.RefusedAlso(t, err, fault.ManifestInvalid, c.path)
	}
	b.SQL(`UPDATE adapter SET description = $1 WHERE id =
		$2`, string(described("*", "apps.queue.cancel")), w.adapter.ID)
	_, err := b.promote(draft, lifecycle.StageStaged, smoke)
	// an adapter of any app is held to what it says of any
	platformtest.Refused(t, err, fault.ManifestInvalid, "actions.0.permissionKey")
	b.SQL(`UPDATE adapter SET description = NULL WHERE id = $1`, w.adapter.ID)
	_, err = b.promote(draft, lifecycle.StageStaged, smoke)
	platformtest.Refused(t, err, fault.FailedPrecondition)
	require.ErrorContains(t, err, "never described itself")
	require.Equal(t, lifecycle.StageDraft, b.stage(draft))
}

func TestAnActiveManifestPinsActiveArtifactsOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	w.artifact = b.Artifact(lifecycle.StageCanary)
	canary := b.Manifest(lifecycle.StageCanary, w.document("1.0.0"))
	_, err := b.promote(canary, lifecycle.StageActive)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, w.artifact.Digest)
	b.SQL(`UPDATE artifact SET stage = 'ACTIVE' WHERE id = $1`, w.artifact.ID)
	_, err = b.promote(canary, lifecycle.StageActive)
	require.NoError(t, err)
}
