package catalog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/catalog"
)

func TestAPublishersAccountWalksTheWholePathAndAStrangersNoStepOfIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	tenant := b.Tenant()
	project, own := b.published(w, tenant)
	stranger := b.account(b.Project(b.Tenant()))
	in := catalog.PublishManifestInput{Document: encode(t, w.document("1.0.0")), IdempotencyKey: "k"}
	_, err := b.verbs.PublishManifest(stranger, in)
	require.Error(t, err)
	for _, reason := range fault.From(err).Reasons {
		require.NotContains(t, reason.Message, string(project.ID), "whose the app is, is not told")
	}
	require.Zero(t, b.Count("manifest", ""))
	made, err := b.verbs.PublishManifest(own, in)
	require.NoError(t, err)
	require.Equal(t, "controller", made.ArtifactKind)
	again, err := b.verbs.PublishManifest(own, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)

	for _, kind := range []lifecycle.EvidenceKind{lifecycle.EvidenceConformance, lifecycle.EvidenceTenancy} {
		evidence := b.signed(report(t, kind, w))
		evidence.ManifestID = made.ID
		_, err := b.verbs.SubmitEvidence(stranger, evidence)
		require.Error(t, err)
		_, err = b.verbs.SubmitEvidence(own, evidence)
		require.NoError(t, err)
	}
	require.Equal(t, 2, b.Count("promotion_evidence", "tenant_id = $1 AND passed", tenant.ID))

	smoke := b.smokedIn(project, made)
	for _, to := range []lifecycle.Stage{lifecycle.StageStaged, lifecycle.StageCanary, lifecycle.StageActive,
		lifecycle.StageDeprecated, lifecycle.StageRetired} {
		step := catalog.PromoteManifestInput{ManifestID: made.ID, To: to, Reason: "mine", SmokeInstanceID: &smoke}
		_, err := b.verbs.PromoteManifest(stranger, step)
		require.Error(t, err, to)
		moved, err := b.verbs.PromoteManifest(own, step)
		require.NoError(t, err, to)
		require.Equal(t, to, moved.Stage)
		if to == lifecycle.StageCanary {
			require.Equal(t, 10, moved.CanaryPercent)
			_, err = b.verbs.SetCanaryPercent(stranger, made.ID, 50, "theirs")
			require.Error(t, err)
			_, err = b.verbs.SetCanaryPercent(own, made.ID, 50, "more")
			require.NoError(t, err)
		}
	}
	require.Equal(t, 6, b.Count("promotion", "object_id = $1 AND lower(actor_kind) = 'service_account'", made.ID))
	require.Equal(t, 9, b.Count("audit_entry", "project_id = $1 AND allowed", project.ID))
	denied := 0
	for _, entry := range b.Audit() {
		if !entry.Allowed {
			denied++
		}
	}
	require.Positive(t, denied)
}

func TestAManifestPinsItsPublishersArtifactsBeforeThePlatformsAndNobodyElses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	tenant, other := b.Tenant(), b.Tenant()
	_, own := b.published(w, tenant)
	platforms := w.artifact
	mine := b.copied(platforms, tenant)
	theirs := b.copied(platforms, other)
	made, err := b.verbs.PublishManifest(own, catalog.PublishManifestInput{Document: encode(t, w.document("1.0.0")),
		IdempotencyKey: "a"})
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("manifest_artifact", "manifest_id = $1 AND artifact_id = $2", made.ID, mine))
	require.Equal(t, 1, b.Count("manifest_artifact", ""))

	b.SQL(`UPDATE artifact SET quarantined_at = now(), quarantine_reason = 'unsigned' WHERE id = $1`, mine)
	_, err = b.verbs.PublishManifest(own, catalog.PublishManifestInput{Document: encode(t, w.document("1.0.1")),
		IdempotencyKey: "b"})
	platformtest.Refused(t, err, fault.ManifestInvalid, "input.document.artifacts.0.digest")
	require.ErrorContains(t, err, "quarantine")
	reasons, err := b.verbs.LintManifest(own, encode(t, w.document("1.0.1")))
	require.NoError(t, err)
	require.Equal(t, fault.ArtifactQuarantined, reasons[0].Code)

	b.SQL(`DELETE FROM manifest_artifact`)
	b.SQL(`DELETE FROM artifact WHERE id IN ($1, $2)`, mine, platforms.ID)
	_, err = b.verbs.PublishManifest(own, catalog.PublishManifestInput{Document: encode(t, w.document("1.0.1")),
		IdempotencyKey: "b"})
	platformtest.Refused(t, err, fault.ManifestInvalid, "input.document.artifacts.0.digest")
	_, err = b.verbs.PublishManifest(b.operator, catalog.PublishManifestInput{Document: encode(t, w.document("1.0.1")),
		IdempotencyKey: "b"})
	platformtest.Refused(t, err, fault.ManifestInvalid, "input.document.artifacts.0.digest")
	require.Equal(t, 1, b.Count("artifact", "id = $1", theirs),
		"another tenant's is there, and is not pinned even by the platform's staff")
	require.Equal(t, 1, b.Count("manifest", ""))
}

func TestRetiringNamesTheInstancesThatThePublisherSeesAndCountsTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	project, own := b.published(w, b.Tenant())
	old := b.Manifest(lifecycle.StageDeprecated, w.document("1.0.0"))
	mine := b.Instance(project, old, lifecycle.InstanceRunning)
	others := []*db.Instance{b.Instance(b.Project(b.Tenant()), old, lifecycle.InstanceRunning),
		b.Instance(b.Project(b.Tenant()), old, lifecycle.InstanceRunning)}
	retire := catalog.PromoteManifestInput{ManifestID: old.ID, To: lifecycle.StageRetired, Reason: "old"}
	_, err := b.verbs.PromoteManifest(own, retire)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(mine.ID))
	require.ErrorContains(t, err, "3 live instances")
	require.ErrorContains(t, err, "live: 2 more")
	for _, one := range others {
		require.NotContains(t, err.Error(), string(one.ID))
	}
	_, err = b.verbs.PromoteManifest(b.operator, retire)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(others[0].ID))
	lacking, err := b.verbs.Lacks(own, ids1(old))
	require.NoError(t, err)
	require.Contains(t, lacking[old.ID][0].Message, "3 live instances")
	b.SQL(`UPDATE instance SET released_at = now()`)
	_, err = b.verbs.PromoteManifest(own, retire)
	require.NoError(t, err)
}

// The refusal to a publisher's account that tries an app of the platform's names who can do it.
func TestARefusalToPublishSaysWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	account := b.account(b.Project(b.Tenant()))
	_, err := b.verbs.PublishManifest(account, catalog.PublishManifestInput{Document: encode(t, w.document("1.0.0")),
		IdempotencyKey: "k"})
	platformtest.RefusedAlso(t, err, fault.Forbidden, "input.document.app")
	require.Contains(t, err.Error(), "the platform publishes the app, and its staff can do this")
	require.Contains(t, err.Error(), "app.manage")
	require.Zero(t, b.Count("manifest", ""))
	others := *w.artifact
	others.Digest = platformtest.Digest([]byte("of another project"))
	others.Ref = "registry.test/x@" + others.Digest
	w.artifact = &others
	reasons, err := b.verbs.LintManifest(account, encode(t, w.document("1.0.0")))
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(reasons), "artifact.publish on the platform")
}
