package member_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/member"
)

// reason asserts that a refusal has this reason at this path.
func reason(t *testing.T, err error, code, because fault.Code, path string) {
	t.Helper()
	require.True(t, fault.Is(err, code), "want %s: %v", code, err)
	for _, one := range fault.From(err).Reasons {
		if one.Code == because && one.Path == path {
			return
		}
	}
	require.Failf(t, "another reason", "want %s at %s: %+v", because, path, fault.From(err).Reasons)
}

func TestPolicyRefusesMembersByEveryRuleAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	three := b.allocation()
	b.SQL(`UPDATE compute_node SET region = 'a1', sku = 'h100'`)
	b.SQL(`UPDATE allocation SET region = 'a1', sku = 'h100'`)
	along := b.add("k", 1)
	along.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}
	named := along
	named.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal, Region: "a1", SKU: "h100"}
	before := b.written()
	for _, c := range []struct {
		document string
		in       member.AddInput
		code     fault.Code
		path     string
	}{
		{`{"apps":{"allow":[]}}`, b.add("k", 1, three), fault.AppDenied, "input.instanceId"},
		{`{"maxMembersPerInstance":3}`, b.add("k", 1, three), fault.MembersCeiling, "input.count"},
		{`{"maxMembers":4}`, b.add("k", 2, three), fault.MembersCeiling, "input.count"},
		{`{"regions":{"deny":["a1"]}}`, b.add("k", 1, three), fault.RegionDenied, "input.allocationIds.0"},
		{`{"skus":{"allow":["slow"]}}`, b.add("k", 1, three), fault.SKUDenied, "input.allocationIds.0"},
		{`{"maxGpus":15}`, along, fault.GPUsCeiling, "input.intent"},
		{`{"maxHourlyCost":{"amountMicros":1,"currency":"EUR"}}`, along, fault.SpendingCeiling, "input.intent"},
		{`{"regions":{"deny":["a1"]}}`, named, fault.RegionDenied, "input.intent.region"},
		{`{"skus":{"deny":["h100"]}}`, named, fault.SKUDenied, "input.intent.sku"},
	} {
		b.Policy(b.project, c.document)
		_, err := b.service.Add(b.admin, c.in)
		reason(t, err, fault.PolicyDenied, c.code, c.path)
	}
	_, err := b.service.Add(b.admin, along)
	platformtest.Refused(t, err, fault.CapacityUnavailable, "input.intent") // no node is left that policy lets through
	b.Policy(b.project, `{"regions":{"deny":["a1"]}}`)
	_, err = b.service.Replace(b.admin, member.ReplaceInput{Input: b.on(0, "k"), AllocationID: three.ID})
	reason(t, err, fault.PolicyDenied, fault.RegionDenied, "input.allocationId")
	require.Equal(t, before, b.written())

	_, err = b.service.Drain(b.admin, b.on(0, "d"))
	require.NoError(t, err, "a drain is never policy's to refuse")
	b.SQL(`UPDATE operation SET state = 'RUNNING'`)
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now()`)
	_, err = b.service.Remove(b.admin, b.on(1, "r"))
	require.NoError(t, err, "nor a removal")
}

func TestAPlanOfMembersCarriesPolicysWord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.add("k", 1, b.one)
	open, err := b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.True(t, open.Allowed)
	b.Policy(b.project, `{"maxMembersPerInstance":3}`)
	in.PlanHash = open.Hash
	_, err = b.service.Add(b.admin, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	shut, err := b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.False(t, shut.Allowed)
	verdict := said(t, shut, lifecycle.VerdictPolicy)
	require.Equal(t, lifecycle.VerdictRefused, verdict.Outcome)
	require.Equal(t, []any{fault.MembersCeiling, "input.count"},
		[]any{verdict.Reasons[0].Code, verdict.Reasons[0].Path})
	b.Policy(b.project, `{"maxMembers":3}`)
	other, err := b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.NotEqual(t, shut.Hash, other.Hash, "another rule is another plan")
	b.Policy(b.project, `{}`)
	_, err = b.service.Add(b.admin, in)
	require.NoError(t, err, "everything stands as the plan found it")
}

// said returns one source's verdict in a plan.
func said(t *testing.T, plan *change.Plan, source lifecycle.VerdictSource) *change.Verdict {
	t.Helper()
	for _, verdict := range plan.Verdicts {
		if verdict.Source == source {
			return verdict
		}
	}
	require.Failf(t, "silence", "%s says nothing", source)
	return nil
}

func TestAnInstanceGrowsAsFarAsItsEntitlement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	three := b.allocation()
	before := b.written()
	for limit, path := range map[string]string{"max_members = 3": "input.count",
		"max_gpus = 11": "input.allocationIds"} {
		b.SQL(`UPDATE entitlement SET max_members = NULL, max_gpus = NULL`)
		b.SQL(`UPDATE entitlement SET ` + limit)
		_, err := b.service.Add(b.admin, b.add("k", 1, three))
		reason(t, err, fault.NotEntitled, fault.EntitlementLimit, path)
		plan, err := b.service.PlanAdd(b.admin, b.add("k", 1, three))
		require.NoError(t, err)
		require.Equal(t, fault.EntitlementLimit, said(t, plan, lifecycle.VerdictQuota).Reasons[0].Code)
	}
	b.SQL(`UPDATE entitlement SET max_members = 4, max_gpus = 12, expires_at = now() - interval '1 second'`)
	_, err := b.service.Add(b.admin, b.add("k", 1, three))
	reason(t, err, fault.NotEntitled, fault.NotEntitled, "input.instanceId")
	require.Equal(t, before, b.written())
	plan, err := b.service.PlanReplace(b.admin, member.ReplaceInput{Input: b.on(0, "r")})
	require.NoError(t, err)
	require.Equal(t, lifecycle.VerdictAllowed, said(t, plan, lifecycle.VerdictQuota).Outcome,
		"mending needs no entitlement")
	b.SQL(`UPDATE entitlement SET expires_at = NULL, max_gpus = 9`)
	plan, err = b.service.PlanReplace(b.admin, member.ReplaceInput{Input: b.on(0, "r"), AllocationID: three.ID})
	require.NoError(t, err)
	require.Equal(t, "input.allocationId", said(t, plan, lifecycle.VerdictQuota).Reasons[0].Path,
		"the others keep the old allocation in use")
	b.SQL(`UPDATE entitlement SET max_gpus = 12`)
	_, err = b.service.Add(b.admin, b.add("k", 1, three))
	require.NoError(t, err)
}
