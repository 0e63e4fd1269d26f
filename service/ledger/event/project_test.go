package event_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

func TestALateCommitIsNeverSkipped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	start, err := b.feeds.Now(t.Context())
	require.NoError(t, err)
	held, released, late := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	go func() {
		late <- b.append(b.first, "began first, commits last", func() { close(held); <-released })
	}()
	<-held
	for _, message := range []string{"one", "two"} {
		require.NoError(t, b.append(b.second, message, nothing))
	}
	read, place := b.feed(start)
	require.Empty(t, read, "what a running transaction may precede is held back")
	now, err := b.feeds.Now(t.Context())
	require.NoError(t, err)
	release()
	require.NoError(t, <-late)
	want := []string{"began first, commits last", "one", "two"}
	require.Eventually(t, func() bool { // until no transaction of anybody on this server holds the feed back
		found, end := b.feed(place)
		read, place = append(read, found...), end
		return len(read) == len(want)
	}, patience, tick)
	require.Equal(t, want, read)
	again, _ := b.feed(start)
	require.Equal(t, want, again)
	fromNow, _ := b.feed(now)
	require.Equal(t, want, fromNow, "nothing that was not yet readable lies before now")
}

func TestAReaderThatKeepsUpWithManyWritersMissesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const writers, each = 6, 15
	var running sync.WaitGroup
	ended := make(chan struct{})
	errs := make([]error, writers)
	for w := range writers {
		of := b.first
		if w%2 == 1 {
			of = b.second
		}
		running.Go(func() {
			for n := range each {
				errs[w] = errors.Join(errs[w], b.append(of, fmt.Sprint(w, ".", n), nothing))
			}
		})
	}
	go func() { running.Wait(); close(ended) }()
	var read []string
	var place event.Position
	require.Eventually(t, func() bool {
		found, end := b.feed(place)
		read, place = append(read, found...), end
		return len(read) >= writers*each
	}, patience, tick)
	<-ended
	require.NoError(t, errors.Join(errs...))
	all, _ := b.feed(event.Position{})
	require.Equal(t, all, read, "live and replayed feed are the same")
	next := map[string]int{}
	for _, message := range read { // and each writer's own order is kept
		writer, n, _ := strings.Cut(message, ".")
		require.Equal(t, fmt.Sprint(next[writer]), n)
		next[writer]++
	}
}

func TestAFeedShowsItsProjectAndTheFamiliesAskedForAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.append(b.first, "ours", nothing))
	_, stored := b.Launchable(b.project, "scheduler")
	node, _ := b.Node(1)
	queue := b.Instance(b.project, stored, lifecycle.InstanceRunning, b.Allocation(b.project, node))
	require.NoError(t, b.append(queue, "scheduled", nothing))
	read := func(families ...string) (messages []string) {
		events, err := b.feeds.Project(t.Context(), b.project.ID, families, event.Position{}, 10)
		require.NoError(t, err)
		for _, e := range events {
			messages = append(messages, e.Message)
		}
		return messages
	}
	require.Eventually(t, func() bool { return len(read("apps", "scheduler")) == 2 }, patience, tick)
	require.Equal(t, []string{"ours"}, read("apps"))
	require.Equal(t, []string{"scheduled"}, read("scheduler"))
	require.Empty(t, read())
	var seen []*event.Event
	_, err := b.DB.Read(b.As(b.User(b.Tenant())), b.feeds.ProjectQueries(&seen, b.project.ID, everyFamily,
		event.Position{},
		10)...)
	require.NoError(t, err)
	require.Empty(t, seen, "a stranger's read goes through the second wall")
	_, err = b.DB.Read(b.ctx, b.feeds.ProjectQueries(&seen, b.project.ID, everyFamily, event.Position{}, 1)...)
	require.NoError(t, err)
	require.Len(t, seen, 1)
}

func TestAFeedsCursorIsReadBackRefusedOrExpired(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now, err := b.feeds.Now(t.Context())
	require.NoError(t, err)
	place := event.Position{Generation: now.Generation, XID: 12, Order: 34}
	cursor := b.feeds.Cursor(place)
	read, err := b.feeds.Resume(t.Context(), b.project.ID, cursor)
	require.NoError(t, err)
	require.Equal(t, place, read)
	epoch, _, _ := strings.Cut(cursor[1:], ".")
	for _, wrong := range []string{"", "p", "s1", "p1", epoch, "p" + epoch, "p" + epoch + ".1", "p" + epoch + ".1.2.3",
		"p" + epoch + ".-1.2", "p" + epoch + ".1.-2",
		"p" + epoch + ".x.2", "p" + epoch + ".1.9223372036854775808", "p" + epoch + ".1." + strings.Repeat("0", 99)} {
		_, err := b.feeds.Parse(wrong)
		require.True(t, fault.Is(err, fault.CursorInvalid), "%q: %v", wrong, err)
		require.Equal(t, "after", fault.From(err).Reasons[0].Path)
	}
	later := b.feeds.Cursor(event.Position{Generation: now.Generation + 1, XID: 12, Order: 34})
	gone := b.feeds.Cursor(event.Position{Generation: 1, XID: 12, Order: 34})
	for _, other := range []string{"pother.1.2", "p1y2p0ij32e8e7.1.2", later, gone} {
		_, err = b.feeds.Resume(t.Context(), b.project.ID, other)
		require.True(t, fault.Is(err, fault.CursorExpired), "%s: %v", other, err)
	}
	again, err := event.NewFeeds(t.Context(), b.DB.Worker()) // as after a restart of the platform
	require.NoError(t, err)
	_, err = again.Resume(t.Context(), b.project.ID, cursor)
	require.NoError(t, err)
}

func TestATransactionThatBeganEarlyDoesNotTurnATimelineRound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	start, err := b.feeds.Now(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.DB.Write(b.ctx, func(ctx context.Context, early *tx.Tx) error {
		_, err := early.Exec(ctx, `SELECT pg_current_xact_id()`) // as by any write before the instance is locked
		require.NoError(t, err)
		require.NoError(t, b.append(b.first, "meanwhile", nothing))
		row, err := early.Instance.Query().Where(dbinstance.ID(b.first.ID)).ForUpdate().Only(ctx)
		require.NoError(t, err)
		read, _ := b.feed(start)
		require.Empty(t, read, "what the early transaction may precede is held back")
		return event.Append(ctx, early, row, event.Draft{Type: lifecycle.EventInstanceHealthy, Message: "then"})
	}))
	require.Eventually(t, func() bool {
		read, _ := b.feed(start)
		return len(read) == 2 && read[0] == "meanwhile" && read[1] == "then"
	}, patience, tick)
}
