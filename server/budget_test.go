package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
)

const (
	setBudget = `mutation($input: SetBudgetInput!) { setBudget(input: $input) { id amount held left largestOvershoot } }`
	rent      = `mutation($input: RequestAllocationInput!) { requestAllocation(input: $input) { allocations { id } } }`
)

func budgetOf(scope string, target any, changes object) arguments {
	in := object{"scope": scope, "targetId": target, "amount": "1000000", "currency": "EUR", "reason": "a test"}
	for name, value := range changes {
		in[name] = value
	}
	return arguments{"input": in}
}

// A pipeline's key may spend this much: from the budget to the refusal and on, by the public API alone.
func TestAKeySpendsItsBudgetAndNoMore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	b.ListPrice("", "EUR", "6")
	b.Kit.Node(4)
	b.Kit.Node(4)
	account, key := b.ServiceAccount(h.project, authz.AllocationCreate, authz.AllocationRead, authz.BudgetManage)
	set := func(credential, amount string) answer {
		return b.post(credential, setBudget, budgetOf("SERVICE_ACCOUNT", account.ID,
			object{"amount": amount, "span": "TOTAL", "atLimit": "DECOMMISSION"}))
	}
	request := func(key, idempotency string) answer {
		return b.post(key, rent, arguments{"input": object{"projectId": h.Project, "shape": "BAREMETAL",
			"idempotencyKey": idempotency}})
	}
	got := set(h.admin, "6.50")
	require.Empty(t, got.Errors, got.Raw)
	require.Contains(t, got.Raw, `"held":"0"`)
	require.Empty(t, request(key, "k1").Errors)

	rows, keys := b.Count("allocation", ""), b.Count("idempotency", "")
	got = request(key, "k2")
	require.Equal(t, string(fault.BudgetExceeded), got.code(), got.Raw)
	require.Equal(t, []string{"input.count"}, got.paths())
	require.Contains(t, got.Raw, "rented capacity reserves 12, including this request", "the figures are there")
	require.Equal(t, []int{rows, keys}, []int{b.Count("allocation", ""), b.Count("idempotency", "")},
		"nothing is written")
	require.Empty(t, request(h.admin, "k3").Errors, "whoever has no such budget goes on")

	require.Equal(t, string(fault.Forbidden), set(key, "100").code(), "nobody lifts its own limit")
	require.Equal(t, string(fault.BudgetBelowHeld), set(h.admin, "5.99").code())
	got = set(h.admin, "6")
	require.Empty(t, got.Errors, "what is held, to the cent: "+got.Raw)
	require.Contains(t, got.Raw, `"left":"0"`)
	require.Contains(t, got.Raw, `"largestOvershoot":"3.25"`)
}

func TestABadBudgetIsRefusedByCodeAndFieldAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h, other := b.build(), b.build()
	b.ListPrice("", "EUR", "6")
	account, _ := b.ServiceAccount(h.project, authz.AllocationCreate)
	for name, bad := range map[string]struct {
		scope, path string
		target      any
		change      object
		code        fault.Code
	}{
		"nothing":           {"PROJECT", "input.amount", h.Project, object{"amount": "0"}, fault.InvalidArgument},
		"less than nothing": {"PROJECT", "input.amount", h.Project, object{"amount": "-1"}, fault.InvalidArgument},
		"a tenth of a cent": {"PROJECT", "input.amount", h.Project, object{"amount": "1.001"},
			fault.InvalidArgument},
		"no currency": {"PROJECT", "input.currency", h.Project, object{"currency": "EURO"},
			fault.InvalidArgument},
		"another currency": {"PROJECT", "input.currency", h.Project, object{"currency": "USD"},
			fault.FailedPrecondition},
		"a horizon of a minute": {"PROJECT", "input.horizonSeconds", h.Project, object{"horizonSeconds": 60},
			fault.InvalidArgument},
		"a threshold of nothing": {"PROJECT", "input.thresholds", h.Project, object{"thresholds": []int{0}},
			fault.InvalidArgument},
		"no reason": {"PROJECT", "input.reason", h.Project, object{"reason": ""},
			fault.InvalidArgument},
		"less than what is held": {"PROJECT", "input.amount", h.Project, object{"amount": "1"},
			fault.BudgetBelowHeld},
		"an instance of another":     {"INSTANCE", "", other.Instance, nil, fault.NotFound},
		"a project as an instance":   {"INSTANCE", "", h.Project, nil, fault.NotFound},
		"what does not exist at all": {"TENANT", "", "ten_00000000000000000000000000", nil, fault.NotFound},
	} {
		before := b.fingerprint()
		got := b.post(h.admin, setBudget, budgetOf(bad.scope, bad.target, bad.change))
		require.Equal(t, string(bad.code), got.code(), "%s: %s", name, got.Raw)
		if bad.path != "" {
			require.Contains(t, got.paths(), bad.path, "%s: %s", name, got.Raw)
		}
		require.Equal(t, before, b.fingerprint(), "%s: something was written", name)
	}
	b.SQL(`UPDATE billing_account SET currency = 'CHF' WHERE tenant_id = $1`, h.Tenant)
	got := b.post(h.admin, setBudget, budgetOf("SERVICE_ACCOUNT", account.ID, object{"currency": "CHF"}))
	require.Equal(t, string(fault.PriceMissing), got.code(), "a currency without a price: "+got.Raw)
	require.Contains(t, got.paths(), "input.currency")
}
