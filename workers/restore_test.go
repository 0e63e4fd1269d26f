package workers_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// alone is a database server without a replica.
type alone struct{ *pgtest.Cluster }

// AdminDSN implements place.
func (a alone) AdminDSN() string { return a.DSN("app") }

// OwnerDSN implements place.
func (a alone) OwnerDSN() string { return a.RoleDSN("app_owner", "app") }

// moved is the same platform, adapters and keys over another server's copy of its database.
func (l *lab) moved(to place) *lab {
	l.Helper()
	m := &lab{TB: l.TB, pace: l.pace, pg: to, asked: make(map[ids.ID]int), answer: healthy, keyDir: l.keyDir,
		ring: l.ring, platform: l.platform, log: l.log}
	var err error
	m.db, err = tx.Open(l.Context(), to.AdminDSN(), tx.Options{Connections: fewConnections})
	require.NoError(l.TB, err)
	l.Cleanup(m.db.Close)
	m.hub = event.NewHub(m.db.Worker(), m.log)
	m.db.SetHints(m.hub)
	m.background(m.hub.Run)
	owner, err := sql.Open("pgx", to.OwnerDSN())
	require.NoError(l.TB, err)
	l.Cleanup(func() { _ = owner.Close() })
	m.own = db.NewClient(db.Driver(entsql.OpenDB(dialect.Postgres, owner)))
	m.background(m.agent)
	return m
}

// read is a project's feed after a place, and the place behind it.
func (l *lab) read(project ids.ID, after event.Position) (found []ids.ID, end event.Position, err error) {
	l.Helper()
	feeds, err := event.NewFeeds(l.Context(), l.db.Feed())
	require.NoError(l.TB, err)
	for {
		page, err := feeds.Project(l.Context(), project, []string{"apps"}, after, 100)
		if err != nil || len(page) == 0 {
			return found, after, err
		}
		for _, each := range page {
			found = append(found, each.ID)
		}
		after = event.PositionOf(page[len(page)-1])
	}
}

// copies are the ways in which a database comes to another server: begun before operations run, and carried out while
// they do.
var copies = map[string]func(here *pgtest.Cluster) (mark func(), restore func() *pgtest.Cluster){
	"a dump": func(here *pgtest.Cluster) (func(), func() *pgtest.Cluster) {
		there := pgtest.NewCluster(here.TB())
		// its numbers are far ahead
		here.Do("app", `DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
		return func() { here.Dump("app", there) }, func() *pgtest.Cluster { return there }
	},
	"a point in time": func(here *pgtest.Cluster) (func(), func() *pgtest.Cluster) {
		backup := here.Backup()
		return func() { here.Do("app", `SELECT pg_create_restore_point('before')`) },
			func() *pgtest.Cluster { return backup.Recover("before") }
	},
}

func TestOperationsUnderWayEndWhereTheirDatabaseIsRestored(t *testing.T) {
	t.Parallel()
	for name, copied := range copies {
		t.Run("from "+name, func(t *testing.T) {
			t.Parallel()
			here := pgtest.NewCluster(t)
			here.Migrated("app")
			mark, restore := copied(here)
			l := newLabOn(t, alone{here})
			s := l.quota("restored", 4)
			w := l.world("restored", s.url)
			stop := l.work()
			kept := l.fleetOf(w, 12)
			l.until("some have ended, all are sent", func() bool {
				return l.count(`SELECT count(*) FROM operation
					WHERE ended_at IS NOT NULL`) == 4 && l.sent(s.script) == 12
			})
			_, place, err := l.read(w.project, event.Position{})
			require.NoError(t, err)
			kept = append(kept, l.fleetOf(w, 4)...)
			mark() // while workers send them

			lost := l.fleetOf(w, 2) // what follows is a future that is lost
			s.allow(12)
			l.until("more have ended", func() bool {
				return l.count(`SELECT count(*) FROM operation WHERE
				ended_at IS NOT NULL`) >= 12
			})
			l.until("the lost ones are sent", func() bool { return l.sent(s.script) == 18 })
			_, beyond, err := l.read(w.project, place)
			require.NoError(t, err)
			stop()

			m := l.moved(alone{restore()})
			m.work()
			s.allow(100)
			m.allEnded(t)
			for _, each := range kept {
				op := m.op(each.create)
				require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
				require.Equal(t, 1, op.DispatchAttempt)
				s.oneEffect(string(each.create))
				m.once(each, "apps.operation.started", "apps.instance.running", "apps.operation.succeeded")
			}
			for _, each := range lost {
				require.Zero(t, m.own.Operation.Query().Where(dboperation.ID(each.create)).CountX(t.Context()))
			}
			m.none(`SELECT id FROM operation_step WHERE state IN ('PENDING', 'RUNNING', 'UNDOING')`)
			m.reads(t, w.project, place, beyond)
		})
	}
}

// reads requires that the feed is the table's, from its beginning and from a place of the past that was kept, and that
// a place of the future that was lost is refused.
func (l *lab) reads(t *testing.T, project ids.ID, kept, lost event.Position) {
	t.Helper()
	require.Eventually(t, func() bool { // instances go on to be observed
		before := l.table(project)
		all, _, err := l.read(project, event.Position{})
		require.NoError(t, err)
		since, _, err := l.read(project, kept)
		require.NoError(t, err)
		after := l.table(project)
		if len(before) != len(after) || len(all) != len(after) {
			return false
		}
		require.Equal(t, after, all, "nothing is hidden, nothing comes twice")
		require.NotEmpty(t, since)
		require.Equal(t, after[len(after)-len(since):], since, "the feed goes on behind what was read before")
		return true
	}, patience, 20*time.Millisecond)
	_, _, err := l.read(project, lost)
	require.True(t, fault.Is(err, fault.CursorExpired), "%v", err)
	require.Zero(t, l.count(`SELECT (SELECT sum(revision) FROM instance) - (SELECT count(*) FROM app_instance_event)`),
		"no number of a timeline is missing")
	var numbers int
	require.NoError(t, l.pool().QueryRow(context.Background(), `SELECT count(DISTINCT (instance_id, seq)) - count(*)
		FROM app_instance_event`).
		Scan(&numbers))
	require.Zero(t, numbers)
}
