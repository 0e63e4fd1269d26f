package event_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// over is setup over a database of the test's own.
func over(t *testing.T, dsn string) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.Over(t, dsn), t: t}
	tenant := b.Tenant()
	b.project = b.Project(tenant)
	_, stored := b.Launchable(b.project, "apps")
	node, _ := b.Node(4)
	b.first = b.Instance(b.project, stored, lifecycle.InstanceRunning, b.Allocation(b.project, node))
	b.second = b.Instance(b.project, stored, lifecycle.InstanceRunning, b.Allocation(b.project, node))
	b.ctx = b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	var err error
	b.feeds, err = event.NewFeeds(t.Context(), b.DB.Feed())
	require.NoError(t, err)
	return b
}

// moved is the same bundle over another server's copy of its database.
func (b *bundle) moved(dsn string) *bundle {
	b.t.Helper()
	copied := *b
	var err error
	copied.DB, err = tx.Open(b.t.Context(), dsn, tx.Options{Connections: 4})
	require.NoError(b.t, err)
	b.t.Cleanup(copied.DB.Close)
	copied.feeds, err = event.NewFeeds(b.t.Context(), copied.DB.Feed())
	require.NoError(b.t, err)
	return &copied
}

// tell appends each message to an instance until that succeeds: while a server is lost, it does not.
func (b *bundle) tell(of *db.Instance, messages ...string) {
	b.t.Helper()
	for _, message := range messages {
		require.Eventually(b.t, func() bool { return b.append(of, message, nothing) == nil }, 2*patience, tick)
	}
}

// whole is all of the feed, once it has as many events as are wanted.
func (b *bundle) whole(want int) (messages []string, end event.Position) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		found, err := b.feeds.Project(b.t.Context(), b.project.ID, everyFamily, event.Position{}, 100)
		if err != nil {
			require.True(b.t, tx.Away(err), "%v", err) // a connection to the server that was lost
			return false
		}
		messages = nil
		for _, each := range found {
			messages, end = append(messages, each.Message), event.PositionOf(each)
		}
		return len(messages) >= want
	}, patience, tick)
	return messages, end
}

// timeline reads an instance's events after a cursor.
func (b *bundle) timeline(of *db.Instance, cursor string) (messages []string, last string, err error) {
	place, err := b.feeds.ResumeInstance(b.t.Context(), of.ID, cursor)
	if err != nil {
		return nil, "", err
	}
	events, err := b.feeds.Instance(b.t.Context(), of.ID, place, 100)
	for _, each := range events {
		messages, last = append(messages, each.Message), each.Cursor
	}
	return messages, last, err
}

// after reads the project's feed after a cursor.
func (b *bundle) after(cursor string) ([]string, error) {
	place, err := b.feeds.Resume(b.t.Context(), b.project.ID, cursor)
	if err != nil {
		return nil, err
	}
	messages, _ := b.feed(place)
	return messages, nil
}

func TestAPromotedReplicaHidesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	primary := pgtest.NewCluster(t)
	primary.Migrated("app")
	standby := primary.Standby()
	b := over(t, pgtest.Hosts("postgres", "app", primary, standby))
	b.tell(b.first, "one", "two")
	b.tell(b.second, "other")
	messages, end := b.whole(3)
	require.Equal(t, []string{"one", "two", "other"}, messages)
	kept := b.feeds.Cursor(end)
	_, keptTimeline, err := b.timeline(b.first, "")
	require.NoError(t, err)
	mark, err := b.feeds.Now(t.Context())
	require.NoError(t, err)

	primary.Await(`SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()`)
	standby.CutOff()
	b.tell(b.first, "lost one", "lost two")
	messages, live := b.whole(5)
	lost := b.feeds.Cursor(live)
	_, lostTimeline, err := b.timeline(b.first, "")
	require.NoError(t, err)
	require.Len(t, messages, 5)

	require.NoError(t, primary.Kill())
	standby.Promote()
	b.tell(b.first, "three", "four", "five") // by the same process, which finds the new primary
	messages, _ = b.whole(6)
	require.Equal(t, []string{"one", "two", "other", "three", "four", "five"}, messages)

	messages, err = b.after(kept)
	require.NoError(t, err)
	require.Equal(t, []string{"three", "four", "five"}, messages, "a cursor of the shared past goes on")
	messages, err = b.after(b.feeds.Cursor(mark))
	require.NoError(t, err)
	require.Equal(t, []string{"three", "four", "five"}, messages, "and so does a mark between events")
	_, err = b.after(lost)
	require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
	_, err = b.feeds.Project(t.Context(), b.project.ID, everyFamily, live, 10)
	require.True(t, fault.Is(err, fault.CursorExpired), "a live reader is told: %v", err)

	messages, _, err = b.timeline(b.first, keptTimeline)
	require.NoError(t, err)
	require.Equal(t, []string{"three", "four", "five"}, messages)
	_, _, err = b.timeline(b.first, lostTimeline) // its number is another event's now
	require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
}

