package drills_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// stopAdapter ends the app's own adapter, and starts it again when the drill is over at the latest.
func (w *ward) stopAdapter() {
	w.t.Helper()
	w.fine(shared.Controllers[adapterName].Stop())
	stopped := true
	w.mend = func() {
		if stopped {
			stopped = false
			w.fine(shared.StartController(w.ctx, stack.Apps()[0]))
		}
	}
	w.later(func(context.Context) { w.mend() })
}

// waitsFor launches while the player answers that way.
func (w *ward) waitsFor(front http.HandlerFunc) *player {
	w.t.Helper()
	p := w.plays()
	p.answers(front)
	w.launch()
	w.mend = func() { p.answers(nil) }
	return p
}

// launched mends and requires that the launch goes on by itself.
func launched(w *ward) {
	w.mend()
	w.succeeds(w.about.ID)
}

// refusedAction is the drill of an app that refuses its actions with a code.
func refusedAction(code string) drill {
	return drill{
		fault: func(w *ward) {
			p := w.plays()
			instance := w.running()
			acts := func(status int, body map[string]any) {
				p.answers(func(rw http.ResponseWriter, r *http.Request) {
					if !strings.Contains(r.URL.Path, "/actions/") {
						p.kit.ServeHTTP(rw, r)
						return
					}
					refuses(status, body)(rw, r)
				})
			}
			acts(http.StatusUnprocessableEntity, map[string]any{"code": code, "message": "not so", "path": "input"})
			w.refused(func() error {
				_, err := gql.InvokeAction(w.ctx, w.admin, gql.InvokeActionInput{InstanceId: instance,
					Action: "hello.list", Input: json.RawMessage("{}"), IdempotencyKey: client.NewKey()})
				return err
			})
			w.mend = func() { acts(http.StatusOK, map[string]any{"output": map[string]any{"peers": []string{}}}) }
		},
		cure: func(w *ward) { w.mend() },
	}
}

