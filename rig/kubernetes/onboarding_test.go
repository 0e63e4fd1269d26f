package kubernetes_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// The reference app of Kubernetes passes the seven conditions by what one walk of a real cluster has recorded, as the
// other reference apps do in rig/e2e.
func TestKubernetesIsReadyForOnboarding(t *testing.T) {
	t.Parallel()
	k := begin(t, 1)
	version, err := k.s.Walk(k.ctx, stack.Kubernetes(), json.RawMessage(`{"snapshotsKept": 7}`))
	require.NoError(t, err)
	kept, err := gql.CheckAppOnboarding(k.ctx, k.s.Operator, gql.CheckAppOnboardingInput{AppSlug: "rke2",
		Version: version, Reason: "test"})
	require.NoError(t, err)
	for _, check := range kept.CheckAppOnboarding.Checks {
		require.Equal(t, gql.OnboardingVerdictPassed, check.Verdict, "%s: %s %+v", check.Condition, check.Message,
			check.Evidence)
	}
	require.True(t, kept.CheckAppOnboarding.Passed)
}
