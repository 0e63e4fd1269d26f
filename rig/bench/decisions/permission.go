package decisions

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
)

// The bars of a permission decision.
const (
	manyBindings = 100_000
	maxDecision  = 100 * time.Nanosecond
	decisionRuns = 100
	askedAtOnce  = 500 // divides the number of bindings
)

// measurePermission decides for a person who holds very many bindings. Loading them is apart.
func measurePermission(_ context.Context, b *kit.Bench) error {
	if err := authz.Load(); err != nil {
		return err
	}
	bindings := make([]authz.Binding, manyBindings)
	for i := range bindings {
		bindings[i] = authz.Binding{Role: authz.ProjectMember, TenantID: dataset.ID(ids.Tenant, i/4),
			ProjectID: dataset.ID(ids.Project, i)}
	}
	began := time.Now()
	actor := authz.NewActor(authz.Subject{Kind: authz.KindUser, ID: dataset.ID(ids.User, 0)}, bindings, nil, time.Now())
	loaded := time.Since(began)
	each, err := decide(actor, bindings)
	if err != nil {
		return err
	}
	allocations := testing.Benchmark(func(t *testing.B) {
		for t.Loop() {
			actor.Allows(authz.SchedulerQueueSubmit, bindings[0].TenantID, bindings[0].ProjectID)
		}
	}).AllocsPerOp()
	b.Sheet.Within("permission decision, 100,000 bindings", fmt.Sprintf("%.0f ns", float64(each)), "≤ 100 ns",
		each <= maxDecision)
	b.Sheet.Within("permission decision, allocations", fmt.Sprint(allocations), "0", allocations == 0)
	b.Sheet.Told("loading 100,000 bindings", kit.Millis(loaded), "", 0)
	return nil
}

// decide returns the cost of a decision in processor time of this thread, so that other work on the machine does not
// count: the best of some runs over every binding, in an order that no cache foresees. The ids decided on have just
// been read, as those of an object have.
func decide(actor *authz.Actor, bindings []authz.Binding) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(math.MaxInt64)
	asked := make([]authz.Object, askedAtOnce)
	for range decisionRuns {
		var spent time.Duration
		for from := 0; from < len(bindings); from += len(asked) {
			for i := range asked {
				binding := &bindings[(from+i)*7919%len(bindings)]
				asked[i] = authz.Object{TenantID: ids.ID(strings.Clone(string(binding.TenantID))),
					ProjectID: ids.ID(strings.Clone(string(binding.ProjectID)))}
			}
			took, err := decideOn(actor, asked)
			if err != nil {
				return 0, err
			}
			spent += took
		}
		best = min(best, spent/time.Duration(len(bindings)))
	}
	return best, nil
}

// decideOn decides on a permission that is granted on every object, and returns the thread time that this took.
func decideOn(actor *authz.Actor, objects []authz.Object) (time.Duration, error) {
	began, wrong := threadTime(), 0
	for i := range objects {
		if !actor.Allows(authz.SchedulerQueueSubmit, objects[i].TenantID, objects[i].ProjectID) {
			wrong++
		}
	}
	took := threadTime() - began
	if wrong > 0 {
		return 0, fmt.Errorf("%d wrong decisions", wrong)
	}
	return took, nil
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
