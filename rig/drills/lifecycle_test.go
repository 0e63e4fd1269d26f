package drills_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// at reports why an operation is not in a step.
func (w *ward) at(operation, step string) error {
	shown, err := gql.GetOperation(w.ctx, w.admin, operation)
	if err != nil {
		return err
	}
	for _, one := range shown.Operation.Steps {
		if one.Name == step && one.State == gql.StepStateRunning {
			return nil
		}
	}
	return fmt.Errorf("not in %s: %s %+v", step, shown.Operation.State, shown.Operation.Steps)
}

// touch makes a file with its folders.
func (w *ward) touch(path string) {
	w.t.Helper()
	w.fine(os.MkdirAll(filepath.Dir(path), 0o755))
	w.fine(os.WriteFile(path, nil, 0o600))
}

// freezeWorker halts the process with the worker; the cure ends it, and its supervisor starts another.
func freezeWorker(w *ward) {
	worker := shared.Others[0]
	w.fine(worker.Signal(syscall.SIGSTOP))
	frozen := true
	w.mend = func() {
		if frozen {
			frozen = false
			w.fine(worker.Signal(syscall.SIGKILL))
		}
	}
	w.later(func(context.Context) { w.mend() })
}

// noWorker launches while no worker lives.
var noWorker = drill{fault: func(w *ward) { freezeWorker(w); w.launch() }, cure: launched}

// offline stops the node's agent until it counts as offline.
func (w *ward) offline() {
	w.t.Helper()
	agent := shared.Nodes[0].Agent
	w.fine(agent.Signal(syscall.SIGSTOP))
	frozen := true
	w.mend = func() {
		if frozen {
			frozen = false
			w.fine(agent.Signal(syscall.SIGKILL)) // its supervisor starts it again
		}
		w.eventually("the node is heard", func() error { return w.node(gql.NodeStatusOnline) })
	}
	w.later(func(context.Context) { w.mend() })
	w.eventually("the node counts as offline", func() error { return w.node(gql.NodeStatusOffline) })
}

// node reports why the node is not in a state.
func (w *ward) node(status gql.NodeStatus) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 10*time.Second)
	defer cancel()
	listed, err := gql.ListNodes(ctx, shared.Operator, 100, "")
	if err != nil {
		return err
	}
	for _, edge := range listed.Nodes.Edges {
		if edge.Node.Status == status {
			return nil
		}
	}
	return errors.New("no node is " + string(status))
}

