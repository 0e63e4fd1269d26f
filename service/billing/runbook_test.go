package billing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/domain/runbook"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/price"
	"github.com/gpuaas/app-platform/service/usage"
)

// verified is what verify says of a run.
func (b *books) verified(run ids.ID) *billing.Verification {
	b.t.Helper()
	verified, err := b.service.Verify(b.operator, run)
	require.NoError(b.t, err)
	return verified
}

// only is the only line of the past month's statement.
func (b *books) only() *billing.Line {
	b.t.Helper()
	statement, err := b.service.Statement(b.operator, billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past})
	require.NoError(b.t, err)
	require.Len(b.t, statement.Lines, 1)
	return statement.Lines[0]
}

// status is how far the past month is.
func (b *books) status() string {
	return b.text(`SELECT status FROM billing_period WHERE id = $1`, b.past)
}

// walks inject what a row of the runbook is about, see what it says is seen, and do what it says.
var walks = map[string]func(b *books){
	"`usage sources`: a source of capacity is recorded only up to long ago": func(b *books) {
		b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id, recorded_to)
			VALUES ('alc_9', 'CAPACITY', $1, $2, $3)`, b.tenant.ID, b.project.ID, b.start)
		b.step(b.past)
		require.Equal(b.t, "CLOSING", b.status())
		sources, err := (&usage.Service{DB: b.DB}).Sources(b.operator, b.project.ID, nil)
		require.NoError(b.t, err)
		require.Equal(b.t, b.start, sources[0].RecordedTo.UTC())
		b.SQL(`UPDATE usage_source SET recorded_to = now()`)
		b.step(b.past)
		require.Equal(b.t, "CLOSED", b.status())
	},
	"`usage sources`: failures and an error at an app's source": func(b *books) {
		b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id, failures, last_error)
			VALUES ('ins_9', 'APP', $1, $2, 3, 'the adapter does not answer')`, b.tenant.ID, b.project.ID)
		sources, err := (&usage.Service{DB: b.DB}).Sources(b.operator, b.project.ID, nil)
		require.NoError(b.t, err)
		require.Equal(b.t, "the adapter does not answer", sources[0].LastError)
	},
	"`usage quarantine` lists records": func(b *books) {
		b.SQL(`INSERT INTO usage_quarantine (id, tenant_id, project_id, source, meter, usage_id, code, field, message,
			record, digest)
			VALUES ('uqr_1', $1, $2, 'alc_1', 'tokens', 'u1', 'USAGE_ID_REUSED', 'id', 'other content', '{}',
			'')`, b.tenant.ID, b.project.ID)
		run := b.step(b.past)
		found, err := (&usage.Service{DB: b.DB}).Quarantine(b.operator, &b.project.ID, nil, page.Args{First: 5})
		require.NoError(b.t, err)
		require.Equal(b.t, "USAGE_ID_REUSED", found.Rows[0].Code)
		require.Equal(b.t, "2", b.only().Amount.String(), "it is in no bill")
		require.True(b.t, b.verified(run.ID).Same)
	},
	"a line says `no price set`": func(b *books) {
		b.tamper(`UPDATE price_version SET sku = 'a100'`)
		b.step(b.past)
		require.Nil(b.t, b.only().Amount)
		b.rerated("2")
		b.step(b.past)
		require.Equal(b.t, "2", b.account("ACCRUED"), "on the next statement, as the month is closed")
	},
	"the newest run is older than minutes, and usage is recorded": func(b *books) {
		runs, err := b.service.Runs(b.operator, b.tenant.ID, page.Args{First: 1})
		require.NoError(b.t, err)
		require.Empty(b.t, runs.Rows)
		require.NotNil(b.t, b.step(b.past), "a process with the role books it")
	},
	"`verify`: differs at `line …`": func(b *books) {
		run := b.step(b.past)
		b.tamper(`UPDATE usage_record SET to_at = to_at + interval '1 hour'`)
		require.True(b.t, strings.HasPrefix(b.verified(run.ID).Differs, "line "))
	},
	"`verify`: differs at `ledger of line …`": func(b *books) {
		run := b.step(b.past)
		b.tamper(`UPDATE ledger_entry SET amount = amount + 1 WHERE account = 'ACCRUED' AND amount > 0`)
		require.True(b.t, strings.HasPrefix(b.verified(run.ID).Differs, "ledger of line "))
	},
	"`verify`: differs at `engine`": func(b *books) {
		run := b.step(b.past)
		b.tamper(`UPDATE billing_run SET engine = 0`)
		require.Equal(b.t, "engine", b.verified(run.ID).Differs)
	},
	"the price itself was wrong": func(b *books) {
		b.step(b.past)
		b.rerated("1")
		run := b.step(b.past)
		require.Equal(b.t, b.present, run.StatementID)
		require.Equal(b.t, "-1", b.account("ACCRUED"))
		b.balanced()
	},
	"usage came after the period was closed": func(b *books) {
		b.step(b.past)
		b.use("alc_1", "mem_1", "", 7200, 1800)
		require.Equal(b.t, b.present, b.step(b.past).StatementID)
		plan, err := b.service.PlanReopen(b.operator, b.past)
		require.NoError(b.t, err)
		_, err = b.service.Reopen(b.operator, b.past, plan.Hash, "late usage")
		require.NoError(b.t, err)
		require.Equal(b.t, "CLOSING", b.status())
	},
	"a tenant was billed for what failed": func(b *books) {
		b.use("alc_2", "mem_2", "FAILED_ADD", 0, 3600)
		b.step(b.past)
		require.Equal(b.t, "2", b.only().Amount.String(), "what failed is not on it")
		require.Equal(b.t, "2", b.account("PLATFORM_BORNE"))
		grant, err := b.service.GrantCredit(b.operator, billing.GrantInput{TenantID: b.tenant.ID, Amount: money.Int(2),
			Currency: "EUR", Reason: "amends", IdempotencyKey: "k"})
		require.NoError(b.t, err)
		require.Equal(b.t, "2", grant.Left.String())
	},
}

// rerated sets another price an hour of an h100 for the past month, as planned.
func (b *books) rerated(amount string) {
	b.t.Helper()
	from, to, sku := b.start, b.start.AddDate(0, 1, 0), "h100"
	in := price.VersionInput{Meter: "capacity", SKU: &sku, Currency: "EUR", ValidFrom: &from, ValidTo: &to,
		Measure: rating.Time, Per: money.Int(3600),
		Tiers: []rating.Tier{{Price: money.Must(amount)}}, Reason: "mended"}
	plan, err := b.service.PlanRerate(b.operator, in)
	require.NoError(b.t, err)
	in.PlanHash = plan.Hash
	_, err = b.service.Rerate(b.operator, in)
	require.NoError(b.t, err)
}

// Each row of the runbook's first table is walked: its fault is injected, seen as the row says, and mended as it says.
// Budgets are not of the books: service/budget tests what they refuse.
func TestTheBillingRunbookIsWalkedAgainstItsFaults(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, book := range runbook.All() {
		if book.Name != "billing" {
			continue
		}
		for _, edge := range book.Checks[0].Edges {
			if edge.Key != "budget-reached" {
				rows = append(rows, edge.Seen)
			}
		}
	}
	require.Len(t, rows, len(walks))
	for _, row := range rows {
		walk := walks[row]
		require.NotNil(t, walk, "no walk for %q", row)
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.price("capacity", "h100", hourly("2"))
			b.use("alc_1", "mem_1", "", 0, time.Hour/time.Second)
			walk(b)
		})
	}
}
