package drills_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// books is a tenant of a drill's own with a month that is past, the present one, and an hour of usage in the past one.
type books struct {
	w                      *ward
	past, present, project string
	start                  time.Time
	number                 int
	sku                    string
}

// keeps makes the tenant, with a price of 2 an hour.
func (w *ward) keeps(priced bool) *books {
	w.t.Helper()
	name := "drill-" + client.NewKey()[:10]
	tenant, err := gql.CreateTenant(w.ctx, w.operator, gql.CreateTenantInput{DisplayName: name, Slug: name,
		IdempotencyKey: client.NewKey()})
	w.fine(err)
	w.tenant = tenant.CreateTenant.Id
	project, err := gql.CreateProject(w.ctx, w.operator, gql.CreateProjectInput{TenantId: w.tenant, DisplayName: name,
		Slug: name, IdempotencyKey: client.NewKey()})
	w.fine(err)
	b := &books{w: w, project: project.CreateProject.Id, sku: name}
	w.about.TenantID, w.about.ProjectID = w.tenant, b.project
	w.eventually("the present month is open", func() error {
		periods, err := gql.ListBillingPeriods(w.ctx, w.operator, w.tenant)
		if err != nil {
			return err
		}
		for _, one := range periods.BillingPeriods {
			b.present, b.start = one.Id, one.StartsAt.AddDate(0, -1, 0)
			return nil
		}
		return errNotYet
	})
	// The history of a tenant of last month, which no program can make today: what was metered then.
	b.past = string(ids.New(ids.BillingPeriod))
	w.sql(`INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
		VALUES ($1, $2, 'EUR', 3600, $3, $4, 'OPEN')`, b.past, w.tenant, b.start, b.start.AddDate(0, 1, 0))
	if priced {
		from := b.start.AddDate(0, -1, 0)
		w.sql(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms,
			hash,
			reason, created_by) VALUES ($1, $1, 'gpu_seconds', $2, '', 'EUR', 'PLATFORM', $3, 1, $4, '', 'drill', '')`,
			ids.New(ids.PriceVersion), b.sku, from,
			`{"measure": "QUANTITY", "per": "3600", "tiers": [{"price": "2"}]}`)
	}
	b.use("", 0, 3600)
	w.about.PeriodID = b.past
	return b
}

// use records capacity that was used in the past month.
func (b *books) use(borne string, after, seconds int) {
	b.w.t.Helper()
	b.number++
	by := "TENANT"
	if borne != "" {
		by = "PLATFORM"
	}
	from := b.start.Add(time.Duration(after) * time.Second)
	allocation := "alc_" + b.sku
	b.w.sql(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id,
		allocation_id, member_id, operation_id, sku, region, session, unit, quantity, from_at, to_at, borne_by, borne_reason,
		digest) VALUES ($1, 'gpu_seconds', $2, 'CAPACITY', $3, $4, 'ins_1', $1, 'mem_1', 'op_1', $5, 'eu', $1, 'second', $6,
		$7, $8, $9, nullif($10, ''), '')`, allocation, fmt.Sprint("u", b.number), b.w.tenant, b.project,
		b.sku, seconds, from,
		from.Add(time.Duration(seconds)*time.Second), by, borne)
}

// booked waits until the newest run of the past month is a later one than that.
func (b *books) booked(than int) (run gql.BillingRun) {
	b.w.t.Helper()
	b.w.eventually("the month is booked", func() error {
		runs, err := gql.ListBillingRuns(b.w.ctx, b.w.operator, b.w.tenant, 10, "")
		if err != nil {
			return err
		}
		for _, edge := range runs.BillingRuns.Edges {
			if edge.Node.PeriodId == b.past && edge.Node.Number > than {
				run = edge.Node
				return nil
			}
		}
		return fmt.Errorf("%d runs, none after %d", len(runs.BillingRuns.Edges), than)
	})
	return run
}

// rerate sets another price for the past month, as planned.
func (b *books) rerate(amount string) {
	b.w.t.Helper()
	to := b.start.AddDate(0, 1, 0)
	in := gql.SetPriceInput{Meter: "gpu_seconds", Sku: &b.sku, Currency: "EUR", ValidFrom: &b.start, ValidTo: &to,
		Measure: gql.PriceMeasureQuantity, Per: "3600", Tiers: []gql.PriceTierInput{{Price: amount}}, Reason: "mended"}
	plan, err := gql.PlanRerate(b.w.ctx, b.w.operator, in)
	b.w.fine(err)
	in.PlanHash = &plan.PlanRerate.Hash
	_, err = gql.Rerate(b.w.ctx, b.w.operator, in)
	b.w.fine(err)
}

