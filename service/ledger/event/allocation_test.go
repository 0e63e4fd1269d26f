package event_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// free appends events of an allocation in a transaction of their own; before the commit, during is called.
func (b *bundle) free(id ids.ID, during func() error, messages ...string) error {
	return b.DB.Write(b.ctx, func(ctx context.Context, t *tx.Tx) error {
		row, err := t.Allocation.Query().Where(dballocation.ID(id)).ForUpdate().Only(ctx)
		if err != nil {
			return err
		}
		for _, message := range messages {
			err := event.AppendFree(t, row, event.Draft{Type: lifecycle.EventAllocationReady, Message: message,
				Payload: map[string]any{"sku": "h100"}})
			if err != nil {
				return err
			}
		}
		return during()
	})
}

func (b *bundle) unused() *db.Allocation {
	node, _ := b.Node(2)
	return b.Allocation(b.project, node)
}

func TestEventsOfFreeAllocationsAreInTheFeedOfThoseWhoMayReadThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row, other := b.unused(), b.unused()
	waiter := b.Hub.Wait(event.ProjectTopic(b.project.ID))
	defer waiter.Close()
	refused := errors.New("refused")
	none := func() error { return nil }
	require.NoError(t, b.free(row.ID, none, "a", "b"))
	<-waiter.C
	require.ErrorIs(t, b.free(row.ID, func() error { return refused }, "lost"), refused)
	require.NoError(t, b.free(other.ID, none, "x"))
	require.NoError(t, b.free(row.ID, none, "c"))
	read := func(families ...string) (events []*event.Event) {
		events, err := b.feeds.Project(t.Context(), b.project.ID, families, event.Position{}, 10)
		require.NoError(t, err)
		return events
	}
	require.Eventually(t, func() bool { return len(read(authz.EventFamilies()...)) == 4 }, patience, tick)
	require.Empty(t, read(everyFamily...), "an older build reads the families of apps alone")
	seen := read(authz.AllocationFamily)
	var said []any
	for _, one := range seen {
		said = append(said, one.Message, one.Seq)
		require.Empty(t, one.AppInstanceID())
		require.Empty(t, one.AppSlug)
	}
	require.Equal(t, []any{"a", 1, "b", 2, "x", 1, "c", 3}, said,
		"each allocation has numbers of its own, without gaps")
	require.Equal(t, []any{row.ID, other.ID}, []any{*seen[0].AllocationID, *seen[2].AllocationID})
	require.JSONEq(t, `{"allocation": "`+string(row.ID)+`", "sku": "h100"}`, string(seen[0].Payload))
	var strange []*event.Event
	_, err := b.DB.Read(b.As(b.User(b.Tenant())), b.feeds.ProjectQueries(&strange, b.project.ID, authz.EventFamilies(),
		event.Position{}, 10)...)
	require.NoError(t, err)
	require.Empty(t, strange, "another tenant's reads stop at the second wall")
}

func TestATransactionThatBeganEarlyDoesNotTurnAnAllocationsEventsRound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.unused()
	require.NoError(t, b.DB.Write(b.ctx, func(ctx context.Context, early *tx.Tx) error {
		_, err := early.Exec(ctx, `SELECT pg_current_xact_id()`) // it has an older number than the next one
		require.NoError(t, err)
		require.NoError(t, b.free(row.ID, func() error { return nil }, "first"))
		return event.AppendFree(early, row, event.Draft{Type: lifecycle.EventAllocationReleasing, Message: "second"})
	}))
	var messages []string
	require.Eventually(t, func() bool {
		events, err := b.feeds.Project(t.Context(), b.project.ID, authz.EventFamilies(), event.Position{}, 10)
		require.NoError(t, err)
		messages = nil
		for _, one := range events {
			messages = append(messages, one.Message)
		}
		return len(messages) == 2
	}, patience, tick)
	require.Equal(t, []string{"first", "second"}, messages)
}
