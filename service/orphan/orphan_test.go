package orphan_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/orphan"
)

// bundle is an instance with a member in an allocation of SKU "h100", which has a price.
type bundle struct {
	*platformtest.Kit
	service    *orphan.Service
	project    *db.Project
	admin      context.Context
	instance   *db.Instance
	member     *db.Member
	allocation *db.Allocation
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t)}
	tenant := b.Tenant()
	b.project = b.Project(tenant)
	b.admin = b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	_, stored := b.Launchable(b.project, "apps")
	node, _ := b.Node(1)
	b.allocation = b.Allocation(b.project, node)
	b.instance = b.Instance(b.project, stored, lifecycle.InstanceRunning, b.allocation)
	b.member = b.Ent.Member.Query().OnlyX(t.Context())
	b.SQL(`UPDATE allocation SET sku = 'h100'`)
	b.ListPrice("h100", "EUR", "3.6")
	b.service = &orphan.Service{DB: b.DB}
	return b
}

// in runs fn as a worker does, holding the instance.
func (b *bundle) in(t *testing.T, fn func(ctx context.Context, t *tx.Tx, instance *db.Instance) error) {
	t.Helper()
	require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, tr *tx.Tx) error {
		row, err := tr.Instance.Get(ctx, b.instance.ID)
		if err != nil {
			return err
		}
		return fn(ctx, tr, row)
	}))
}

// left opens an orphan of the member.
func (b *bundle) left(t *testing.T) {
	t.Helper()
	b.in(t, func(ctx context.Context, tr *tx.Tx, instance *db.Instance) error {
		told, err := orphan.Open(ctx, tr, instance, orphan.Draft{Kind: lifecycle.OrphanNodeResidue,
			MemberID: b.member.ID, NodeID: *b.allocation.NodeID,
			AllocationID: b.allocation.ID, Owner: "node", Message: "its node was not heard"})
		if err != nil {
			return err
		}
		return event.Append(ctx, tr, instance, told...)
	})
}

func (b *bundle) removeMember() {
	b.SQL(`UPDATE member SET status = 'REMOVING'`)
	b.SQL(`UPDATE member SET status = 'REMOVED'`)
}

func TestOrphanIsListedWithItsAgeAndCost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.left(t)
	b.left(t)
	require.Equal(t, 1, b.Count("orphan", ""), "what is listed is not listed again")
	b.SQL(`UPDATE orphan SET created_at = now() - interval '2 hours 1 second'`) // ages are whole seconds
	found, err := b.service.List(b.admin, orphan.Filter{ProjectID: b.project.ID}, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, found.Rows, 1)
	one := found.Rows[0]
	require.InDelta(t, 7_200, one.AgeSeconds, 30)
	require.Equal(t, &orphan.Money{Currency: "EUR", Amount: "3.600000"}, one.HourlyCost)
	require.Regexp(t, `^7\.2[0-9]{5}$`, one.CostSoFar.Amount)
	require.Equal(t, "node", one.Owner)
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.orphan.found'"))

	of, err := b.service.OfInstances(b.admin, []ids.ID{b.instance.ID})
	require.NoError(t, err)
	require.Equal(t, one.ID, of[b.instance.ID][0].ID)
	b.SQL(`UPDATE allocation SET sku = ''`)
	shown, err := b.service.Get(b.admin, one.ID)
	require.NoError(t, err)
	require.Nil(t, shown.HourlyCost, "nobody has set a price")
	require.Nil(t, shown.CostSoFar)
}

// What a stuck drain costs is what the allocation of its target costs for as long as it goes on.
func TestAnOpenOperationShowsWhatItHasCost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	drain := b.Operation(b.instance, lifecycle.MemberDrain, lifecycle.OperationRunning)
	b.SQL(`UPDATE operation SET created_at = now() - interval '2 hours', targets = $2 WHERE id = $1`,
		drain.ID, []ids.ID{b.member.ID})
	cost := func() *orphan.Money {
		found, err := b.service.HeldBy(b.admin, []ids.ID{drain.ID})
		require.NoError(t, err)
		return found[drain.ID]
	}
	require.Equal(t, "EUR", cost().Currency)
	require.Regexp(t, `^7\.2[0-9]{5}$`, cost().Amount)
	b.SQL(`UPDATE operation SET targets = '[]'`)
	require.Regexp(t, `^7\.2[0-9]{5}$`, cost().Amount, "the whole instance")
	b.SQL(`UPDATE operation SET targets = '["mem_other"]'`)
	require.Nil(t, cost(), "none of what it works on is rented")
	b.SQL(`UPDATE operation SET targets = '[]'`)
	b.SQL(`UPDATE allocation SET sku = ''`)
	require.Nil(t, cost(), "nobody has set a price")
	b.SQL(`UPDATE allocation SET sku = 'h100'`)
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', outcome = 'NORMAL', ended_at = now()`)
	require.Nil(t, cost(), "it has ended")
}