func TestADatabaseThatIsRestoredElsewhereHidesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	here, there := pgtest.NewCluster(t), pgtest.NewCluster(t)
	here.Migrated("app")
	spend(here, "app", 5_000) // so that its numbers are far beyond the other server's
	b := over(t, here.DSN("app"))
	b.tell(b.first, "one", "two")
	b.tell(b.second, "other")
	_, end := b.whole(3)
	kept := b.feeds.Cursor(end)
	_, keptTimeline, err := b.timeline(b.first, "")
	require.NoError(t, err)
	here.Dump("app", there)
	b.tell(b.first, "lost")
	_, live := b.whole(4)
	lost := b.feeds.Cursor(live)
	_, lostTimeline, err := b.timeline(b.first, "")
	require.NoError(t, err)

	c := b.moved(there.DSN("app"))
	messages, _ := c.feed(event.Position{})
	require.Equal(t, []string{"one", "two", "other"}, messages, "what was restored is there at once")
	c.tell(c.first, "three")
	messages, end = c.whole(4)
	require.Equal(t, []string{"one", "two", "other", "three"}, messages)
	for range 3 { // as its numbers pass those of the server before
		spend(there, "app", 3_000)
		messages, err = c.after(c.feeds.Cursor(end))
		require.NoError(t, err)
		require.Empty(t, messages, "nothing comes up again")
	}
	messages, err = c.after(kept)
	require.NoError(t, err)
	require.Equal(t, []string{"three"}, messages)
	_, err = c.after(lost)
	require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
	messages, _, err = c.timeline(c.first, keptTimeline)
	require.NoError(t, err)
	require.Equal(t, []string{"three"}, messages)
	_, _, err = c.timeline(c.first, lostTimeline)
	require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
	_, err = b.after(c.feeds.Cursor(end))
	require.True(t, fault.Is(err, fault.CursorExpired),
		"nor does the server before know what the other gave out: %v", err)
}

func TestARecoveryToAPointInTimeHidesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	here := pgtest.NewCluster(t)
	here.Migrated("app")
	backup := here.Backup()
	b := over(t, here.DSN("app"))
	b.tell(b.first, "one", "two")
	_, end := b.whole(2)
	kept := b.feeds.Cursor(end)
	here.Do("app", `SELECT pg_create_restore_point('before')`)
	b.tell(b.first, "lost")
	_, end = b.whole(3)
	lost := b.feeds.Cursor(end)
	_, lostTimeline, err := b.timeline(b.first, "")
	require.NoError(t, err)

	c := b.moved(backup.Recover("before").DSN("app")) // the same system, on another timeline
	c.tell(c.first, "three")
	messages, _ := c.whole(3)
	require.Equal(t, []string{"one", "two", "three"}, messages)
	messages, err = c.after(kept)
	require.NoError(t, err)
	require.Equal(t, []string{"three"}, messages)
	_, err = c.after(lost)
	require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
	_, _, err = c.timeline(c.first, lostTimeline)
	require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
}

// spend uses up a server's transaction numbers.
func spend(c *pgtest.Cluster, database string, numbers int) {
	c.Do(database, fmt.Sprintf(`DO $$ BEGIN FOR i IN 1..%d LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`,
		numbers))
}

func TestAConnectionWhoseServerTakesNoWritesAnyMoreIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	write := func() error {
		return b.DB.As(t.Context(), nil, func(ctx context.Context, w *tx.Tx) error {
			_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'written'`)
			return err
		})
	}
	require.NoError(t, write())
	conn, err := b.DB.Worker().Acquire(t.Context())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SET default_transaction_read_only = on`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE instance SET health_message = 'refused'`)
	require.True(t, tx.Away(err), "%v", err)
	require.True(t, conn.Conn().IsClosed())
	conn.Release()
	require.NoError(t, write())
}