// invalid is an answer outside of the contract; the adapter is reached all the same.
func invalid(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"state": 7}`))
}

// unregistered takes the app's adapter off the list, as somebody does who cleans up in the database: the API has no
// verb for it.
func unregistered(w *ward) {
	url := w.adapterURL()
	w.sql(`UPDATE adapter SET name = 'put-aside' WHERE name = $1`, adapterName)
	again := func(ctx context.Context) {
		w.sql(`DELETE FROM adapter WHERE name = $1
			AND EXISTS (SELECT FROM adapter WHERE name = 'put-aside')`, adapterName)
		w.sql(`UPDATE adapter SET name = $1 WHERE name = 'put-aside'`, adapterName)
		_, err := gql.RegisterAdapter(ctx, shared.Operator, gql.RegisterAdapterInput{Name: adapterName, Url: url})
		w.fine(err)
	}
	w.later(again)
	w.launch()
	w.mend = func() { w.register(url, nil) }
}

var (
	away = drill{
		fault: func(w *ward) { w.stopAdapter(); w.launch() },
		cure:  launched,
	}
	refusesPlatform = drill{
		fault: func(w *ward) {
			w.waitsFor(refuses(http.StatusUnauthorized, map[string]string{"code": "UNAUTHENTICATED",
				"message": "who?"}))
		},
		cure: launched,
	}
	answersWrong = drill{fault: func(w *ward) { w.waitsFor(invalid) }, cure: launched}
	notDialled   = drill{
		fault: func(w *ward) {
			url := w.adapterURL()
			w.sql(`UPDATE adapter SET url = 'https://192.0.2.1' WHERE name = $1`, adapterName)
			w.mend = func() { w.register(url, nil) }
			w.later(func(ctx context.Context) {
				_, err := gql.RegisterAdapter(ctx, shared.Operator,
					gql.RegisterAdapterInput{Name: adapterName, Url: url})
				w.fine(err)
			})
			w.launch()
		},
		cure: launched,
	}
	failedLaunch = drill{
		fault: func(w *ward) {
			p := w.plays()
			does(&p.create, func(context.Context, *adapter.Run) error {
				return adapter.Fail("APP_BROKEN", adapter.OwnerAdapter, false, "its own check fails")
			})
			instance, operation := w.launch()
			w.ends(operation)
			w.mend = func() { w.succeeds(w.decommission(instance, false)); w.about.ID = instance }
		},
		cure: func(w *ward) { w.mend() },
	}
)

const (
	// slowAnswer is how long an adapter takes that is slow, and answers in its time all the same.
	slowAnswer = 12 * time.Second
	// crowd is how many calls one adapter may have at once.
	crowd = 8
)

// plodding plays an adapter that takes long for each answer until it is let go, and returns how many calls it has that
// are taken for slow.
func (w *ward) plodding(hold <-chan struct{}) *atomic.Int32 {
	w.t.Helper()
	p, slow := w.plays(), &atomic.Int32{}
	p.answers(func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-time.After(time.Second):
			slow.Add(1)
			select {
			case <-hold:
			case <-time.After(slowAnswer):
			}
			slow.Add(-1)
		}
		p.kit.ServeHTTP(rw, r)
	})
	return slow
}

func quick(of drill) drill { of.quick = true; return of }

// adapterDrills are those of an adapter that is away or wrong.
var adapterDrills = map[string]drill{
	"adapter-away/silent/down":                             quick(away),
	"operator/adapter-does-not-answer/away":                quick(away),
	"adapter-away/silent/not-registered":                   {fault: unregistered, cure: launched},
	"adapter-away/silent/dial-refused":                     notDialled,
	"adapter-away/wrong/refuses-platform":                  refusesPlatform,
	"adapter-away/wrong/invalid":                           answersWrong,
	"adapter-away/wrong/failed":                            failedLaunch,
	"instance-stuck/starting/dispatch-adapter-unavailable": quick(away),
	"instance-stuck/starting/dispatch-dial-refused":        notDialled,
	"instance-stuck/waits/adapter-refuses-platform":        refusesPlatform,
	"instance-stuck/waits/adapter-invalid":                 answersWrong,
	"adapter-away/silent/address-moved": {
		fault: func(w *ward) {
			url, ca := w.adapterURL(), w.certify()
			w.register("https://localhost.invalid:9", &ca.pem)
			w.later(func(ctx context.Context) {
				_, err := gql.RegisterAdapter(ctx, shared.Operator,
					gql.RegisterAdapterInput{Name: adapterName, Url: url})
				w.fine(err)
			})
			w.launch()
			w.mend = func() { w.register(url, nil) }
		},
		cure: launched,
	},
	"adapter-away/silent/busy": {
		fault: func(w *ward) {
			w.patience = 2 * time.Minute
			hold := make(chan struct{})
			slow := w.plodding(hold)
			w.mend = sync.OnceFunc(func() { close(hold) })
			rented := make([]string, crowd+1)
			for i := range rented {
				rented[i] = w.rent()
			}
			w.later(func(context.Context) { w.mend() }) // before they are given back
			launch := func(allocation string) {
				_, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
					in.AllocationIds = []string{allocation}
				})
				w.fine(err)
				w.about.ID = operation
			}
			for _, allocation := range rented[1:] {
				launch(allocation)
			}
			w.eventually("the adapter has its most calls", func() error {
				if slow.Load() < crowd {
					return errNotYet
				}
				return nil
			})
			launch(rented[0])
		},
		cure: launched,
	},
	"instance-stuck/starting/dispatch-adapter-rejected": {
		fault: func(w *ward) {
			p := w.waitsFor(nil)
			p.answers(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					refuses(http.StatusUnprocessableEntity, map[string]any{"code": "UNSAFE",
						"message": "two would be too many"})(rw, r)
					return
				}
				p.kit.ServeHTTP(rw, r)
			})
			instance, operation := w.launch()
			w.ends(operation)
			w.mend = func() { p.answers(nil); w.succeeds(w.decommission(instance, false)); w.about.ID = instance }
		},
		cure: func(w *ward) { w.mend() },
	},
	"instance-stuck/action/input":           refusedAction(adapter.CodeInvalid),
	"instance-stuck/action/by-the-app":      refusedAction("CLOSED"),
	"instance-stuck/starting/create-failed": failedLaunch,
	"instance-stuck/starting/await-working": {
		fault: func(w *ward) {
			p, until := w.plays(), make(chan struct{})
			does(&p.create, halts(until, alive))
			w.launch()
			w.mend = func() { close(until) }
		},
		cure: launched,
	},
	"instance-stuck/starting/verify-probes": {
		fault: func(w *ward) {
			p, root := w.plays(), filepath.Join(w.t.TempDir(), "root")
			does(&p.create, func(ctx context.Context, run *adapter.Run) error {
				for _, member := range run.Dispatch().Members {
					if err := shell(ctx, run, member, "where", `printf %s "$GPUAAS_MEMBER_ROOT" > `+root); err != nil {
						return err
					}
				}
				return claims(ctx, run)
			})
			w.launch()
			w.mend = func() { // a person makes what the app did not
				at, err := os.ReadFile(root)
				w.fine(err)
				w.touch(filepath.Join(string(at), "srv", "hello", "alive"))
			}
		},
		cure: launched,
	},
	"instance-stuck/stopping/dispatch-await-drains": {
		fault: func(w *ward) {
			p, until := w.plays(), make(chan struct{})
			instance := w.running()
			does(&p.gone, halts(until, leave))
			w.about.ID = w.decommission(instance, false)
			w.mend = func() { close(until) }
		},
		cure: launched,
	},
	"instance-stuck/waits/cancel-unanswered": {
		fault: func(w *ward) {
			p, until := w.plays(), make(chan struct{})
			does(&p.create, halts(until, alive))
			instance, operation := w.launch()
			w.eventually("the adapter works", func() error { return w.at(operation, "await") })
			p.answers(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					refuses(http.StatusServiceUnavailable, map[string]string{"code": "UNAVAILABLE",
						"message": "not now"})(rw, r)
					return
				}
				p.kit.ServeHTTP(rw, r)
			})
			_, err := gql.CancelOperation(w.ctx, w.admin, gql.CancelOperationInput{OperationId: operation,
				Reason: "a drill"})
			w.fine(err)
			w.mend = func() { p.answers(nil); w.ends(operation); w.about.ID = instance }
		},
		cure: func(w *ward) { w.mend() },
	},
	"instance-stuck/waits/work-running": {
		fault: func(w *ward) {
			instance := w.running()
			_, err := gql.InvokeAction(w.ctx, w.admin, gql.InvokeActionInput{InstanceId: instance, Action: "work.start",
				Input: []byte(`{"seconds": 25, "name": "drill"}`), IdempotencyKey: client.NewKey()})
			w.fine(err)
			drained, err := gql.DrainMember(w.ctx, w.admin, gql.DrainMemberInput{MemberId: w.members(instance)[0].Id,
				DeadlineSeconds: 300, IdempotencyKey: client.NewKey()})
			w.fine(err)
			w.about.ID = drained.DrainMember.Operation.Id
		},
		cure: func(w *ward) { w.succeeds(w.about.ID) },
	},
}