func TestARentedAllocationShowsWhatAnHourCosts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hourly := func(ctx context.Context) *orphan.Money {
		found, err := b.service.HourlyOf(ctx, []ids.ID{*b.member.AllocationID})
		require.NoError(t, err)
		return found[*b.member.AllocationID]
	}
	require.Equal(t, &orphan.Money{Currency: "EUR", Amount: "3.600000"}, hourly(b.admin))
	require.Nil(t, hourly(b.As(b.User(b.Tenant()))), "nobody else is told")
	b.SQL(`UPDATE allocation SET sku = ''`)
	require.Nil(t, hourly(b.admin), "nobody has set a price, which is not zero")
	b.SQL(`UPDATE allocation SET sku = 'h100', status = 'RELEASING'`)
	require.NotNil(t, hourly(b.admin), "it costs until it is proved gone")
	for _, end := range []string{`UPDATE member SET status = 'REMOVING'`, `UPDATE member SET status = 'REMOVED'`,
		`UPDATE allocation SET instance_id = NULL, status = 'RELEASED', released_at = now()`} {
		b.SQL(end)
	}
	require.Nil(t, hourly(b.admin))
}

func TestResolvedOrphanIsShownOnRequestAndLetsGoOfItsAllocation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.left(t)
	b.removeMember()
	b.in(t, func(ctx context.Context, tr *tx.Tx, instance *db.Instance) error {
		freed, told, err := orphan.Free(ctx, tr, instance, b.allocation.ID)
		require.Equal(t, orphan.Kept, freed, "an orphan holds it")
		require.Empty(t, told)
		return err
	})
	row := b.Ent.Orphan.Query().OnlyX(t.Context())
	b.in(t, func(ctx context.Context, tr *tx.Tx, instance *db.Instance) error {
		return orphan.Resolve(ctx, tr, instance, row, "gone")
	})
	require.Equal(t, 1, b.Count("allocation", "status = 'READY' AND instance_id IS NULL"))
	open, err := b.service.List(b.admin, orphan.Filter{ProjectID: b.project.ID}, page.Args{First: 10})
	require.NoError(t, err)
	require.Empty(t, open.Rows)
	all, err := b.service.List(b.admin, orphan.Filter{ProjectID: b.project.ID, Resolved: true}, page.Args{First: 10})
	require.NoError(t, err)
	require.Equal(t, "gone", all.Rows[0].Resolution)
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.orphan.resolved'"))
	b.in(t, func(ctx context.Context, tr *tx.Tx, instance *db.Instance) error {
		return orphan.Resolve(ctx, tr, instance, row, "again")
	})
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.orphan.resolved'"), "once")

	_, err = b.service.Retry(b.admin, row.ID)
	require.Equal(t, fault.FailedPrecondition, fault.From(err).Code)
}

func TestAllocationThatAnOperationAskedForIsReleasedWithItsLastMember(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.Operation(b.instance, lifecycle.MembersAdd, lifecycle.OperationPending)
	b.SQL(`UPDATE allocation SET created_by_operation_id = $1`, op.ID)
	free := func() (freed orphan.Freed) {
		b.in(t, func(ctx context.Context, tr *tx.Tx, instance *db.Instance) (err error) {
			freed, _, err = orphan.Free(ctx, tr, instance, b.allocation.ID)
			return err
		})
		return freed
	}
	require.Equal(t, orphan.Kept, free(), "a member lives in it")
	b.removeMember()
	require.Equal(t, orphan.Released, free())
	require.Equal(t, 1, b.Count("allocation",
		"status = 'RELEASED' AND instance_id IS NULL AND released_at IS NOT NULL"))
	require.Equal(t, orphan.Kept, free(), "there is nothing more to let go of")
}

func TestRetryMakesAnOrphanDueAndIsAudited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.left(t)
	b.SQL(`UPDATE orphan SET next_try_at = now() + interval '10 minutes'`)
	row := b.Ent.Orphan.Query().OnlyX(t.Context())
	out, err := b.service.Retry(b.admin, row.ID)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), out.NextTryAt, time.Minute)
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'retryOrphan' AND permission_key = 'operation.retry' AND object_id = $1", row.ID))
}

func TestOnlyWhoMaySeesAndRetriesOrphans(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.left(t)
	row := b.Ent.Orphan.Query().OnlyX(t.Context())
	viewer := b.As(b.User(b.Ent.Tenant.Query().OnlyX(t.Context()), platformtest.In(authz.ProjectViewer, b.project)))
	stranger := b.As(b.User(b.Tenant()))
	_, err := b.service.Get(viewer, row.ID)
	require.NoError(t, err)
	before := row.NextTryAt
	_, err = b.service.Retry(viewer, row.ID)
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	for _, call := range []func() error{
		func() error { _, err := b.service.Get(stranger, row.ID); return err },
		func() error { _, err := b.service.Retry(stranger, row.ID); return err },
		func() error {
			_, err := b.service.List(stranger, orphan.Filter{ProjectID: b.project.ID}, page.Args{First: 1})
			return err
		},
		func() error { _, err := b.service.Get(b.admin, ids.New(ids.OrphanedResource)); return err },
	} {
		require.Equal(t, fault.NotFound, fault.From(call()).Code)
	}
	require.True(t, before.Equal(b.Ent.Orphan.Query().OnlyX(t.Context()).NextTryAt), "nothing was written")
	_, err = b.service.List(b.admin, orphan.Filter{ProjectID: b.project.ID}, page.Args{First: 1, After: "nonsense"})
	require.Equal(t, fault.CursorInvalid, fault.From(err).Code)
}
