package artifact_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	reports "github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/signing"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/catalog/trust"
)

// smokeOf is a report of a smoke of the artifact's kind that ended with this outcome.
func smokeOf(t *testing.T, of *db.Artifact, outcome string) reports.SmokeReport {
	t.Helper()
	out := reports.SmokeReport{Schema: reports.SmokeSchema, Artifact: of.Digest, Kind: of.Kind, Tool: "a test"}
	for _, name := range reports.SmokeChecks(of.Kind) {
		out.Checks = append(out.Checks, reports.SmokeCheck{Name: name, Outcome: outcome})
	}
	return out
}

// runner registers a runner, and returns what signs for it.
func (b *bench) runner(name string) (ids.ID, func(of *db.Artifact, report reports.SmokeReport) trust.SmokeInput) {
	b.t.Helper()
	key, err := signing.NewKey(signing.Ed25519)
	require.NoError(b.t, err)
	public, err := signing.RunnerKey(key.Public())
	require.NoError(b.t, err)
	made, err := b.trust.RegisterRunner(b.operator, trust.RunnerInput{Name: name, PublicKey: public, Reason: "a test"})
	require.NoError(b.t, err)
	return made.ID, func(of *db.Artifact, report reports.SmokeReport) trust.SmokeInput {
		text, err := json.Marshal(report)
		require.NoError(b.t, err)
		signature, err := signing.SignReport(key, string(reports.Smoke), text)
		require.NoError(b.t, err)
		return trust.SmokeInput{ArtifactID: of.ID, Report: string(text), Digest: platformtest.Digest(text),
			Signature: signature}
	}
}

// Every tenant may pin a platform's artifact: its own publisher's word does not make it ACTIVE.
func TestAPlatformsArtifactIsSmokedBeforeItIsActive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := b.published(ref, "k")
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageStaged))
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageCanary))
	active := func() error { return b.promote(b.operator, made.ID, lifecycle.StageActive) }
	err := active()
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.to")
	require.ErrorContains(t, err, "fetched, digest, started, answered")
	id, sign := b.runner("ci")
	submit := func(in trust.SmokeInput) error {
		_, err := b.trust.SubmitSmoke(b.publisher, in)
		return err
	}
	passed := smokeOf(t, made, "passed")
	forged := sign(made, passed)
	forged.Signature = sign(made, smokeOf(t, made, "failed")).Signature
	platformtest.Refused(t, submit(forged), fault.SignatureUntrusted, "input.signature")
	other := *made
	other.Digest = platformtest.Digest([]byte("another"))
	platformtest.Refused(t, submit(sign(made, smokeOf(t, &other, "passed"))), fault.InvalidArgument, "input.report")
	file := *made
	file.Kind = lifecycle.ArtifactBlob
	platformtest.Refused(t, submit(sign(made, smokeOf(t, &file, "passed"))), fault.InvalidArgument, "input.report")
	half := passed
	half.Checks = half.Checks[:2]
	require.NoError(t, submit(sign(made, half)), "an image that was only fetched is stored")
	platformtest.Refused(t, active(), fault.EvidenceMissing, "input.to")
	require.Equal(t, 1, b.Count("artifact_smoke", "NOT passed"))
	require.NoError(t, submit(sign(made, passed)))
	require.NoError(t, submit(sign(made, passed)), "again")
	require.Equal(t, 2, b.Count("artifact_smoke", ""))
	_, err = b.trust.RevokeRunner(b.operator, id, "stolen")
	require.NoError(t, err)
	platformtest.Refused(t, active(), fault.EvidenceMissing, "input.to")
	platformtest.Refused(t, submit(sign(made, passed)), fault.SignatureUntrusted, "input.signature")
	_, sign = b.runner("ci-2")
	require.NoError(t, submit(sign(made, passed)), "the same bytes by another runner")
	smoked, err := b.trust.Smoked(b.publisher, []ids.ID{made.ID})
	require.NoError(t, err)
	require.True(t, smoked[made.ID])
	require.NoError(t, active())
}