// differs drills books that somebody has changed: the run is doubted, and after the original is back it is the same.
func differs(change, back string) drill {
	return drill{
		fault: func(w *ward) {
			b := w.keeps(true)
			run := b.booked(0)
			w.tamper(change, w.tenant)
			w.about.RunID = run.Id
			w.mend = func() { w.tamper(back, w.tenant) } // as it is in the dump
		},
		cure: func(w *ward) { w.mend() },
	}
}

// billingDrills are those of bills that are not right.
var billingDrills = map[string]drill{
	"billing/start/capacity-not-recorded": {
		fault: func(w *ward) {
			b := w.keeps(true)
			w.sql(`INSERT INTO usage_source (source, basis, tenant_id, project_id, recorded_to, due_at)
				VALUES ($1, 'CAPACITY', $2, $3, $4,
				now() + interval '1 hour')`, "alc_x"+b.sku, w.tenant, b.project, b.start)
			w.mend = func() { w.sql(`UPDATE usage_source SET recorded_to = now() WHERE source = $1`, "alc_x"+b.sku) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"billing/start/app-source-fails": {
		fault: func(w *ward) {
			w.running()
			own := w.adapterURL()
			p := w.plays()
			p.answers(func(rw http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/usage") {
					rw.WriteHeader(http.StatusInternalServerError)
					return
				}
				p.kit.ServeHTTP(rw, r)
			})
			w.sql(`UPDATE usage_source SET due_at = now() WHERE basis = 'APP' AND ended_at IS NULL`)
			w.mend = func() {
				w.register(own, nil)
				w.sql(`UPDATE usage_source SET due_at = now() WHERE basis = 'APP' AND ended_at IS NULL`)
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"billing/start/quarantined": {
		fault: func(w *ward) {
			r := w.releases(nil)
			r.reaches(gql.StageActive)
			w.fine(r.launches(plainly)())
			at := time.Now().UTC().Truncate(time.Millisecond)
			var page atomic.Pointer[adapter.UsagePage]
			says := func(cursor, id, dimension string) {
				page.Store(&adapter.UsagePage{Cursor: cursor,
					Records: []adapter.UsageRecord{{ID: id, Dimension: dimension,
						Quantity: "1", From: at, To: at}}})
			}
			says("1", "u1", "not.declared")
			r.answers(func(rw http.ResponseWriter, request *http.Request) {
				if strings.HasSuffix(request.URL.Path, "/usage") {
					now := *page.Load()
					if request.URL.Query().Get("after") == now.Cursor { // there is nothing after it
						now.Records = []adapter.UsageRecord{}
					}
					refuses(http.StatusOK, now)(rw, request)
					return
				}
				r.kit.ServeHTTP(rw, request)
			})
			due := func() { w.sql(`UPDATE usage_source SET due_at = now() WHERE source = $1`, w.about.ID) }
			due()
			w.mend = func() { // it sends the record again, with a new id and under the dimension that it declares
				says("2", "u2", "greetings.served")
				due()
				w.eventually("the record is taken", func() error {
					listed, err := gql.ListUsage(w.ctx, w.operator,
						gql.UsageFilter{ProjectId: w.project, InstanceId: &w.about.ID}, 100, "")
					if err != nil {
						return err
					}
					for _, edge := range listed.UsageRecords.Edges {
						if edge.Node.Meter == "greetings.served" {
							return nil
						}
					}
					return errNotYet
				})
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"billing/start/no-price": {
		quick: true,
		fault: func(w *ward) {
			b := w.keeps(false)
			b.booked(0)
			w.mend = func() { b.rerate("2"); w.about.PeriodID = b.present }
		},
		cure: func(w *ward) { w.mend() },
	},
	"billing/start/not-booked": {
		fault: func(w *ward) {
			b := w.keeps(true)
			b.booked(0)
			w.tamper(`UPDATE billing_run SET created_at = created_at - interval '1 hour'
				WHERE tenant_id = $1`, w.tenant)
			w.mend = func() { b.use("", 7200, 60); b.booked(1) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"billing/start/differs-at-line": differs(
		`UPDATE usage_record SET quantity = quantity + 3600 WHERE tenant_id = $1`,
		`UPDATE usage_record SET quantity = quantity - 3600 WHERE tenant_id = $1`),
	"billing/start/differs-at-ledger": differs(
		`UPDATE ledger_entry SET amount = amount + 1 WHERE tenant_id = $1 AND account = 'ACCRUED' AND amount > 0`,
		`UPDATE ledger_entry SET amount = amount - 1 WHERE tenant_id = $1 AND account = 'ACCRUED' AND amount > 0`),
	"billing/start/differs-at-engine": differs(
		`UPDATE billing_run SET engine = engine - 1000 WHERE tenant_id = $1`,
		`UPDATE billing_run SET engine = engine + 1000 WHERE tenant_id = $1`),
	"billing/start/wrong-price": {
		fault: func(w *ward) {
			b := w.keeps(true)
			b.booked(0)
			w.mend = func() { b.rerate("1"); b.booked(1) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"billing/start/late-usage": {
		fault: func(w *ward) {
			b := w.keeps(true)
			b.booked(0)
			w.eventually("the month is closed", func() error {
				periods, err := gql.ListBillingPeriods(w.ctx, w.operator, w.tenant)
				if err != nil {
					return err
				}
				for _, one := range periods.BillingPeriods {
					if one.Id == b.past && one.Status == gql.BillingStatusClosed {
						return nil
					}
				}
				return errNotYet
			})
			b.use("", 7200, 1800)
			b.booked(1)
			w.about.PeriodID = b.present
			w.mend = func() {
				plan, err := gql.PlanReopenPeriod(w.ctx, w.operator, b.past)
				w.fine(err)
				_, err = gql.ReopenPeriod(w.ctx, w.operator, b.past, plan.PlanReopenPeriod.Hash, "late usage")
				w.fine(err)
				w.about.PeriodID = b.past
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"billing/start/billed-for-failure": {
		fault: func(w *ward) {
			b := w.keeps(true)
			b.use("FAILED_ADD", 0, 3600)
			b.booked(0)
			w.about.PeriodID, w.about.TenantID = "", ""
		},
		cure: func(w *ward) {
			grant, err := gql.GrantCredit(w.ctx, w.operator, gql.GrantCreditInput{TenantId: w.tenant, Amount: "2",
				Currency: "EUR", Reason: "amends", IdempotencyKey: client.NewKey()})
			w.fine(err)
			require.Equal(w.t, "2", grant.GrantCredit.Left)
			w.about.ProjectID = "" // what is the platform's stays on record
		},
	},
	"billing/start/budget-reached": {
		fault: func(w *ward) {
			sku := "lab.4x-simulated"
			_, err := gql.SetPrice(w.ctx, w.operator, gql.SetPriceInput{Meter: "gpu_seconds", Sku: &sku,
				Currency: "EUR",
				Measure:  gql.PriceMeasureQuantity, Per: "3600", Tiers: []gql.PriceTierInput{{Price: "2"}},
				Reason: "a drill"})
			if err != nil {
				require.Equal(w.t, "PRICE_OVERLAP", client.CodeOf(err))
			}
			w.budget("0.01")
			w.later(func(ctx context.Context) { w.ctx = ctx; w.unbudgeted() })
			w.refused(func() error {
				got, err := gql.RequestAllocation(w.ctx, w.admin, gql.RequestAllocationInput{ProjectId: w.project,
					Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: 1, IdempotencyKey: client.NewKey()})
				if err == nil {
					w.givesBack(got.RequestAllocation.Allocations[0].Id, w.admin)
				}
				return err
			})
		},
		cure: func(w *ward) { w.budget("100000") },
	},
}

// budget bounds what the project may spend.
func (w *ward) budget(amount string) {
	w.t.Helper()
	_, err := gql.SetBudget(w.ctx, w.operator, gql.SetBudgetInput{Scope: gql.BudgetScopeProject, TargetId: w.project,
		Amount: amount, Currency: "EUR", Span: gql.BudgetSpanMonth, HorizonSeconds: 3600,
		AtLimit: gql.BudgetOutcomeRefuse,
		Reason:  "a drill"})
	w.fine(err)
}

// unbudgeted takes the project's budgets away.
func (w *ward) unbudgeted() {
	w.t.Helper()
	listed, err := gql.ListBudgets(w.ctx, w.operator, nil, &w.project)
	w.fine(err)
	for _, one := range listed.Budgets {
		_, err := gql.RemoveBudget(w.ctx, w.operator, one.Id, "the drill is over")
		w.fine(err)
	}
}
