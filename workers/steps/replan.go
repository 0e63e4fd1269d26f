package steps

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// planFresh is how long the adapter's part of a plan holds.
const planFresh = time.Minute

// replanned is the state of a step that has requested the adapter's part of the plan again.
type replanned struct {
	PlanAskedAt time.Time `json:"planAskedAt"`
}

// asPlanned asks the adapter for its part of the plan again before the first step begins, when the plan has grown older
// than a minute in the queue. What has changed for the worse fails the operation before anything is done.
func (w *work) asPlanned(step engine.Step) engine.Step {
	return w.guarded(step, func(_ context.Context, c *engine.Context) (bool, error) {
		return c.Op.DispatchAttempt == 0 && !planHolds(c, c.Op.CreatedAt), nil
	})
}

// dispatch is the dispatch step, which may be tried long after the first step: then the plan is requested again. It is
// not for an operation that the adapter already has, for its work has begun, nor for one that force has taken over.
func (w *work) dispatch() engine.Step {
	return w.guarded(w.Dispatch(), func(ctx context.Context, c *engine.Context) (bool, error) {
		if _, forced := c.ForcedSince(); forced || c.Op.DispatchAttempt > 1 || planHolds(c, c.EndedAt("prepare")) {
			return false, nil
		}
		has, err := w.Has(ctx, c)
		return !has, err
	})
}

// guarded is a step that is run once the plan, where it is due, still holds.
func (w *work) guarded(step engine.Step, due func(context.Context, *engine.Context) (bool, error)) engine.Step {
	run := step.Run
	step.Run = func(ctx context.Context, c *engine.Context) (engine.Result, error) {
		ask, err := due(ctx, c)
		if err != nil || !ask {
			return orRun(ctx, c, run, err)
		}
		worse, err := w.replan(ctx, c)
		if err == nil && worse != "" {
			return engine.Fail(operation.Failure{Code: string(fault.PlanStale), Owner: operation.OwnerUser,
				Message: "nothing was done, since the plan is more than a minute old and does not hold any more: " +
					worse +
					"; plan again"}), nil
		}
		return orRun(ctx, c, run, err)
	}
	return step
}

// orRun runs the step unless there is an error.
func orRun(
	ctx context.Context, c *engine.Context, run func(context.Context, *engine.Context) (engine.Result,
		error), err error,
) (engine.Result, error) {
	if err != nil {
		return engine.Result{}, err
	}
	return run(ctx, c)
}

// planHolds reports whether the adapter's part of the plan need not be requested: there is no plan, or it is fresh.
func planHolds(c *engine.Context, since time.Time) bool {
	if operation.PrivateOf(c.Op.Operation).Planned == nil {
		return true
	}
	var known replanned
	if c.State(&known) == nil && known.PlanAskedAt.After(since) {
		since = known.PlanAskedAt
	}
	return c.Now().Sub(since) <= planFresh
}

// replan asks again and returns what is worse than the plan showed; empty when nothing is.
func (w *work) replan(ctx context.Context, c *engine.Context) (string, error) {
	planned := operation.PrivateOf(c.Op.Operation).Planned
	now, err := w.AskPlan(ctx, c, c.Op.Force)
	if err != nil {
		return "", err
	}
	if worse := planned.Now.Worse(now, c.Op.Force); worse != "" {
		return worse, nil
	}
	if planned.AtDeadline != nil {
		byForce, err := w.AskPlan(ctx, c, true)
		if err != nil {
			return "", err
		}
		if worse := planned.AtDeadline.Worse(byForce, true); worse != "" {
			return worse, nil
		}
	}
	return "", c.SetState(replanned{PlanAskedAt: c.Now()})
}