// The newest report decides: what failed later is not good because it once was.
func TestASmokeThatFailsLaterCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := b.published(ref, "k")
	_, sign := b.runner("ci")
	for _, outcome := range []string{"passed", "failed"} {
		_, err := b.trust.SubmitSmoke(b.publisher, sign(made, smokeOf(t, made, outcome)))
		require.NoError(t, err)
	}
	smoked, err := b.trust.Smoked(b.publisher, []ids.ID{made.ID})
	require.NoError(t, err)
	require.False(t, smoked[made.ID])
}

func TestASmokeIsSetAsideByTheStaffWithAReason(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := b.published(ref, "k")
	step := artifact.PromoteArtifactInput{ArtifactID: made.ID, Reason: "tested"}
	for _, step.To = range []lifecycle.Stage{lifecycle.StageStaged, lifecycle.StageCanary} {
		_, err := b.verbs.PromoteArtifact(b.operator, step)
		require.NoError(t, err)
	}
	step.To, step.Override = lifecycle.StageActive, "a fix of a hole, smoked by hand"
	_, err := b.verbs.PromoteArtifact(b.operator, step)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("promotion", "override = $1 AND to_stage = 'ACTIVE'", step.Override))
	require.Equal(t, 1, b.Count("audit_entry", "after->>'override' = $1", step.Override))
}

// A tenant's artifact is its own at every stage: what keeps it from others is the step of the version that pins it. Its
// admin sets nothing aside, sees its own reports, and brings none for another's.
func TestATenantsArtifactNeedsASmokeOnlyWithItsVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	stranger := b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other)))
	ref, _ := b.push()
	project := b.Project(tenant)
	in := b.input(ref, "k")
	in.ProjectID = &project.ID
	made, err := b.verbs.PublishArtifact(admin, in)
	require.NoError(t, err)
	_, err = b.verbs.PromoteArtifact(admin, artifact.PromoteArtifactInput{ArtifactID: made.ID,
		To: lifecycle.StageStaged, Reason: "mine", Override: "trust me"})
	platformtest.Refused(t, err, fault.Forbidden)
	for _, to := range []lifecycle.Stage{lifecycle.StageStaged, lifecycle.StageCanary, lifecycle.StageActive} {
		require.NoError(t, b.promote(admin, made.ID, to))
	}
	_, sign := b.runner("ci")
	report := sign(made, smokeOf(t, made, "passed"))
	_, err = b.trust.SubmitSmoke(stranger, report)
	platformtest.Refused(t, err, fault.NotFound)
	require.Zero(t, b.Count("artifact_smoke", ""))
	_, err = b.trust.SubmitSmoke(admin, report)
	require.NoError(t, err)
	for as, want := range map[string]int{"admin": 1, "stranger": 0} {
		by := map[string]func() (map[ids.ID][]*db.ArtifactSmoke, error){
			"admin": func() (map[ids.ID][]*db.ArtifactSmoke, error) {
				return b.trust.SmokesOf(admin, []ids.ID{made.ID})
			},
			"stranger": func() (map[ids.ID][]*db.ArtifactSmoke, error) {
				return b.trust.SmokesOf(stranger, []ids.ID{made.ID})
			},
		}[as]
		found, err := by()
		require.NoError(t, err)
		require.Len(t, found[made.ID], want, as)
	}
}

func TestABadReportOfASmokeIsRefusedWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := b.published(ref, "k")
	_, sign := b.runner("ci")
	good := sign(made, smokeOf(t, made, "passed"))
	for path, change := range map[string]func(*trust.SmokeInput){
		"input.digest":    func(in *trust.SmokeInput) { in.Digest = "sha256:1" },
		"input.signature": func(in *trust.SmokeInput) { in.Signature = "" },
		"input.report": func(in *trust.SmokeInput) {
			in.Report = string(make([]byte, reports.MaxSmoke+1))
		},
	} {
		bad := good
		change(&bad)
		_, err := b.trust.SubmitSmoke(b.publisher, bad)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	bad := good
	bad.Report += " "
	_, err := b.trust.SubmitSmoke(b.publisher, bad)
	platformtest.Refused(t, err, fault.DigestMismatch, "input.digest")
	require.Zero(t, b.Count("artifact_smoke", ""))
}
