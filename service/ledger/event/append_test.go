package event_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

func (b *bundle) seqs() []int {
	rows, err := b.Admin.Query(b.t.Context(), `SELECT seq FROM app_instance_event WHERE instance_id = $1 ORDER BY seq`,
		b.first.ID)
	require.NoError(b.t, err)
	seqs, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(b.t, err)
	return seqs
}

func TestNumbersOfOneInstanceHaveNoGapsUnderManyWriters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const writers, each = 16, 12
	refused := errors.New("refused")
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for n := range each {
				fails := (w+n)%4 == 0 // a rolled-back writer must not leave a hole
				err := b.DB.Write(b.ctx, func(ctx context.Context, t *tx.Tx) error {
					row := *b.first
					drafts := make([]event.Draft, 1+n%3)
					for i := range drafts {
						drafts[i] = event.Draft{Type: lifecycle.EventInstanceHealthy, Message: fmt.Sprint(w, n, i)}
					}
					if err := event.Append(ctx, t, &row, drafts...); err != nil || !fails {
						return err
					}
					return refused
				})
				if !fails {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, refused)
				}
			}
		})
	}
	running.Wait()
	seqs := b.seqs()
	require.NotEmpty(t, seqs)
	for i, seq := range seqs {
		require.Equal(t, i+1, seq)
	}
	require.Equal(t, 1, b.Count("instance", "id = $1 AND revision = $2", b.first.ID, len(seqs)))
}

func TestAppendedAndQueuedEventsStandInOrderAndRaiseTheRevision(t *testing.T) {
	t.Parallel()
	b := setup(t)
	member, operation := ids.New(ids.Member), ids.New(ids.Operation)
	waiter := b.Hub.Wait(event.InstanceTopic(b.first.ID), event.ProjectTopic(b.project.ID))
	defer waiter.Close()
	require.NoError(t, b.DB.Write(b.ctx, func(ctx context.Context, w *tx.Tx) error {
		row, err := w.Instance.Query().Where(dbinstance.ID(b.first.ID)).ForUpdate().Only(ctx)
		require.NoError(t, err)
		require.NoError(t, event.Append(ctx, w, row)) // nothing to say
		require.Zero(t, row.Revision)
		require.NoError(t, event.Append(ctx, w, row,
			event.Draft{Type: lifecycle.EventInstanceRequested, Message: "a", OperationID: operation, MemberID: member,
				Payload: map[string]any{"n": 1}},
			event.Draft{Type: lifecycle.EventInstanceRunning, Message: "b", CorrelationID: "own"}))
		require.Equal(t, 2, row.Revision)
		batch := &pgx.Batch{}
		require.NoError(t, event.Enqueue(batch, w, row, event.Draft{Type: lifecycle.EventInstanceHealthy,
			Message: "c"}))
		require.Equal(t, 3, row.Revision)
		require.True(t, asleep(waiter), "woken before the commit")
		return w.SendBatch(ctx, batch).Close()
	}))
	woken(t, waiter, "after the commit")
	var stored []*event.Event
	var lost bool
	_, err := b.DB.Read(b.ctx, event.Timeline(&stored, &lost, b.first.ID, event.Position{}, 10)...)
	require.NoError(t, err)
	require.Len(t, stored, 3)
	for i, want := range []string{"a", "b", "c"} {
		require.Equal(t, want, stored[i].Message)
		require.Equal(t, i+1, stored[i].Seq)
		require.Equal(t, event.InstanceCursor(event.Position{Generation: stored[i].Generation, Order: int64(i + 1)}),
			stored[i].Cursor)
		require.Equal(t, b.project.ID, stored[i].ProjectID)
	}
	require.Equal(t, 1, b.Count("app_instance_event a, app_instance_event b", `a.instance_id = $1 AND b.instance_id = $1
		AND a.seq = 1 AND b.seq = 2 AND (a.xid, a.position) < (b.xid, b.position)`, b.first.ID),
		"the feed has in their order what is told at once")
	require.Equal(t, operation, *stored[0].OperationID)
	require.Equal(t, member, *stored[0].MemberID)
	require.Nil(t, stored[1].OperationID)
	require.Equal(t, b.first.CorrelationID, stored[0].CorrelationID)
	require.Equal(t, "own", stored[1].CorrelationID)
	require.JSONEq(t, `{"n":1}`, string(stored[0].Payload))
	require.JSONEq(t, `{}`, string(stored[1].Payload))
}

