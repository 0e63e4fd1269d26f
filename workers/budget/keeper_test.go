package budget_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/budget"
	books "github.com/gpuaas/app-platform/workers/billing"
	keepers "github.com/gpuaas/app-platform/workers/budget"
)

// bench is a tenant that is billed in EUR, with a running instance of two members on a whole node for 6 EUR an hour.
type bench struct {
	*platformtest.Kit
	t        *testing.T
	tenant   *db.Tenant
	project  *db.Project
	admin    context.Context // of the tenant
	service  *budget.Service
	keeper   *keepers.Keeper
	held     *db.Allocation
	instance *db.Instance
	booked   int
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{Kit: platformtest.New(t), t: t}
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	b.admin = b.As(b.User(b.tenant, platformtest.Across(authz.TenantAdmin, b.tenant)))
	b.service, b.keeper = &budget.Service{DB: b.DB}, &keepers.Keeper{DB: b.DB, Log: slog.New(slog.DiscardHandler)}
	b.SQL(`INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at)
		VALUES ($1, 'EUR', 0, now())`, b.tenant.ID)
	b.SQL(`INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
		VALUES ('bpr_1', $1, 'EUR', 0,
		date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', (date_trunc('month', now() AT TIME ZONE 'UTC') +
		interval '1 month') AT TIME ZONE 'UTC', 'OPEN')`,
		b.tenant.ID)
	b.ListPrice("h100", "EUR", "6")
	node, _ := b.Node(4)
	b.held = b.Allocation(b.project, node)
	b.SQL(`UPDATE compute_node SET sku = 'h100'`)
	b.SQL(`UPDATE allocation SET sku = 'h100'`)
	_, stored := b.Launchable(b.project, "apps")
	b.instance = b.Instance(b.project, stored, lifecycle.InstanceRunning, b.held, b.held)
	b.SQL(`UPDATE member SET status = 'ACTIVE'`)
	return b
}

// set is a budget of the project that is accepted as it is.
func (b *bench) set(amount string, at spending.Outcome, change ...func(*budget.SetInput)) *budget.Budget {
	b.t.Helper()
	in := b.input(amount, at)
	for _, c := range change {
		c(&in)
	}
	out, err := b.service.Set(b.admin, in)
	require.NoError(b.t, err)
	return out
}

func (b *bench) input(amount string, at spending.Outcome) budget.SetInput {
	return budget.SetInput{Scope: spending.Project, TargetID: b.project.ID, Amount: money.Must(amount), Currency: "EUR",
		Span:           spending.Month,
		HorizonSeconds: 3600, Thresholds: []int{50, 80, 100}, AtLimit: at, Reason: "a test"}
}

// book writes an amount into the ledger, as the billing role does for the instance's allocation.
func (b *bench) book(amount string) {
	b.t.Helper()
	b.bookIn(b.Admin, amount)
}

// execer is a transaction, or what makes one of each statement.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func (b *bench) bookIn(in execer, amount string) {
	b.t.Helper()
	b.booked++
	id := fmt.Sprint("ltx_", b.booked)
	_, err := in.Exec(context.Background(), `WITH x
		AS (INSERT INTO ledger_tx (id, tenant_id, project_id, kind, period_id, of_period_id, meter, amount,
		currency, effective_at)
			VALUES ($1, $2, $3, 'USAGE', 'bpr_1', 'bpr_1', 'node_seconds', $4::text::numeric, 'EUR', now())
			RETURNING id, tenant_id, project_id, amount, currency)
		INSERT INTO ledger_entry (tx_id, n, tenant_id, project_id, account, dimension, amount, currency, instance_id,
		allocation_id)
			SELECT x.id, s.n, x.tenant_id, x.project_id, s.account, s.dimension, x.amount * s.sign, x.currency, $5, $6
			FROM x, (VALUES (0, 'ACCRUED', '', 1), (1, 'REVENUE', 'node_seconds', -1)) s (n, account, dimension, sign)`,
		id, b.tenant.ID, b.project.ID, amount, b.instance.ID, b.held.ID)
	require.NoError(b.t, err)
}

func (b *bench) shown() *budget.Budget {
	b.t.Helper()
	list, err := b.service.List(b.admin, nil, &b.project.ID)
	require.NoError(b.t, err)
	require.Len(b.t, list, 1)
	return list[0]
}