// lifecycleDrills are those of what an operation waits for.
var lifecycleDrills = map[string]drill{
	"instance-stuck/created/prepare-node-unreachable": {
		fault: func(w *ward) {
			allocation := w.rent()
			w.offline()
			_, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
				in.AllocationIds = []string{allocation}
			})
			w.fine(err)
			w.about.ID = operation
		},
		cure: launched,
	},
	"instance-stuck/start/deadline": {
		fault: func(w *ward) {
			p := w.plays()
			does(&p.create, halts(nil, alive))
			allocation := w.rent()
			instance, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
				in.AllocationIds, in.DeadlineSeconds = []string{allocation}, 30
			})
			w.fine(err)
			w.about.ID = operation
			w.ends(operation)
			w.mend = func() { w.succeeds(w.decommission(instance, false)); w.about.ID = instance }
		},
		cure: func(w *ward) { w.mend() },
	},
	"instance-stuck/running/member-failed": {
		fault: func(w *ward) {
			p, dies := w.plays(), filepath.Join(w.t.TempDir(), "dies")
			does(&p.create, fragile(dies))
			w.about.ID = w.running()
			w.touch(dies)
		},
		cure: func(w *ward) {
			got, err := gql.RecoverMember(w.ctx, w.admin, gql.MemberInput{MemberId: w.members(w.about.ID)[0].Id,
				Reason: "the runbook says so", IdempotencyKey: client.NewKey()})
			w.fine(err)
			w.succeeds(got.RecoverMember.Operation.Id)
		},
	},
	"instance-stuck/start/end-refused": {
		fault: func(w *ward) {
			w.sql(`CREATE FUNCTION public.drill_refuses() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN RAISE EXCEPTION 'a rule that somebody added' USING ERRCODE = '23514'; END $$`)
			w.sql(`CREATE TRIGGER drill_refuses BEFORE UPDATE ON instance FOR EACH ROW
				WHEN (NEW.status = 'RUNNING') EXECUTE FUNCTION public.drill_refuses()`)
			there := true
			w.mend = func() {
				if there {
					there = false
					w.sql(`DROP TRIGGER drill_refuses ON instance`)
					w.sql(`DROP FUNCTION public.drill_refuses`)
				}
			}
			w.later(func(ctx context.Context) { w.ctx = ctx; w.mend() })
			w.launch()
		},
		cure: launched,
	},
	"instance-stuck/stopping/residue-residue-left": {
		fault: func(w *ward) {
			p := w.plays()
			instance := w.running()
			does(&p.gone, func(context.Context, *adapter.Run) error { return nil }) // it says so, and does nothing
			w.about.ID = w.decommission(instance, false)
			w.mend = func() { does(&p.gone, nil) }
		},
		cure: func(w *ward) {
			w.mend()
			ended := w.ends(w.about.ID)
			if ended.State != gql.OperationStateSucceeded {
				w.about.ID = w.decommission(*ended.InstanceId, false)
				w.succeeds(w.about.ID)
			}
		},
	},
	"instance-stuck/stopping/residue-node-unreachable": {
		fault: func(w *ward) {
			p := w.plays()
			instance := w.running()
			w.offline()
			does(&p.gone, func(context.Context, *adapter.Run) error { return nil })
			w.about.ID = w.decommission(instance, false)
			back := w.mend
			w.mend = func() { does(&p.gone, nil); back() }
		},
		cure: func(w *ward) {
			w.mend()
			ended := w.ends(w.about.ID)
			if ended.State != gql.OperationStateSucceeded {
				w.about.ID = w.decommission(*ended.InstanceId, false)
				w.succeeds(w.about.ID)
			}
		},
	},
	"instance-stuck/releasing/stopping": {
		fault: func(w *ward) {
			p, until := w.plays(), make(chan struct{})
			allocation := w.rent()
			_, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
				in.AllocationIds = []string{allocation}
			})
			w.fine(err)
			w.succeeds(operation)
			does(&p.gone, halts(until, leave))
			w.about.ID = w.release(allocation)
			w.mend = func() { close(until) }
		},
		cure: launched,
	},
	"instance-stuck/releasing/stop-failed": {
		fault: func(w *ward) {
			p := w.plays()
			allocation := w.rent()
			instance, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
				in.AllocationIds = []string{allocation}
			})
			w.fine(err)
			w.succeeds(operation)
			does(&p.gone, func(context.Context, *adapter.Run) error {
				return adapter.Fail("APP_BROKEN", adapter.OwnerAdapter, false, "it does not let go")
			})
			w.about.ID = w.release(allocation)
			w.ends(w.about.ID)
			w.mend = func() {
				does(&p.gone, nil)
				w.succeeds(w.decommission(instance, false))
				w.about.ID = w.release(allocation)
				w.succeeds(w.about.ID)
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"instance-stuck/waits/force-grace": {
		fault: func(w *ward) {
			p, until := w.plays(), make(chan struct{})
			instance := w.running()
			does(&p.gone, halts(until, leave))
			w.about.ID = w.decommission(instance, false)
			w.eventually("the adapter works", func() error { return w.at(w.about.ID, "await") })
			require.Equal(w.t, w.about.ID, w.decommission(instance, true), "the same operation goes on by force")
			w.mend = func() { close(until) } // the adapter ends it in its last two minutes
		},
		cure: launched,
	},
	"instance-stuck/waits/platform-trouble": {
		fault: func(w *ward) {
			w.sql(`CREATE FUNCTION public.drill_troubles() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$`)
			w.sql(`CREATE TRIGGER drill_troubles BEFORE INSERT ON node_task FOR EACH ROW
				EXECUTE FUNCTION public.drill_troubles()`)
			there := true
			clear := func() {
				if there {
					there = false
					w.sql(`DROP TRIGGER drill_troubles ON node_task`)
					w.sql(`DROP FUNCTION public.drill_troubles`)
				}
			}
			w.later(func(context.Context) { clear() })
			p := w.plays()
			does(&p.create, claims) // the first task on a node is then the platform's own
			instance, _ := w.launch()
			w.mend = func() {
				clear()
				w.clears("PLATFORM_TROUBLE")
				w.succeeds(w.decommission(instance, false)) // what only claims to serve never would
				w.about.ID = instance
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"instance-stuck/waits/node-retired": {
		fault: func(w *ward) { w.retired(w.running) },
		cure: func(w *ward) {
			w.ends(w.decommission(w.about.ID, true)) // it ends as UNVERIFIED, and lists what may be left
		},
	},
}

// release requests the release of an allocation.
func (w *ward) release(allocation string) (operation string) {
	w.t.Helper()
	got, err := gql.ReleaseAllocation(w.ctx, w.admin, gql.ReleaseAllocationInput{AllocationId: allocation,
		Reason: "the runbook says so", IdempotencyKey: client.NewKey()})
	w.fine(err)
	return got.ReleaseAllocation.Operation.Id
}
