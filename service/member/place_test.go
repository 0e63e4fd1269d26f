package member_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/member"
)

// denied are the reasons of a refusal by policy, as code and path.
func denied(t *testing.T, err error) (found []string) {
	t.Helper()
	require.True(t, fault.Is(err, fault.PolicyDenied), "%v", err)
	for _, one := range fault.From(err).Reasons {
		found = append(found, string(one.Code)+" "+one.Path)
	}
	return found
}

func TestPolicyJudgesEveryNamedAllocationThoughOthersAreLikeIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.allocation(), b.allocation()
	b.SQL(`UPDATE allocation SET region = 'a1', sku = 'h100'`)
	in := b.add("k", 2, first, second)
	for _, c := range []struct {
		region, sku, document string
		want                  []string
	}{
		{"b1", "h100", `{"regions":{"deny":["b1"]}}`, []string{"REGION_DENIED input.allocationIds.1"}},
		{"a1", "l40s", `{"skus":{"deny":["l40s"]}}`, []string{"SKU_DENIED input.allocationIds.1"}},
		{"b1", "l40s", `{"regions":{"deny":["b1"]},"skus":{"deny":["l40s"]}}`,
			[]string{"REGION_DENIED input.allocationIds.1", "SKU_DENIED input.allocationIds.1"}},
		{"a1", "h100", `{"regions":{"deny":["a1"]}}`,
			[]string{"REGION_DENIED input.allocationIds.0", "REGION_DENIED input.allocationIds.1"}},
	} {
		b.SQL(`UPDATE allocation SET region = $2, sku = $3 WHERE id = $1`, second.ID, c.region, c.sku)
		b.Policy(b.project, c.document)
		before := b.written()
		_, err := b.service.Add(b.admin, in)
		require.Equal(t, c.want, denied(t, err))
		require.Equal(t, before, b.written())
	}
}

func TestAReplacementIsCountedWithoutTheAllocationThatItsMemberLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t) // members 0 and 1 share an allocation of four GPUs, member 2 has one of four to itself
	node, _ := b.Node(8)
	larger := b.Allocation(b.project, node)
	replace := func(i int) member.ReplaceInput {
		return member.ReplaceInput{Input: b.on(i, "r"), AllocationID: larger.ID}
	}
	b.SQL(`UPDATE entitlement SET max_gpus = 11`)
	before := b.written()
	_, err := b.service.Replace(b.admin, replace(2))
	reason(t, err, fault.NotEntitled, fault.EntitlementLimit, "input.allocationId")
	require.Equal(t, before, b.written())
	b.SQL(`UPDATE entitlement SET max_gpus = 12`)
	shared, err := b.service.PlanReplace(b.admin, replace(0))
	require.NoError(t, err)
	verdict := said(t, shared, lifecycle.VerdictQuota)
	require.Equal(t, lifecycle.VerdictRefused, verdict.Outcome, "another member keeps the old allocation in use")
	alone, err := b.service.PlanReplace(b.admin, replace(2))
	require.NoError(t, err)
	verdict = said(t, alone, lifecycle.VerdictQuota)
	require.Equal(t, lifecycle.VerdictAllowed, verdict.Outcome, "nobody uses the old allocation afterwards: 4 + 8 GPUs")
	_, err = b.service.Replace(b.admin, replace(2))
	require.NoError(t, err)
}
