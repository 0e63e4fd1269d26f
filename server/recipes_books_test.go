package server

import (
	"maps"

	"github.com/gpuaas/app-platform/domain/ids"
)

// joined are the recipes of all.
func joined(parts ...map[string]func(v, a *house) []arguments) map[string]func(v, a *house) []arguments {
	all := map[string]func(v, a *house) []arguments{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// recipesOfBooks are the recipes of prices and books.
var recipesOfBooks = map[string]func(v, a *house) []arguments{
	"query prices": func(v, _ *house) []arguments {
		return []arguments{{"filter": object{"projectId": v.Project}}, {"filter": object{"tenantId": v.Tenant}}}
	},
	"query billingPeriods":   func(v, _ *house) []arguments { return one("tenantId", v.Tenant) },
	"query billingRuns":      func(v, _ *house) []arguments { return one("tenantId", v.Tenant) },
	"query creditGrants":     func(v, _ *house) []arguments { return one("tenantId", v.Tenant) },
	"query verifyBillingRun": func(v, _ *house) []arguments { return one("id", v.Run) },
	"query statement": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project}, {"tenantId": v.Tenant}}
	},
	"query exportStatement": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project, "format": "CSV"}, {"tenantId": v.Tenant, "format": "JSON"}}
	},
	"query explainLine": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project, "periodId": v.Period, "key": v.line}}
	},
	"query planRerate":       plain(pricesOf("2026-01-01T00:00:00Z")),
	"query planReopenPeriod": func(v, _ *house) []arguments { return one("periodId", v.Period) },
	"mutation setPrice":      plain(pricesOf("2099-01-01T00:00:00Z")),
	"mutation rerate": func(v, a *house) (all []arguments) {
		for _, with := range plain(pricesOf("2026-01-01T00:00:00Z"))(v, a) {
			with["input"].(object)["planHash"] = "mine"
			all = append(all, with)
		}
		return all
	},
	"mutation setBillingAccount": plain(func(v, _ *house) []object {
		return []object{{"tenantId": v.Tenant, "currency": "EUR", "graceSeconds": 0, "reason": "mine"}}
	}),
	"mutation grantCredit": input(func(v, _ *house) []object {
		return []object{{"tenantId": v.Tenant, "amount": "1", "currency": "EUR", "reason": "mine"}}
	}),
	"query budgets": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project}, {"tenantId": v.Tenant}}
	},
	"query costSummary": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project}, {"tenantId": v.Tenant}}
	},
	"query costs": func(v, _ *house) (all []arguments) {
		for _, by := range []string{"PROJECT", "APP", "METER", "INSTANCE", "MEMBER", "OPERATION", "PERSON",
			"HOUR", "DAY"} {
			all = append(all, arguments{"projectId": v.Project, "by": by}, arguments{"tenantId": v.Tenant, "by": by})
		}
		return append(all, arguments{"projectId": v.Project, "by": "LABEL", "label": "team"})
	},
	"mutation setBudget": plain(func(v, _ *house) (all []object) {
		for scope, target := range map[string]ids.ID{"TENANT": v.Tenant, "PROJECT": v.Project,
			"SERVICE_ACCOUNT": v.Account, "INSTANCE": v.Instance} {
			all = append(all, object{"scope": scope, "targetId": target, "amount": "1000000", "currency": "EUR",
				"reason": "mine"})
		}
		return all
	}),
	"mutation removeBudget": func(v, _ *house) []arguments {
		return []arguments{{"budgetId": v.Budget,
			"reason": "mine"}}
	},
	"mutation reopenPeriod": func(v, _ *house) []arguments {
		return []arguments{{"periodId": v.Period, "planHash": "mine", "reason": "mine"}}
	},
}

// addBooks creates an account, a budget and a closed period of the house, with a run whose one line costs nothing.
func (b *bench) addBooks(h *house) {
	h.Budget = ids.New(ids.Budget)
	b.SQL(`INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at)
		VALUES ($1, 'EUR', 0, now())`, h.Tenant)
	b.SQL(`INSERT INTO budget (id, tenant_id, project_id, scope, target_id, currency, amount, span, horizon_seconds,
		thresholds, at_limit, reason, created_by,
		created_at, updated_at) VALUES ($1, $2, $3, 'PROJECT', $3, 'EUR', 1000000, 'MONTH', 3600, '{50}', 'TELL', 'a test',
		'', now(), now())`, h.Budget,
		h.Tenant, h.Project)
	h.Period, h.Run = ids.New(ids.BillingPeriod), ids.New(ids.BillingRun)
	b.SQL(`INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status, closed_at)
		VALUES ($1, $2, 'EUR', 0, '2026-01-01', '2026-02-01', 'CLOSED', '2026-02-01')`, h.Period, h.Tenant)
	b.SQL(`INSERT INTO billing_run (id, tenant_id, period_id, seq, statement_id, event_to, generation, watermark,
		engine,
		price_hash, input_digest, output_digest, lines, unpriced) VALUES ($1, $2, $3, 1, $3, '2026-02-01',
		platform.generation(), pg_current_xact_id(), 1, '', '', '', 0, 0)`, h.Run, h.Tenant, h.Period)
	h.line = "line-of-" + string(h.Project)
	b.SQL(`INSERT INTO billing_line (run_id, tenant_id, project_id, period_id, seq, key, line)
		VALUES ($1, $2, $3, $4, 1, $5::text,
		json_build_object('key', $5::text, 'project', $3::text, 'meter', 'tokens', 'unit', 'token', 'quantity', '1',
		'billed', '1', 'exact', '0', 'amount', '0'))`,
		h.Run, h.Tenant, h.Project, h.Period, h.line)
}
