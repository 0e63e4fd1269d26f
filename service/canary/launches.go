package canary

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/rollout"
)

// mostLaunches bounds what a canary is judged by: its first launches and those beside it, in the order in which they
// were accepted. What they do not show, no later ones are needed to show.
const mostLaunches = 20_000

// launchesSQL reads them in the order in which they ended, those under way last; $3 adds the other operations.
const launchesSQL = `SELECT canary, state, began, ended, operations, operations_failed
	FROM platform.canary_launches($1, $2, $3)`

// launch is one of them. It names neither tenant nor instance.
type launch struct {
	canary                       bool
	state                        lifecycle.OperationState
	began                        time.Time
	ended                        *time.Time
	operations, operationsFailed int
}

func scanLaunch(row pgx.CollectableRow) (launch, error) {
	var l launch
	return l, row.Scan(&l.canary, (*string)(&l.state), &l.began, &l.ended, &l.operations, &l.operationsFailed)
}

// querier is a transaction or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// collect reads the launches without what else ran on their instances.
func collect(ctx context.Context, from querier, manifestID ids.ID) ([]launch, error) {
	found, err := from.Query(ctx, launchesSQL, manifestID, mostLaunches, false)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, scanLaunch)
}

// outcome is how the launch went, for the test; false while it is under way, and when it was canceled, which says
// nothing of the version.
func (l launch) outcome() (rollout.Outcome, bool) {
	failed := l.state == lifecycle.OperationFailed
	return rollout.Outcome{Canary: l.canary, Failed: failed}, failed || l.state == lifecycle.OperationSucceeded
}

// judge takes all outcomes into a test, and shows it to each after it was taken in.
func judge(launches []launch, beside bool, each func(launch, rollout.Outcome, *rollout.Test)) *rollout.Test {
	test := rollout.New(beside)
	for _, one := range launches {
		if outcome, ended := one.outcome(); ended {
			test.Add(outcome)
			each(one, outcome, test)
		}
	}
	return test
}

// tally counts the launches of one arm.
func tally(launches []launch, canary bool) *Arm {
	arm := &Arm{}
	var seconds []float64
	for _, one := range launches {
		if one.canary != canary {
			continue
		}
		arm.Operations += one.operations
		arm.OperationsFailed += one.operationsFailed
		outcome, ended := one.outcome()
		switch {
		case one.ended == nil:
			arm.Pending++
		case ended && outcome.Failed:
			arm.Launches++
			arm.Failed++
		case ended:
			arm.Launches++
			seconds = append(seconds, one.ended.Sub(one.began).Seconds())
		}
	}
	if arm.Launches > 0 {
		rate := float64(arm.Failed) / float64(arm.Launches)
		arm.FailureRate = &rate
	}
	slices.Sort(seconds)
	arm.TimeToRunningP50, arm.TimeToRunningP90 = quantile(seconds, 0.5), quantile(seconds, 0.9)
	return arm
}

// quantile lies between the two sorted values next to the place; nil without any.
func quantile(sorted []float64, of float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	place := of * float64(len(sorted)-1)
	low := int(place)
	value := sorted[low]
	if low+1 < len(sorted) {
		value += (place - float64(low)) * (sorted[low+1] - value)
	}
	return &value
}
