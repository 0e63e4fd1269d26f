package allocation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestPolicyRulesWhatIsRented(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(4)
	b.Node(4)
	b.SQL(`UPDATE compute_node SET region = 'a1', sku = 'h100'`)
	b.SQL(`UPDATE compute_node SET region = 'b1' WHERE id = (SELECT max(id) FROM compute_node)`)
	wanted := b.slice("k", 1, 2)
	wanted.Region, wanted.SKU = "a1", "h100"
	for document, want := range map[string]struct {
		code fault.Code
		path string
	}{
		`{"regions":{"allow":["b1"]}}`:                          {fault.RegionDenied, "input.region"},
		`{"skus":{"deny":["h100"]}}`:                            {fault.SKUDenied, "input.sku"},
		`{"maxGpus":1}`:                                         {fault.GPUsCeiling, "input.count"},
		`{"maxHourlyCost":{"amountMicros":1,"currency":"EUR"}}`: {fault.SpendingCeiling, "input.count"},
	} {
		b.Policy(b.project, document)
		_, err := b.Request(b.admin, wanted)
		platformtest.Refused(t, err, fault.PolicyDenied, want.path)
		require.Equal(t, want.code, fault.From(err).Reasons[0].Code)
	}
	require.Zero(t, b.Count("allocation", "")+b.Count("idempotency", "")+b.Count("audit_entry", "allowed"))

	b.Policy(b.project, `{"regions":{"deny":["a1"]}}`)
	for _, row := range b.got(b.slice("free", 2, 1)) {
		require.Equal(t, "b1", row.Region, "the platform picks among what policy leaves")
	}
	b.Policy(nil, `{"regions":{"allow":["c1"]}}`)
	_, err := b.Request(b.admin, b.slice("none", 1, 1))
	require.True(t, fault.Is(err, fault.CapacityUnavailable), "%v", err)

	b.ListPrice("h100", "EUR", "0.000005")
	b.Policy(nil, `{"maxGpus":4,"maxHourlyCost":{"amountMicros":15,"currency":"EUR"}}`)
	b.Policy(b.project, `{}`)
	b.got(b.slice("last", 1, 2))
	_, err = b.Request(b.admin, b.slice("beyond", 1, 1))
	platformtest.Refused(t, err, fault.PolicyDenied, "input.count")
	require.Len(t, fault.From(err).Reasons, 2, "GPUs and spending, both counted with what is rented already")
	require.Equal(t, 3, b.Count("allocation", ""))
}