func TestABudgetHoldsWhatIsRentedAndRefusesWhatIsNew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.set("15", spending.Refuse)
	require.Equal(t, []string{"6", "6", "9"}, []string{made.Hourly.String(), made.Held.String(), made.Left().String()})
	node, _ := b.Node(4)
	b.SQL(`UPDATE compute_node SET sku = 'h100' WHERE id = $1`, node.ID)
	admin := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	rent := func(key string) error {
		_, err := (&allocation.Service{DB: b.DB}).Request(admin,
			allocation.RequestInput{ProjectID: b.project.ID, Shape: lifecycle.ShapeBaremetal,
				Count: 1, IdempotencyKey: key})
		return err
	}
	b.book("3.01") // 3.01 spent, 6 held, and 6 more would be 15.01
	require.NoError(t, b.keeper.Once(t.Context()))
	before := b.Count("allocation", "")
	err := rent("k1")
	platformtest.Refused(t, err, fault.BudgetExceeded, "input.count")
	require.Contains(t, err.Error(), "3.01")
	require.Equal(t, before, b.Count("allocation", ""))
	require.NotEmpty(t, b.Audit())
	require.Equal(t, 1, b.Count("audit_entry", "NOT allowed AND code = 'BUDGET_EXCEEDED'"))
	b.set("15.01", spending.Refuse)
	require.NoError(t, rent("k2"), "to the cent")
	require.Equal(t, 1, b.Count("allocation_requester", "project_id = $1", b.project.ID))

	_, err = b.service.Set(b.admin, b.input("15", spending.Refuse))
	platformtest.Refused(t, err, fault.BudgetBelowHeld, "input.amount")
	require.Equal(t, "15.01", b.shown().Amount.String(), "nothing is written")
	_, err = b.service.Set(admin, b.input("1000", spending.Refuse))
	platformtest.Refused(t, err, fault.Forbidden, "")
	foreign := b.input("1000", spending.Refuse)
	foreign.Currency = "USD"
	_, err = b.service.Set(b.admin, foreign)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.currency")
	_, err = b.service.Remove(b.admin, b.shown().ID, "enough")
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND action = 'removeBudget'"))
}

func TestThresholdsAreToldOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.set("100", spending.Tell)
	for _, step := range []struct {
		booked, spent       string
		reached, told, full int
	}{{"49.99", "49.99", 0, 0, 0}, {"0.01", "50", 50, 1, 0}, {"10", "60", 50, 1, 0}, {"25", "85", 80, 2, 0},
		{"15", "100",
			100, 3, 1}, {"9", "109", 100, 3, 1}} {
		b.book(step.booked)
		for range 2 { // looking again tells nothing more
			require.NoError(t, b.keeper.Once(t.Context()))
		}
		now := b.shown()
		require.Equal(t, []any{step.spent, step.reached}, []any{now.Spent.String(), now.Reached})
		require.Equal(t, step.told, b.Count("app_instance_event", "type = 'apps.budget.threshold_reached'"))
		require.Equal(t, step.full, b.Count("app_instance_event", "type = 'apps.budget.spent'"))
	}
	require.NotNil(t, b.shown().LimitAt)
	require.Nil(t, b.shown().LargestOvershoot(), "nothing ends what runs")
	require.Zero(t, b.Count("operation", ""))
}

func TestASpentBudgetDrainsItsMembers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.set("10", spending.Drain)
	b.book("10")
	for range 2 {
		require.NoError(t, b.keeper.Once(t.Context()))
	}
	require.Equal(t, 2, b.Count("operation",
		"kind = 'MEMBER_DRAIN' AND requester_kind = 'SYSTEM' AND requester_name = 'budget' AND reason LIKE 'budget %'"),
		"each member once")
	require.Empty(t, b.shown().Trouble)
}

// What a budget with DECOMMISSION can be passed by is stated: the look, the books' lag and the deadlines of two
// operations.
func TestASpentBudgetGivesItsCapacityBackWithinWhatIsStated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.set("10", spending.Decommission)
	b.book("9.99")
	require.NoError(t, b.keeper.Once(t.Context()))
	require.Zero(t, b.Count("operation", ""))
	require.Equal(t, "3.25", b.shown().LargestOvershoot().String(),
		"6 an hour for 1 minute, 90 seconds and twice 15 minutes")
	b.book("0.01")
	for range 2 {
		require.NoError(t, b.keeper.Once(t.Context()))
	}
	require.Equal(t, 1, b.Count("operation",
		"kind = 'INSTANCE_DECOMMISSION' AND deadline <= created_at + interval '15 minutes'"))
	require.Equal(t, 1, b.Count("operation",
		"kind = 'ALLOCATION_RELEASE' AND deadline <= created_at + interval '30 minutes 1 second'"))
	require.Equal(t, 1, b.Count("instance", "status = 'STOPPING'"))
	require.Equal(t, 1, b.Count("allocation", "status = 'RELEASING'"))
}

