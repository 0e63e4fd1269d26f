package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// A policy that says a thing twice is refused, and not read as the last of the two: as a variable and in the document's
// text.
func TestAPolicyWithAMemberTwiceIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine := b.build()
	before := b.fingerprint()
	const query = `mutation($input: SetPolicyInput!) { setPolicy(input: $input) { id } }`
	asVariable := b.send(mine.admin, []byte(`{"query":"`+query+`","variables":{"input":{"projectId":"`+
		string(mine.Project)+
		`","reason":"mine","document":{"maxGpus":1,"maxGpus":64}}}}`))
	require.Equal(t, string(fault.InvalidArgument), asVariable.code(), asVariable.Raw)
	require.Contains(t, asVariable.Raw, "variables.input.document.maxGpus")
	asText := b.post(mine.admin, `mutation { setPolicy(input: {projectId: "`+string(mine.Project)+
		`", reason: "mine", document: {maxGpus: 1, maxGpus: 64}}) { id } }`, nil)
	require.NotEmpty(t, asText.Errors, asText.Raw)
	require.Equal(t, before, b.fingerprint())
}

// A limit of nothing is not the absence of a limit.
func TestAnEntitlementWithALimitOfZeroIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine := b.build()
	before := b.fingerprint()
	for _, limit := range []string{"maxInstances", "maxMembers", "maxGpus"} {
		refused := b.post(mine.admin, `mutation($project: ID!, $app: String!, $limits: EntitlementLimitsInput) {
			grantEntitlement(projectId: $project, appSlug: $app, limits: $limits) { id } }`,
			arguments{"project": mine.Project, "app": mine.Slug, "limits": object{limit: 0}})
		require.Equal(t, string(fault.InvalidArgument), refused.code(), limit)
		require.Contains(t, refused.paths(), "limits."+limit)
	}
	require.Equal(t, before, b.fingerprint())
}
