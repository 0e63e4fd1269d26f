package e2e_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// A reference app passes the seven conditions by what a real installation has recorded: an instance's whole life, its
// adapter's calls, the events, and the reports that a registered runner signs. service/onboarding has a mutant for each.
func TestAReferenceAppIsReadyForOnboarding(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	instance, operation := launch(t, ctx, c, "hello-cluster", "hello-ready", rent(t, ctx, c))
	succeeds(t, ctx, c, operation)
	upgraded, err := gql.UpgradeInstance(ctx, c, gql.UpgradeInstanceInput{InstanceId: instance,
		Config: json.RawMessage(`{"greeting": "Good day"}`), DeadlineSeconds: 180, Reason: "end-to-end test",
		IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	succeeds(t, ctx, c, upgraded.UpgradeInstance.Operation.Id)
	back, err := gql.RollbackInstance(ctx, c, gql.RollbackInstanceInput{InstanceId: instance, DeadlineSeconds: 180,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	succeeds(t, ctx, c, back.RollbackInstance.Operation.Id)
	decommission(t, ctx, c, instance)

	before, err := gql.GetAppOnboarding(ctx, shared.Operator, "hello-cluster", "")
	require.NoError(t, err)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	_, err = gql.RegisterRunner(ctx, shared.Operator, gql.RegisterRunnerInput{Name: "onboarding-bench",
		PublicKey: base64.StdEncoding.EncodeToString(public), Reason: "end-to-end test"})
	require.NoError(t, err)
	for kind, name := range map[gql.EvidenceKind]string{gql.EvidenceKindConformance: "conformance",
		gql.EvidenceKindTenancy: "tenancy"} {
		signedReport(t, ctx, before.AppOnboarding.ManifestId, kind, name, private)
	}
	kept, err := gql.CheckAppOnboarding(ctx, shared.Operator, gql.CheckAppOnboardingInput{AppSlug: "hello-cluster",
		Reason: "end-to-end test"})
	require.NoError(t, err)
	for _, check := range kept.CheckAppOnboarding.Checks {
		require.Equal(t, gql.OnboardingVerdictPassed, check.Verdict, "%s: %s %+v", check.Condition, check.Message, check.Evidence)
		require.NotEmpty(t, check.Evidence, check.Condition)
	}
	require.True(t, kept.CheckAppOnboarding.Passed)
}

// signedReport brings a report of the hello cluster's controller, which is kept beside its manifest, with a runner's word.
func signedReport(t *testing.T, ctx context.Context, manifest string, kind gql.EvidenceKind, name string,
	key ed25519.PrivateKey) {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	require.NoError(t, err)
	report, err := exec.CommandContext(ctx, filepath.Join(bin, "hello-cluster-controller"), "--print-evidence", name).Output()
	require.NoError(t, err)
	sum := digest.Of(report)
	signature := ed25519.Sign(key, evidence.Statement(lifecycle.EvidenceKind(kind), sum))
	_, err = gql.SubmitEvidence(ctx, shared.Operator, gql.SubmitEvidenceInput{ManifestId: manifest, Kind: kind,
		Report: string(report), Digest: sum, Signature: base64.StdEncoding.EncodeToString(signature)})
	require.NoError(t, err)
}
