package drills_test

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// holds opens a transaction that has done a statement and stays open, and makes mend end its session.
func (w *ward) holds(statement string) {
	w.t.Helper()
	conn := w.connect()
	_, err := conn.Exec(w.ctx, "BEGIN")
	w.fine(err)
	_, err = conn.Exec(w.ctx, statement)
	w.fine(err)
	pid := conn.PgConn().PID()
	w.mend = func() { w.sql(`SELECT pg_terminate_backend($1)`, pid) }
}

// heldFeeds has a person's psql hold the feeds.
var heldFeeds = drill{
	fault: func(w *ward) { w.holds(`CREATE TABLE public.drill_of_a_person ()`) },
	cure:  func(w *ward) { w.mend() },
}

// databaseDrills are those of the database.
var databaseDrills = map[string]drill{
	"database/away/down": {
		quick: true,
		fault: func(w *ward) {
			w.fine(shared.KillDatabase())
			down := true
			w.mend = func() {
				if down {
					down = false
					w.fine(shared.StartDatabase(context.Background()))
				}
			}
			w.later(func(context.Context) { w.mend() })
		},
		cure: func(w *ward) { w.mend() },
	},
	"database/away/read-only": {
		fault: func(w *ward) {
			w.sql(`ALTER DATABASE app_platform SET default_transaction_read_only = on`)
			w.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'app_platform'
				AND pid <> pg_backend_pid()`)
			there := true
			w.mend = func() {
				if there {
					there = false
					conn, err := pgx.Connect(context.Background(), shared.AdminDSN())
					w.fine(err)
					defer func() { _ = conn.Close(context.Background()) }()
					for _, statement := range []string{`SET default_transaction_read_only = off`,
						`ALTER DATABASE app_platform RESET default_transaction_read_only`,
						`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
							WHERE datname = 'app_platform' AND pid <> pg_backend_pid()`} {
						_, err = conn.Exec(context.Background(), statement)
						w.fine(err)
					}
				}
			}
			w.later(func(context.Context) { w.mend() })
		},
		cure: func(w *ward) { w.mend() },
	},
	"database/away/connections-full": {
		fault: func(w *ward) {
			var hold []*pgx.Conn
			for range 500 {
				conn, err := pgx.Connect(w.ctx, shared.AdminDSN())
				if err != nil {
					break // the last ones are taken
				}
				hold = append(hold, conn)
			}
			w.mend = func() {
				for _, conn := range hold {
					_ = conn.Close(context.Background())
				}
			}
			w.later(func(context.Context) { w.mend() })
			w.fine(shared.Others[0].Signal(syscall.SIGKILL)) // a process that starts now gets no connection
		},
		cure: func(w *ward) { w.mend() },
	},
	"database/full/disk-full": {
		fault: func(w *ward) {
			allocation := w.rent()
			w.sql(`CREATE FUNCTION public.drill_is_full() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
				END $$`)
			w.sql(`CREATE TRIGGER drill_is_full BEFORE INSERT ON app_instance_event FOR EACH ROW
				EXECUTE FUNCTION public.drill_is_full()`)
			there := true
			w.mend = func() {
				if there {
					there = false
					w.sql(`DROP TRIGGER drill_is_full ON app_instance_event`)
					w.sql(`DROP FUNCTION public.drill_is_full`)
				}
			}
			w.later(func(ctx context.Context) { w.ctx = ctx; w.mend() })
			w.refused(func() error {
				_, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
					in.AllocationIds = []string{allocation}
				})
				if err == nil {
					w.succeeds(operation)
				}
				return err
			})
		},
		cure: func(w *ward) { w.mend() },
	},
	"database/slow/locked": {
		fault: func(w *ward) { w.holds(`LOCK TABLE app IN ACCESS EXCLUSIVE MODE`) },
		cure:  func(w *ward) { w.mend() },
	},
	"database/slow/lease": {
		fault: func(w *ward) { w.holds(`LOCK TABLE worker_process IN ACCESS EXCLUSIVE MODE`) },
		cure:  func(w *ward) { w.mend() },
	},
	"database/restored/new-generation": {
		fault: func(w *ward) {
			w.fine(shared.MoveDatabase(w.ctx))
		},
		cure: func(w *ward) { // what was revoked in the time that was lost is revoked again
			_, caller := w.account("project.read")
			keys, err := gql.ListServiceAccounts(w.ctx, w.operator, w.project, 100, "")
			w.fine(err)
			for _, edge := range keys.ServiceAccounts.Edges {
				for _, key := range edge.Node.Keys {
					if edge.Node.Name[:5] == "drill" && key.RevokedAt == nil {
						_, err := gql.RevokeServiceAccountKey(w.ctx, w.operator, key.Id, "again, after the restore")
						w.fine(err)
					}
				}
			}
			w.eventually("the key is revoked", func() error {
				_, err := gql.GetViewer(w.ctx, caller)
				if client.CodeOf(err) == client.CodeUnauthenticated {
					return nil
				}
				return errors.New("the key works")
			})
		},
	},
	"database/restored/cursor-expired": {
		fault: func(w *ward) {
			instance := w.running()
			cursor := w.cursor(instance)
			// What the dump does not have: it was written after it was taken.
			conn := w.connect()
			_, err := conn.Exec(w.ctx, `SET session_replication_role = replica`)
			w.fine(err)
			_, err = conn.Exec(w.ctx, `DELETE FROM app_instance_event WHERE instance_id = $1
				AND seq = (SELECT max(seq) FROM
				app_instance_event WHERE instance_id = $1)`, instance)
			w.fine(err)
			w.fine(shared.MoveDatabase(w.ctx))
			w.eventually("the platform is ready", func() error { return shared.AwaitReady(w.ctx) })
			w.about.Feed = w.once(w.admin, instance, cursor)
			w.walker.Since = time.Now()
			w.mend = func() { w.about.Feed = w.once(w.admin, instance, "") }
		},
		cure: func(w *ward) { w.mend() },
	},
}

// cursor is the place after an instance's newest event.
func (w *ward) cursor(instance string) (last string) {
	w.t.Helper()
	page, err := gql.ListEvents(w.ctx, w.admin, instance, 100, "")
	w.fine(err)
	for _, edge := range page.Instance.Events.Edges {
		last = edge.Cursor
	}
	return last
}

// once opens a live timeline and returns what it ends with, or nil after an event or three quiet seconds.
func (w *ward) once(caller recorder, instance, cursor string) error {
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Second)
	defer cancel()
	for _, err := range caller.Timeline(ctx, instance, cursor) {
		if err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	}
	return nil
}

// soon is how long a feed may take to answer.
const soon = 20 * time.Second

// feedDrills are those of feeds that are behind.
var feedDrills = map[string]drill{
	"feeds-behind/held/session":                 quick(heldFeeds),
	"operator/live-timeline-does-not-move/held": heldFeeds,
	"billing/while-it-lasts/watermark-held": {
		fault: func(w *ward) { w.about.TenantID, w.about.ProjectID = "", ""; heldFeeds.fault(w) },
		cure:  heldFeeds.cure,
	},
	"feeds-behind/subscriber/slow-consumer": slowConsumer,
	"feeds-behind/held/prepared": {
		fault: func(w *ward) {
			w.sql(`BEGIN; CREATE TABLE public.drill_prepared (); PREPARE TRANSACTION 'drill'`)
			there := true
			w.mend = func() {
				if there {
					there = false
					w.sql(`ROLLBACK PREPARED 'drill'`)
				}
			}
			w.later(func(ctx context.Context) { w.ctx = ctx; w.mend() })
		},
		cure: func(w *ward) { w.mend() },
	},
	"feeds-behind/subscriber/right-gone": {
		fault: func(w *ward) {
			instance := w.running()
			account, caller := w.account("project.read", "apps.instance.read")
			ended := make(chan error, 1)
			go func() {
				for _, err := range caller.Timeline(w.ctx, instance, "") {
					if err != nil {
						ended <- err
						return
					}
				}
				ended <- errors.New("it ended without an error")
			}()
			_, err := gql.UpdateServiceAccount(w.ctx, w.admin, gql.UpdateServiceAccountInput{ServiceAccountId: account,
				PermissionKeys: []string{"project.read"}, Reason: "a drill"})
			w.fine(err)
			select {
			case w.about.Feed = <-ended:
			case <-time.After(soon):
				w.t.Fatal("the feed goes on")
			}
			w.mend = func() {
				_, err := gql.UpdateServiceAccount(w.ctx, w.admin,
					gql.UpdateServiceAccountInput{ServiceAccountId: account,
						PermissionKeys: []string{"project.read", "apps.instance.read"}, Reason: "the runbook says so"})
				w.fine(err)
				w.about.Feed = w.once(w.keyed(account, nil), instance, "")
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"feeds-behind/webhooks/refused": {
		fault: func(w *ward) {
			hooks.answers(refuses(500, "no"))
			w.later(func(context.Context) { hooks.answers(nil) })
			made, err := gql.CreateWebhook(w.ctx, w.admin, gql.CreateWebhookInput{ProjectId: w.project,
				Url: "http://" + hooks.host + "/drill", EventTypes: []string{"apps.instance.requested"},
				IdempotencyKey: client.NewKey()})
			w.fine(err)
			id := made.CreateWebhook.Webhook.Id
			w.later(func(ctx context.Context) { _, _ = gql.DeleteWebhook(ctx, w.admin, id, "the drill is over") })
			w.running()
			w.mend = func() {
				hooks.answers(nil)
				failing, err := gql.ListWebhookDeliveries(w.ctx, w.admin, id, nil, 100, "")
				w.fine(err)
				for _, edge := range failing.WebhookDeliveries.Edges {
					_, err := gql.RedeliverWebhook(w.ctx, w.admin, edge.Node.Id)
					w.fine(err)
				}
			}
		},
		cure: func(w *ward) { w.mend() },
	},
}
