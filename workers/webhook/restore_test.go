package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	verbs "github.com/gpuaas/app-platform/service/webhook"
)

// moved is the same project over another server's copy of its database.
func (l *lab) moved(dsn string) *lab {
	l.TB.Helper()
	m := *l
	m.Kit = platformtest.Over(l.TB, dsn)
	feeds, err := event.NewFeeds(l.TB.Context(), m.DB.Worker())
	require.NoError(l.TB, err)
	m.verbs = &verbs.Service{DB: m.DB, Vault: l.vault, Feeds: feeds, Allow: l.verbs.Allow}
	return &m
}

// spend uses up a server's transaction numbers.
func spend(c *pgtest.Cluster) {
	c.Do("app", `DO $$ BEGIN FOR i IN 1..4000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
}

// What was delivered before the moment that is restored does not come again, what waited then comes, and what happens
// afterwards comes too, also once the numbers of the server's transactions pass those of the server before.
func TestARestoredDatabaseSendsWebhooksNothingTwiceAndLeavesNothingOut(t *testing.T) {
	t.Parallel()
	for name, copied := range map[string]func(here *pgtest.Cluster) (mark func(), restore func() *pgtest.Cluster){
		"from a dump": func(here *pgtest.Cluster) (func(), func() *pgtest.Cluster) {
			there := pgtest.NewCluster(here.TB())
			return func() { here.Dump("app", there) }, func() *pgtest.Cluster { return there }
		},
		"to a point in time": func(here *pgtest.Cluster) (func(), func() *pgtest.Cluster) {
			backup := here.Backup()
			return func() { here.Do("app", `SELECT pg_create_restore_point('before')`) },
				func() *pgtest.Cluster { return backup.Recover("before") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := pgtest.NewCluster(t)
			here.Migrated("app")
			spend(here)
			mark, restore := copied(here)
			l := newLabOver(t, platformtest.Over(t, here.DSN("app")))
			to := l.receiver()
			l.hook(to.URL)
			stop := l.work(nil)
			l.happen(lifecycle.EventInstanceHealthy, "one", "two", "three")
			l.settled(lifecycle.DeliveryDelivered, 3)
			stop()
			l.happen(lifecycle.EventInstanceHealthy, "waits")
			mark()
			l.happen(lifecycle.EventInstanceHealthy, "lost")
			stop = l.work(nil)
			l.settled(lifecycle.DeliveryDelivered, 5)
			stop()
			require.ElementsMatch(t, []string{"one", "two", "three", "waits", "lost"}, to.messages())

			there := restore()
			m := l.moved(there.DSN("app"))
			m.work(nil)
			m.settled(lifecycle.DeliveryDelivered, 4)
			m.happen(lifecycle.EventInstanceHealthy, "after one")
			m.settled(lifecycle.DeliveryDelivered, 5)
			for _, message := range []string{"after two", "after three"} { // as its numbers pass those of before
				spend(there)
				m.happen(lifecycle.EventInstanceHealthy, message)
			}
			m.settled(lifecycle.DeliveryDelivered, 7)
			require.Equal(t, 7, m.Count("webhook_delivery", ""))
			require.ElementsMatch(t, []string{"waits", "after one", "after two", "after three"}, to.messages()[5:])
			events := map[string]string{}
			for _, sent := range to.requests() {
				message, id := sent.event.Data.Message, sent.event.Data.ID
				require.True(t, events[message] == "" || events[message] == id,
					"what the lost future sent is known by its event")
				events[message] = id
			}
		})
	}
}
