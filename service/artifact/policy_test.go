package artifact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

func TestThePlatformsPolicyRulesWhereArtifactsComeFrom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	asked := b.asked.Load()
	b.Policy(nil, `{"artifactSources":{"allow":["`+b.host+`/other"]}}`)
	err := b.publish(ref, "k")
	refused(t, err, fault.PolicyDenied, "input.ref")
	require.Equal(t, fault.SourceDenied, fault.From(err).Reasons[0].Code)
	b.Policy(nil, `{"final":{"artifactSources":["`+b.host+`"]}}`)
	err = b.publish(ref, "k")
	refused(t, err, fault.PolicyDenied, "input.ref")
	require.Equal(t, fault.PlatformFinal, fault.From(err).Reasons[0].Code)
	require.Equal(t, asked, b.asked.Load(), "a registry that is not allowed is not asked")
	require.Zero(t, b.Count("artifact", "")+b.Count("idempotency", ""))
	b.Policy(nil, `{"artifactSources":{"allow":["`+b.host+`/apps"]}}`)
	require.NoError(t, b.publish(ref, "k"))
}