// From a record of usage to the event: the billing role books it, and looks at the budgets after.
func TestUsageIsBookedAndCountsAgainstTheBudget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.set("20", spending.Tell)
	b.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason, created_by)
		VALUES ('prc_1', 'prc_1', 'tokens', '', '', 'EUR', 'PLATFORM', '2020-01-01', 1,
		'{"measure":"QUANTITY","per":"1","tiers":[{"price":"0.01"}],"minimum":"0","roundUpTo":"0"}', '', '', '')`)
	b.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id, session,
		unit, quantity, from_at, to_at, digest)
		SELECT $3, 'tokens', 'u1', 'APP', $1, $2, $3, $3, 'token', 1001, starts_at, starts_at, '' FROM billing_period
		WHERE tenant_id = $1`,
		b.tenant.ID, b.project.ID, b.instance.ID)
	worker := &books.Worker{DB: b.DB, Log: slog.New(slog.DiscardHandler), Every: 50 * time.Millisecond,
		After:    b.keeper.Once,
		Standard: billing.Standard{Currency: "EUR", Grace: time.Hour}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	require.Eventually(t, func() bool {
		return b.Count("app_instance_event",
			"type = 'apps.budget.threshold_reached'") > 0
	},
		time.Minute, 20*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	now := b.shown()
	require.Equal(t, []any{"10.01", 50, "3.99"}, []any{now.Spent.String(), now.Reached, now.Left().String()},
		"6 are held")
}

// A pipeline may spend this much, and no more.
func TestAServiceAccountsBudgetIsForWhatItRequested(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account, key := b.ServiceAccount(b.project, authz.AllocationCreate)
	b.set("5", spending.Refuse, func(in *budget.SetInput) {
		in.Scope, in.TargetID, in.Span = spending.ServiceAccount, account.ID, spending.Total
	})
	node, _ := b.Node(4)
	b.SQL(`UPDATE compute_node SET sku = 'h100' WHERE id = $1`, node.ID)
	in := allocation.RequestInput{ProjectID: b.project.ID, Shape: lifecycle.ShapeBaremetal, Count: 1,
		IdempotencyKey: "k"}
	_, err := (&allocation.Service{DB: b.DB}).Request(b.With(key), in)
	platformtest.Refused(t, err, fault.BudgetExceeded, "input.count")
	person := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	in.IdempotencyKey = "k2"
	_, err = (&allocation.Service{DB: b.DB}).Request(person, in)
	require.NoError(t, err, "another's requests do not count")
	b.book("100")
	require.NoError(t, b.keeper.Once(t.Context()))
	require.Equal(t, "0", b.shown().Spent.String(), "nor does another's capacity")
}

func TestCostsAreSharedOutFromTheBooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.book("2.5")
	b.book("1")
	by := func(by spending.By, want ...string) {
		t.Helper()
		shares, err := b.service.Costs(b.admin, budget.CostFilter{ProjectID: &b.project.ID, By: by})
		require.NoError(t, err)
		require.Len(t, shares, 1)
		require.Equal(t, want, []string{shares[0].Key, shares[0].Name, shares[0].Currency, shares[0].Amount.String()})
	}
	by(spending.ByInstance, string(b.instance.ID), b.instance.Name, "EUR", "3.5")
	by(spending.ByApp, b.instance.AppSlug, b.instance.AppSlug, "EUR", "3.5")
	by(spending.ByMeter, "node_seconds", "node_seconds", "EUR", "3.5")
	by(spending.ByPerson, "", "", "EUR", "3.5")
	sum, err := b.service.Summarise(b.admin, nil, &b.project.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"EUR", "3.5", "6"}, []string{sum.Currency, sum.Spent.String(), sum.Hourly.String()})
	require.Positive(t, sum.Forecast.Cmp(sum.Spent))
	_, err = b.service.Costs(b.admin, budget.CostFilter{By: spending.ByTenant})
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.Costs(b.admin, budget.CostFilter{ProjectID: new(ids.New(ids.Project)), By: spending.ByApp})
	platformtest.Refused(t, err, fault.NotFound, "")
}
