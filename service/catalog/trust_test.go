package catalog_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/signing"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/trust"
)

// newKey makes a runner's keys; the public one as it is registered.
func newKey(t *testing.T) (string, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(public), private
}

// signed is a report with the signature of a runner that is registered for it.
func (b *bench) signed(in catalog.EvidenceInput) catalog.EvidenceInput {
	b.t.Helper()
	public, key := newKey(b.t)
	name := fmt.Sprintf("runner-%d", b.Count("evidence_runner", ""))
	_, err := b.trust.RegisterRunner(b.operator, trust.RunnerInput{Name: name, PublicKey: public, Reason: "a test"})
	require.NoError(b.t, err)
	in.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, evidence.Statement(in.Kind, in.Digest)))
	return in
}

// attested brings both reports of a manifest, signed by the key.
func (b *bench) attested(of *db.Manifest, w world, key ed25519.PrivateKey) error {
	for _, kind := range []lifecycle.EvidenceKind{lifecycle.EvidenceConformance, lifecycle.EvidenceTenancy} {
		in := report(b.t, kind, w)
		in.ManifestID = of.ID
		signature, err := signing.SignReport(key, string(kind), []byte(in.Report))
		if err != nil {
			return err
		}
		in.Signature = signature
		if _, err := b.verbs.SubmitEvidence(b.operator, in); err != nil {
			return err
		}
	}
	return nil
}

// One account of the publisher's publishes, reports, smokes and promotes: its own evidence gives the version to no one
// else.
func TestAPublishersOwnWordStagesNothingForOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	project, own := b.published(w, b.Tenant())
	row := b.Manifest(lifecycle.StageDraft, w.document("1.0.0"))
	b.proved(row, w)
	smoked := b.smokedIn(project, row)
	_, err := b.verbs.PromoteManifest(own, catalog.PromoteManifestInput{ManifestID: row.ID, To: lifecycle.StageStaged,
		Reason: "mine", SmokeInstanceID: &smoked})
	require.NoError(t, err, "for its own tenant's smoke launches its word is enough")
	step := catalog.PromoteManifestInput{ManifestID: row.ID, To: lifecycle.StageCanary, Reason: "mine"}
	_, err = b.verbs.PromoteManifest(own, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	step.Override = "trust me"
	_, err = b.verbs.PromoteManifest(own, step)
	platformtest.Refused(t, err, fault.Forbidden)
	require.Equal(t, lifecycle.StageStaged, b.stage(row))

	_, self := newKey(t)
	platformtest.Refused(t, b.attested(row, w, self), fault.SignatureUntrusted, "input.signature")
	public, runner := newKey(t)
	_, err = b.trust.RegisterRunner(own, trust.RunnerInput{Name: "mine", PublicKey: public, Reason: "mine"})
	platformtest.Refused(t, err, fault.Forbidden)
	made, err := b.trust.RegisterRunner(b.operator, trust.RunnerInput{Name: "ci", PublicKey: public, Reason: "our CI"})
	require.NoError(t, err)
	require.NoError(t, b.attested(row, w, runner))
	_, err = b.trust.RevokeRunner(b.operator, made.ID, "stolen")
	require.NoError(t, err)
	for stored, sent := range map[string]string{public: "\n" + public, public + "\n": public} {
		b.SQL(`UPDATE evidence_runner SET public_key = $2 WHERE id = $1`, made.ID, stored)
		_, err = b.trust.RegisterRunner(b.operator, trust.RunnerInput{Name: "ci-1", PublicKey: sent,
			Reason: "the revoked key in another spelling"})
		platformtest.Refused(t, err, fault.Conflict, "input.name")
	}
	step.Override = ""
	_, err = b.verbs.PromoteManifest(own, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	public, runner = newKey(t)
	_, err = b.trust.RegisterRunner(b.operator, trust.RunnerInput{Name: "ci-2", PublicKey: public, Reason: "the next"})
	require.NoError(t, err)
	require.NoError(t, b.attested(row, w, runner))
	moved, err := b.verbs.PromoteManifest(own, step)
	require.NoError(t, err)
	require.Equal(t, lifecycle.StageCanary, moved.Stage)
}

// Zero launches and zero seconds do not prove confidence, and a version in use is not withdrawn without notice.
func TestStepsHoldToTheAppsTerms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	tenant := b.Tenant()
	project, own := b.published(w, tenant)
	b.SQL(`UPDATE app SET promotion_terms = NULL`)
	canary := b.Manifest(lifecycle.StageCanary, w.document("2.0.0"))
	b.SQL(`UPDATE manifest SET canary_percent = 10, canary_started_at = now() WHERE id = $1`, canary.ID)
	step := catalog.PromoteManifestInput{ManifestID: canary.ID, To: lifecycle.StageActive, Reason: "now"}
	_, err := b.verbs.PromoteManifest(own, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	require.Len(t, fault.From(err).Reasons, 2, "launches and time: %v", err)
	_, err = b.trust.SetTerms(own, trust.TermsInput{AppSlug: w.app.Slug, Reason: "mine"})
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.trust.SetTerms(b.operator, trust.TermsInput{AppSlug: w.app.Slug, SecondApprover: true,
		Reason: "two people"})
	require.NoError(t, err)
	var account string
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT id FROM service_account`).Scan(&account))
	b.SQL(`INSERT INTO promotion (id, object_id, from_stage, to_stage, reason, actor_kind, actor_id, actor_name,
		created_at)
		VALUES ('prm_1', $1, 'STAGED', 'CANARY', 'mine', 'SERVICE_ACCOUNT', $2, 'own', now())`, canary.ID, account)
	_, err = b.verbs.PromoteManifest(own, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	require.Contains(t, fault.From(err).Reasons[0].Message, "someone other than")
	maker, twin := b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)), b.account(project)
	b.SQL(`UPDATE service_account SET maker_id = $1`, maker.ID)
	_, err = b.verbs.PromoteManifest(twin, step)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	require.Contains(t, fault.From(err).Reasons[0].Message, "someone other than",
		"another account of the same maker is the same")
	moved, err := b.verbs.PromoteManifest(b.operator, step)
	require.NoError(t, err, "somebody else may")
	require.Equal(t, lifecycle.StageActive, moved.Stage)

	old := b.Manifest(lifecycle.StageDeprecated, w.document("1.0.0"))
	_, err = b.trust.SetTerms(b.operator, trust.TermsInput{AppSlug: w.app.Slug, GraceHours: 24, Reason: "a day"})
	require.NoError(t, err)
	retire := catalog.PromoteManifestInput{ManifestID: old.ID, To: lifecycle.StageRetired, Reason: "old"}
	_, err = b.verbs.PromoteManifest(own, retire)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	retire.Override = "a hole in it"
	_, err = b.verbs.PromoteManifest(own, retire)
	platformtest.Refused(t, err, fault.Forbidden)
	require.Equal(t, lifecycle.StageDeprecated, b.stage(old))
	_, err = b.verbs.PromoteManifest(b.operator, retire)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("promotion", "override = 'a hole in it'"))
	require.Equal(t, 1, b.Count("audit_entry", "after->>'override' = 'a hole in it'"))
}
