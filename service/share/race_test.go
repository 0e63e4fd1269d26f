package share_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/share"
)

const tick = 5 * time.Millisecond

func TestAcceptAndWithdrawAtOnceEndInOneOfTheirOrders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 8 {
		row, err := b.service.Offer(b.owner, b.offer(fmt.Sprint("race", i)))
		require.NoError(t, err)
		var both sync.WaitGroup
		var accepted, withdrawn error
		both.Go(func() { _, accepted = b.service.Accept(b.other, share.Input{ShareID: row.ID}) })
		both.Go(func() { _, withdrawn = b.service.Withdraw(b.owner, share.Input{ShareID: row.ID, Reason: "no"}) })
		both.Wait()
		require.NoError(t, withdrawn, "an offer and an attachment can both be ended")
		end, err := b.service.Get(b.owner, row.ID)
		require.NoError(t, err)
		if accepted == nil {
			require.Equal(t, lifecycle.ShareDetached, end.Status)
		} else {
			platformtest.Refused(t, accepted, fault.FailedPrecondition, "shareId")
			require.Equal(t, lifecycle.ShareWithdrawn, end.Status)
		}
	}
	require.Zero(t, b.Count("control_plane_share", "ended_at IS NULL"))
}

func TestOfTwoOffersAtOnceOneIsMade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var both sync.WaitGroup
	var errs [2]error
	for i := range errs {
		both.Go(func() { _, errs[i] = b.service.Offer(b.owner, b.offer(fmt.Sprint("rival", i))) })
	}
	both.Wait()
	if errs[0] != nil {
		errs[0], errs[1] = errs[1], errs[0]
	}
	require.NoError(t, errs[0])
	platformtest.Refused(t, errs[1], fault.Conflict, "input.projectId")
	require.Equal(t, 1, b.Count("control_plane_share", ""))
}

// An action that meets a detachment under way waits for it, and finds nothing.
func TestAnActionWaitsForADetachmentUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.attached()
	leaving, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = leaving.Exec(t.Context(),
		`UPDATE control_plane_share SET status = 'DETACHED', ended_at = now() WHERE id = $1`, row.ID)
	require.NoError(t, err)
	asked := make(chan error, 1)
	guest := b.As(b.guestMember)
	go func() { _, err := b.instances.InvokeAction(guest, b.action("k")); asked <- err }()
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") > 0
	}, soon, tick, "the action waits")
	require.NoError(t, leaving.Commit(t.Context()))
	platformtest.Refused(t, <-asked, fault.NotFound, "")
	require.Empty(t, b.standIn.Actions)
}

// Whatever was accepted was accepted before the detachment: nothing comes after it.
func TestNoActionIsAcceptedAfterADetachment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.attached()
	var left atomic.Bool
	var asking sync.WaitGroup
	for i := range 4 {
		guest := b.As(b.guestMember)
		asking.Go(func() {
			for n := 0; ; n++ {
				late := left.Load()
				_, err := b.instances.InvokeAction(guest, b.action(fmt.Sprint(i, "-", n)))
				if err != nil {
					if !fault.Is(err, fault.NotFound) {
						t.Error(err)
					}
					return
				}
				if late {
					t.Error("an action was accepted after the project had left")
					return
				}
			}
		})
	}
	require.Eventually(t, func() bool { return b.Count("audit_entry", "action LIKE 'invokeAction %'") > 4 }, soon, tick)
	_, err := b.service.Detach(b.other, share.Input{ShareID: row.ID})
	require.NoError(t, err)
	left.Store(true)
	asking.Wait()
}

// Without the verbs, the first wall, the database is the second one: it limits what a statement of either end may do.
func TestBelowTheVerbsEachEndWritesItsOwnPartOfAShareAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.offered()
	run := func(ctx context.Context, sql string, args ...any) (n int64, err error) {
		err = b.DB.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
			tag, err := w.Exec(ctx, sql, args...)
			n = tag.RowsAffected()
			return err
		})
		return n, err
	}
	const insert = `INSERT INTO control_plane_share (id, tenant_id, project_id, instance_id, owner_project_id, status,
		created_at) VALUES ($1, $2, $3, $4, $5, $6, now())`
	third := b.Project(b.tenant)
	for name, statement := range map[string]struct {
		ctx  context.Context
		sql  string
		args []any
	}{
		"the other offers itself": {b.other, insert,
			[]any{ids.New(ids.ControlPlane), b.tenant.ID, b.guest.ID, b.made.ID, b.home.ID, "OFFERED"}},
		"the other attaches itself": {b.other, insert,
			[]any{ids.New(ids.ControlPlane), b.tenant.ID, b.guest.ID, b.made.ID, b.home.ID, "ATTACHED"}},
		"as if it were the owner": {b.other, insert,
			[]any{ids.New(ids.ControlPlane), b.tenant.ID, third.ID, b.made.ID, b.guest.ID, "OFFERED"}},
		"the owner attaches another": {b.owner, insert,
			[]any{ids.New(ids.ControlPlane), b.tenant.ID, third.ID, b.made.ID, b.home.ID, "ATTACHED"}},
		"the owner accepts for it": {b.owner, `UPDATE control_plane_share SET status = 'ATTACHED' WHERE id = $1`,
			[]any{row.ID}},
		"the other takes another end": {b.other,
			`UPDATE control_plane_share SET instance_id = instance_id, project_id = $2
				WHERE id = $1`, []any{row.ID, third.ID}},
	} {
		_, err := run(statement.ctx, statement.sql, statement.args...)
		require.Error(t, err, name)
	}
	_, err := b.service.Accept(b.other, share.Input{ShareID: row.ID})
	require.NoError(t, err)
	for name, sql := range map[string]string{
		"changes the instance": `UPDATE instance SET name
			= 'mine'`, "changes a member": `UPDATE member SET cordoned = true`,
		"locks the instance": `DELETE FROM instance`,
	} {
		n, _ := run(b.other, sql)
		require.Zero(t, n, name)
	}
	var seen [4]int
	require.NoError(t, b.DB.Write(b.other, func(ctx context.Context, w *tx.Tx) error {
		return w.QueryRow(ctx, `SELECT (SELECT count(*) FROM instance), (SELECT count(*) FROM member), (SELECT count(*)
			FROM app_instance_event),
			(SELECT count(*) FROM platform.attached_projects($1))`, b.made.ID).
			Scan(&seen[0], &seen[1], &seen[2], &seen[3])
	}))
	require.Equal(t, [4]int{1, 0, 0, 0}, seen, "the instance's row, and nothing below it")
	require.Equal(t, 1, b.Count("control_plane_share", "status = 'ATTACHED'"))
}
