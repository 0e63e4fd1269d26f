package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

// addBillingFixtures answers what the commands about prices and books call.
func addBillingFixtures(s *clienttest.Server) {
	const from, to = "2026-11-01T00:00:00.000000Z", "2026-12-01T00:00:00.000000Z"
	version := object{"id": "prc_1", "meter": "tokens", "sku": "", "region": "", "currency": "EUR", "scope": "TENANT",
		"tenantId":  "ten_1",
		"validFrom": from, "measure": "QUANTITY", "per": "1000",
		"tiers":   []object{{"upTo": "1000000", "price": "0.004"}, {"price": "0.002"}},
		"minimum": "0", "roundUpTo": "0", "number": 2, "hash": "abc", "reason": "price list"}
	period := object{"id": "bpr_1", "currency": "EUR", "startsAt": from, "endsAt": to, "status": "CLOSED",
		"closedAt": to}
	run := object{"id": "brn_1", "periodId": "bpr_1", "statementId": "bpr_1", "number": 3, "eventTo": to,
		"watermark": "812", "engine": 1,
		"priceHash": "aa", "inputDigest": "bb", "outputDigest": "cc0123456789abcdef", "lines": 2, "unpriced": 1,
		"createdAt": to}
	line := object{"key": "k1", "projectId": "prj_1", "from": from, "to": to, "correction": true, "meter": "tokens",
		"unit": "token", "sku": "",
		"region": "", "priceId": "prc_1", "quantity": "1500", "billed": "1500", "amount": "6.00"}
	unpriced := object{"key": "k2", "projectId": "prj_1", "from": from, "to": to, "correction": false,
		"meter": "gpu_seconds", "unit": "second",
		"sku": "h100", "region": "eu", "quantity": "3600", "billed": "3600"}
	grant := object{"id": "crg_1", "tenantId": "ten_1", "currency": "EUR", "amount": "50", "left": "49",
		"priority": 100, "expiresAt": to, "reason": "welcome", "createdAt": from}
	plan := object{"hash": "h1", "changes": []object{{"tenantId": "ten_1", "projectId": "prj_1", "periodId": "bpr_1",
		"meter": "tokens",
		"sku":   "", "currency": "EUR", "before": "6", "after": "5.5"}}}
	explained := object{"key": "k1", "projectId": "prj_1", "periodId": "bpr_1", "meter": "gpu_seconds",
		"unit": "second", "sku": "h100",
		"region": "eu", "priceId": "prc_1", "currency": "EUR", "quantity": "3600", "billed": "3600", "exact": "2.125",
		"amount": "2.12",
		"bookings": []object{{"id": "ltx_1", "correction": false, "runId": "brn_1", "statementId": "bpr_1",
			"quantity": "3600", "billed": "3600",
			"amount": "2.12", "effectiveAt": to, "bookedAt": to}},
		"shares": []object{{"allocationId": "alc_1", "memberId": "mem_1", "operationId": "op_1", "quantity": "3600",
			"billed": "3600",
			"amount": "2.12", "operation": object{"id": "op_1", "kind": "INSTANCE_CREATE", "requestedAt": from,
				"auditId": "aud_1", "actorName": "ada"}}},
		"shareCount": 1, "recordCount": 61, "records": []object{{"source": "alc_1", "usageId": "u1", "fromAt": from,
			"toAt":     from,
			"quantity": "60", "unit": "second", "recordedAt": to}}}
	budget := object{"id": "bud_1", "tenantId": "ten_1", "projectId": "prj_1", "scope": "PROJECT", "targetId": "prj_1",
		"currency": "EUR", "amount": "500",
		"span": "MONTH", "horizonSeconds": 3600, "thresholds": []int{50, 80, 100}, "atLimit": "DECOMMISSION",
		"spent": "412.5", "spentAt": to, "held": "9.6",
		"left": "77.9", "hourly": "9.6", "unpriced": 0, "reached": 80, "largestOvershoot": "5.2", "trouble": "",
		"reason": "agreed"}
	for field, value := range map[string]any{
		"budgets": []object{budget}, "setBudget": budget, "removeBudget": budget,
		"costs": []object{{"key": "usr_2", "name": "Ada", "currency": "EUR", "amount": "12.5"},
			{"key": "", "name": "", "currency": "EUR", "amount": "1"}},
		"costSummary": object{"currency": "EUR", "from": from, "to": to, "spent": "13.5", "hourly": "9.6",
			"forecast": "420.75", "unpriced": 1},
		"planLaunchInstance": object{"hash": "h2", "allowed": true, "version": "1.2.0", "members": []object{
			{"componentKey": "worker", "action": "ADD", "reachable": true, "profile": "SERVICE", "volumes": []object{
				{"slot": "work", "volumeId": "vol_1", "path": "/work"},
				{"slot": "weights", "volumeId": "vol_2", "path": "/weights", "readOnly": true}}},
		},
			"cost":     planCost(),
			"verdicts": []object{{"source": "STATE", "outcome": "ALLOWED", "reasons": []object{}}}},
		"planReleaseAllocation": object{"hash": "h3", "allocation": object{"id": "alc_1", "name": "slot-1"},
			"instance": object{"id": "ins_1", "name": "one"},
			"allowed":  true, "code": nil, "reasons": []object{}, "cost": planCost()},
		"prices": page(version), "setPrice": version, "rerate": version,
		"planRerate": plan, "planReopenPeriod": plan, "reopenPeriod": period, "creditGrants": []object{grant},
		"grantCredit":       grant,
		"setBillingAccount": object{"tenantId": "ten_1", "currency": "EUR", "graceSeconds": 3600, "updatedAt": to},
		"explainLine":       explained,
		"billingPeriods":    []object{period},
		"billingRuns":       page(run),
		"verifyBillingRun":  object{"run": run, "same": true, "differs": "", "recorded": "", "recomputed": ""},
		"statement": object{"period": period, "tenantId": "ten_1", "projectId": "prj_1", "final": true,
			"lines":   []object{line, unpriced},
			"charges": "6.00", "credits": "1.00", "total": "5.00", "unpriced": 1},
	} {
		s.Handle(field, answer(value))
	}
}

// planCost is what a plan makes of the price of an hour: something priced, something not.
func planCost() object {
	return object{"totals": []object{{"currency": "EUR", "before": "9.6", "after": "19.2", "delta": "9.6",
		"left": "9.6"}},
		"unpriced": 1,
		"capacity": []object{
			{"effect": "RENTED", "count": 1, "shape": "BAREMETAL", "gpuCount": 8, "sku": "h100", "region": "eu",
				"priceId": "prc_1",
				"hourly":  object{"currency": "EUR", "amount": "9.600000"}},
			{"effect": "LEFT", "count": 1, "shape": "GPU_SLICE", "gpuCount": 1, "sku": "", "region": ""}},
		"usage": []object{
			{"dimension": "tokens", "unit": "token", "price": object{"id": "prc_2", "currency": "EUR", "per": "1000000",
				"tiers": []object{{"upTo": "100000000", "price": "1.20"}, {"price": "0.90"}}, "minimum": "0",
				"roundUpTo": "0"}},
			{"dimension": "jobs", "unit": "job"}}}
}