func TestATimelineCursorIsReadBackOrRefused(t *testing.T) {
	t.Parallel()
	for _, place := range []event.Position{{}, {Order: 1}, {Order: 4_711}, {Generation: 1, Order: 7},
		{Generation: 1_763_860_000_000_000, Order: 7}} {
		read, err := event.ParseInstanceCursor(event.InstanceCursor(place))
		require.NoError(t, err)
		require.Equal(t, place, read)
	}
	read, err := event.ParseInstanceCursor("")
	require.NoError(t, err)
	require.Zero(t, read)
	for _, cursor := range []string{"s", "7", "s-1", "sx", "s1.", "s1.0", "s1.-5", "s1.1.1", "s0.1", "s1.é",
		"s9999999999999", "p1.2.3", "s1 "} {
		_, err := event.ParseInstanceCursor(cursor)
		require.True(t, fault.Is(err, fault.CursorInvalid), "%q: %v", cursor, err)
		require.Equal(t, "after", fault.From(err).Reasons[0].Path)
	}
}

func TestATimelineBeginsWithWhatItsInstanceWasMadeFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := *b.first
	made.Revision = 2
	err := b.DB.Write(b.ctx, func(_ context.Context, w *tx.Tx) error {
		return event.Begin(w, &made, event.Draft{Type: lifecycle.EventInstanceRequested, Message: "one of two"})
	})
	require.ErrorContains(t, err, "begins with 1 events, and was created for 2")
	require.Empty(t, b.seqs())
	require.NoError(t, b.DB.Write(b.ctx, func(_ context.Context, w *tx.Tx) error {
		return event.Begin(w, &made, event.Draft{Type: lifecycle.EventInstanceRequested, Message: "a"},
			event.Draft{Type: lifecycle.EventOperationAccepted, Message: "b"})
	}))
	require.Equal(t, []int{1, 2}, b.seqs())
}

// What changes with the events is in the one update that numbers them.
func TestColumnsAreWrittenWithTheEventsOrWithoutAny(t *testing.T) {
	t.Parallel()
	b := setup(t)
	newest := ids.New(ids.Operation)
	column := []event.Column{{Name: "last_operation_id", Value: newest}}
	require.NoError(t, b.DB.Write(b.ctx, func(ctx context.Context, w *tx.Tx) error {
		return event.AppendWith(ctx, w, b.first, column)
	}))
	require.Equal(t, 1, b.Count("instance", "id = $1 AND last_operation_id = $2 AND revision = 0", b.first.ID, newest))
	newest = ids.New(ids.Operation)
	column[0].Value = newest
	require.NoError(t, b.DB.Write(b.ctx, func(ctx context.Context, w *tx.Tx) error {
		return event.AppendWith(ctx, w, b.first, column, event.Draft{Type: lifecycle.EventInstanceHealthy,
			Message: "a"})
	}))
	require.Equal(t, 1, b.Count("instance", "id = $1 AND last_operation_id = $2 AND revision = 1", b.first.ID, newest))
	require.Equal(t, []int{1}, b.seqs())
}

// A transaction that is older than the instance's newest event appends all its events after it.
func TestWhatAnOlderTransactionTellsAtOnceFollowsWhatWasToldMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.DB.Write(b.ctx, func(ctx context.Context, w *tx.Tx) error {
		var own int64
		require.NoError(t, w.QueryRow(ctx, `SELECT pg_current_xact_id()::text::bigint`).Scan(&own))
		require.NoError(t, b.append(b.first, "meanwhile", nothing))
		return event.Append(ctx, w, b.first, event.Draft{Type: lifecycle.EventInstanceHealthy, Message: "a"},
			event.Draft{Type: lifecycle.EventInstanceHealthy, Message: "b"})
	}))
	require.Equal(t, []int{1, 2, 3}, b.seqs())
	found, err := b.Admin.Query(t.Context(), `SELECT message FROM app_instance_event WHERE instance_id = $1
		ORDER BY xid, position`,
		b.first.ID)
	require.NoError(t, err)
	order, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"meanwhile", "a", "b"}, order)
}
