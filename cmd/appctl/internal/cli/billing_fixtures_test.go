package cli_test

import "github.com/gpuaas/app-platform/sdk/client/clienttest"

// addBillingFixtures answers what the commands about prices and books call.
func addBillingFixtures(s *clienttest.Server) {
	const from, to = "2026-11-01T00:00:00.000000Z", "2026-12-01T00:00:00.000000Z"
	version := object{"id": "prc_1", "meter": "tokens", "sku": "", "region": "", "currency": "EUR", "scope": "TENANT", "tenantId": "ten_1",
		"validFrom": from, "measure": "QUANTITY", "per": "1000", "tiers": []object{{"upTo": "1000000", "price": "0.004"}, {"price": "0.002"}},
		"minimum": "0", "roundUpTo": "0", "number": 2, "hash": "abc", "reason": "price list"}
	period := object{"id": "bpr_1", "currency": "EUR", "startsAt": from, "endsAt": to, "status": "CLOSED", "closedAt": to}
	run := object{"id": "brn_1", "periodId": "bpr_1", "statementId": "bpr_1", "number": 3, "eventTo": to, "watermark": "812", "engine": 1,
		"priceHash": "aa", "inputDigest": "bb", "outputDigest": "cc0123456789abcdef", "lines": 2, "unpriced": 1, "createdAt": to}
	line := object{"key": "k1", "projectId": "prj_1", "from": from, "to": to, "correction": true, "meter": "tokens", "unit": "token", "sku": "",
		"region": "", "priceId": "prc_1", "quantity": "1500", "billed": "1500", "amount": "6.00"}
	unpriced := object{"key": "k2", "projectId": "prj_1", "from": from, "to": to, "correction": false, "meter": "gpu_seconds", "unit": "second",
		"sku": "h100", "region": "eu", "quantity": "3600", "billed": "3600"}
	for field, value := range map[string]any{
		"prices": page(version), "setPrice": version, "rerate": version,
		"planRerate": object{"hash": "h1", "changes": []object{{"tenantId": "ten_1", "projectId": "prj_1", "periodId": "bpr_1", "meter": "tokens",
			"sku": "", "currency": "EUR", "before": "6", "after": "5.5"}}},
		"billingPeriods":   []object{period},
		"billingRuns":      page(run),
		"verifyBillingRun": object{"run": run, "same": true, "differs": "", "recorded": "", "recomputed": ""},
		"statement": object{"period": period, "tenantId": "ten_1", "projectId": "prj_1", "final": true, "lines": []object{line, unpriced},
			"charges": "6.00", "credits": "1.00", "total": "5.00", "unpriced": 1},
	} {
		s.Handle(field, answer(value))
	}
}
