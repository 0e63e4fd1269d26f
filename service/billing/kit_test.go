package billing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/billing"
)

// books is a tenant with a project, a month that is over and is not closed yet, and the month after it.
type books struct {
	*platformtest.Kit
	t               *testing.T
	service         *billing.Service
	tenant          *db.Tenant
	project         *db.Project
	admin, operator context.Context
	past, present   ids.ID
	start           time.Time // of the past month
	used            int
}

func setup(t *testing.T) *books {
	t.Helper()
	return over(t, platformtest.New(t))
}

// over is setup over a kit of the test's own.
func over(t *testing.T, kit *platformtest.Kit) *books {
	t.Helper()
	b := &books{Kit: kit, t: t, start: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)}
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	b.admin = b.As(b.User(b.tenant, platformtest.Across(authz.TenantAdmin, b.tenant)))
	b.operator = b.As(b.Operator())
	b.service = &billing.Service{DB: b.DB}
	b.past, b.present = ids.New(ids.BillingPeriod), ids.New(ids.BillingPeriod)
	b.SQL(`INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at)
		VALUES ($1, 'EUR', 3600, now())`, b.tenant.ID)
	for id, starts := range map[ids.ID]time.Time{b.past: b.start, b.present: b.start.AddDate(0, 1, 0)} {
		ends := starts.AddDate(0, 1, 0)
		if id == b.present {
			ends = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		b.SQL(`INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
			VALUES ($1, $2, 'EUR', 3600, $3, $4, 'OPEN')`,
			id, b.tenant.ID, starts, ends)
	}
	return b
}

// price puts a price for everyone into the book, valid since before the past month.
func (b *books) price(meter, sku, terms string) (id string) {
	b.t.Helper()
	id = string(ids.New(ids.PriceVersion))
	b.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason, created_by)
		VALUES ($1, $1, $2, $3, '', 'EUR', 'PLATFORM', $4, 1, $5, '', 'test',
		'')`, id, meter, sku, b.start.AddDate(0, -1, 0), terms)
	return id
}

// hourly is the terms of a price an hour of whatever is rented.
func hourly(price string) string {
	return `{"measure":"TIME","per":"3600","tiers":[{"price":"` + price + `"}],"minimum":"0","roundUpTo":"0"}`
}

// use writes a record of so many seconds of an allocation, that long after the month's beginning.
func (b *books) use(allocation, member, borne string, after, seconds time.Duration) string {
	b.t.Helper()
	b.used++
	id := fmt.Sprint("u", b.used)
	from := b.start.Add(after * time.Second)
	by := "TENANT"
	if borne != "" {
		by = "PLATFORM"
	}
	b.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id,
		allocation_id, member_id, operation_id, sku, region,
			session, unit, quantity, from_at, to_at, borne_by, borne_reason, digest)
		VALUES ($1, 'gpu_seconds', $2, 'CAPACITY', $3, $4, 'ins_1', $1, $5, 'op_1', 'h100', 'eu', $1, 'second', $6::bigint *
		2, $7, $8, $9, nullif($10, ''), '')`,
		allocation, id, b.tenant.ID, b.project.ID, member, int64(seconds), from,
		from.Add(seconds*time.Second), by, borne)
	return id
}

// step brings a period as far as it goes.
func (b *books) step(period ids.ID) (run *billing.Run) {
	b.t.Helper()
	b.settle()
	return b.hasty(period)
}

// settle waits until what is committed lies before the watermark: transactions of other tests hold it back.
func (b *books) settle() {
	b.t.Helper()
	var written string
	require.NoError(b.t, b.Admin.QueryRow(b.t.Context(), `SELECT pg_current_xact_id()::text`).Scan(&written))
	require.Eventually(b.t, func() bool {
		var passed bool
		err := b.Admin.QueryRow(b.t.Context(), `SELECT pg_snapshot_xmin(pg_current_snapshot())
			> $1::text::xid8`, written).Scan(&passed)
		return err == nil && passed
	}, time.Minute, 10*time.Millisecond)
}

// hasty is step without waiting for the watermark.
func (b *books) hasty(period ids.ID) (run *billing.Run) {
	b.t.Helper()
	require.NoError(b.t, b.DB.As(b.t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) (err error) {
		run, err = step(ctx, t, period)
		return err
	}))
	return run
}

// step looks what is due and brings one period on, if it is.
func step(ctx context.Context, t *tx.Tx, period ids.ID) (*billing.Run, error) {
	look, err := billing.Begin(ctx, t)
	if err != nil {
		return nil, err
	}
	for _, due := range look.Due {
		if due.Period == period {
			return billing.Step(ctx, t, due)
		}
	}
	return nil, nil
}

// due is what a look lists.
func (b *books) due() (out []ids.ID) {
	b.t.Helper()
	require.NoError(b.t, b.DB.As(b.t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		look, err := billing.Begin(ctx, t)
		for _, one := range look.Due {
			out = append(out, one.Period)
		}
		return err
	}))
	return out
}

// text reads one value.
func (b *books) text(sql string, args ...any) (out string) {
	b.t.Helper()
	require.NoError(b.t, b.Admin.QueryRow(b.t.Context(), sql, args...).Scan(&out))
	return out
}

// account is the balance of an account in all of the ledger.
func (b *books) account(name string) string {
	b.t.Helper()
	return b.text(`SELECT trim_scale(coalesce(sum(amount), 0))::text FROM ledger_entry WHERE account = $1`, name)
}

// balanced looks that all of the ledger sums to zero.
func (b *books) balanced() {
	b.t.Helper()
	require.Equal(b.t, "0", b.text(`SELECT trim_scale(coalesce(sum(amount), 0))::text FROM ledger_entry`))
}

// tamper changes what nothing of the product can change.
func (b *books) tamper(sql string, args ...any) {
	b.t.Helper()
	require.NoError(b.t, pgx.BeginFunc(b.t.Context(), b.Admin, func(begun pgx.Tx) error {
		if _, err := begun.Exec(b.t.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := begun.Exec(b.t.Context(), sql, args...)
		return err
	}))
}

// looked does all that is due, and notes the look.
func (b *books) looked() (runs int) {
	b.t.Helper()
	require.NoError(b.t, b.DB.As(b.t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		look, err := billing.Begin(ctx, t)
		if err != nil {
			return err
		}
		for _, due := range look.Due {
			run, err := billing.Step(ctx, t, due)
			if err != nil {
				return err
			}
			if run != nil {
				runs++
			}
		}
		return look.Done(ctx, t)
	}))
	return runs
}
