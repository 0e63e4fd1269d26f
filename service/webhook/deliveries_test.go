package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

func TestAReplayGoesBackToACursorOfThisFeed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.hook().Webhook
	at, err := b.service.Feeds.Parse(row.Cursor)
	require.NoError(t, err)
	_, err = b.service.Replay(b.admin, row.ID, "nonsense", "")
	refused(t, err, fault.CursorInvalid, "after", "nonsense")
	_, err = b.service.Replay(b.admin, row.ID, "pother.1.2", "")
	refused(t, err, fault.CursorExpired, "after", "another database")
	_, err = b.service.Replay(b.admin, row.ID, b.service.Feeds.Cursor(event.Position{Generation: at.Generation,
		XID: at.XID + 1}), "")
	refused(t, err, fault.FailedPrecondition, "after", "a place to come")
	require.Equal(t, 1, b.Count("webhook", "cursor = $1", row.Cursor))
	earlier := b.service.Feeds.Cursor(event.Position{XID: 1})
	back, err := b.service.Replay(b.admin, row.ID, earlier, "lost")
	require.NoError(t, err)
	require.Equal(t, earlier, back.Cursor)
	require.Equal(t, 1, b.Count("audit_entry", "action = 'replayWebhook' AND allowed AND reason = 'lost'"))
}

func TestDeliveriesAreListedByStateNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.hook().Webhook
	var all []ids.ID
	for _, state := range []string{"DEAD", "PENDING", "DELIVERED", "DEAD"} {
		all = append([]ids.ID{b.delivery(row, state)}, all...)
	}
	var seen []ids.ID
	args := page.Args{First: 3}
	for {
		found, err := b.service.Deliveries(b.admin, row.ID, nil, args)
		require.NoError(t, err)
		for _, one := range found.Rows {
			seen = append(seen, one.ID)
		}
		if !found.HasNext {
			break
		}
		args.After = found.Cursors[len(found.Cursors)-1]
	}
	require.Equal(t, all, seen)
	dead, err := b.service.Deliveries(b.admin, row.ID, []lifecycle.DeliveryState{lifecycle.DeliveryDead},
		page.Args{First: 5})
	require.NoError(t, err)
	require.Len(t, dead.Rows, 2)
	_, err = b.service.Deliveries(b.admin, row.ID, nil, page.Args{First: 1, After: "x"})
	refused(t, err, fault.CursorInvalid, "after", "cursor")
	_, err = b.service.List(b.admin, b.project.ID, page.Args{First: 1, After: args.After})
	refused(t, err, fault.CursorInvalid, "after", "another list's cursor")
	out, err := b.service.Redeliver(b.admin, dead.Rows[0].ID)
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.DeliveryPending, 0}, []any{out.State, out.Attempts})
	_, viewer := b.ServiceAccount(b.project, authz.WebhookRead)
	_, err = b.service.Deliveries(b.With(viewer), row.ID, nil, page.Args{First: 1})
	require.NoError(t, err)
}
