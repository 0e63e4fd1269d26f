package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pump"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/task"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/traces"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// journalEvery bounds the pause before a journal that did not take an outcome is tried again.
const journalEvery = 2 * time.Second

// await blocks until it is the task's turn and gives what frees its place, or the cause of ctx's end.
func (t turn) await(ctx context.Context) (release func(), err error) {
	var taken []chan struct{}
	release = func() {
		for _, slot := range taken {
			<-slot
		}
	}
	if t.after != nil {
		select {
		case <-t.after:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for _, slot := range t.slots {
		select {
		case slot <- struct{}{}:
			taken = append(taken, slot)
		case <-ctx.Done():
			release()
			return nil, context.Cause(ctx)
		}
	}
	return release, nil
}

// work owns a task from its turn to its journalled outcome.
func (d *desk) work(ctx context.Context, held *job, turn turn, attempt task.Attempt) {
	defer d.leave(held)
	release, err := turn.await(ctx)
	asked := err == nil && attempt.Epoch == ""
	if err == nil {
		defer release()
		if asked {
			err = d.reporter.ask(ctx, held.task)
		}
	}
	switch {
	case err == nil:
	case attempt.Resumed: // it may run in its member; the executor must look
		if errors.Is(err, task.ErrCanceled) {
			held.cancel(err)
		}
	case errors.Is(err, task.ErrCanceled):
		d.conclude(held, journal.Outcome{State: task.StateCanceled, Message: "canceled before it started"}, nil)
		return
	default:
		return // the agent stops; the journal knows that the task was not started
	}
	d.execute(ctx, held, attempt, asked)
}

// execute does the task. It reports that the task runs, unless work has asked the platform before. Without an outcome
// the journal keeps the task as running, for the next delivery.
func (d *desk) execute(ctx context.Context, held *job, attempt task.Attempt, asked bool) {
	output := pump.New(held.task.ID, held.task.Fence, d.reporter.append)
	pumping, stop := context.WithCancel(context.WithoutCancel(ctx))
	far := &progress{}
	var told sync.WaitGroup
	told.Go(func() {
		if !asked {
			d.reporter.running(ctx, held.task, nil)
		}
		told.Go(func() { d.reporter.follow(pumping, held.task, far) })
		output.Run(pumping)
	})
	attempt.Output, attempt.Progress = output.Take, far.take
	outcome, err := d.executor.Do(ctx, held.task, attempt)
	stop()
	told.Wait()
	output.Finish()
	switch {
	case errors.Is(err, task.ErrDetached):
	case err != nil:
		d.log.Error("task has no outcome yet; it will be requested again", "", held.task, "error", err)
		d.overflow()
	default:
		d.conclude(held, outcome, output)
	}
}

// conclude journals the outcome and hands it to the reporter. An outcome that a newer dispatch attempt has replaced is
// dropped.
func (d *desk) conclude(held *job, outcome journal.Outcome, output *pump.Pump) {
	if !d.keep(held, outcome) {
		return
	}
	work := held.task
	d.log.Info("task done", "", work, "state", outcome.State)
	traces.Ended(held.span, outcome.State)
	d.executor.Settle(context.WithoutCancel(d.ctx), work, outcome)
	d.reporter.add(journal.Entry{TaskID: work.ID, Fence: work.Fence, Kind: string(work.Kind),
		MemberID: work.MemberID, State: outcome.State, Outcome: &outcome, Context: work.Context}, output)
}

// keep journals the outcome, and reports whether it counts. A disk that does not take it, being full for one, is tried
// until it does: an outcome that is not journalled is neither settled with the member, which would forget it, nor
// reported, or an agent that is killed then would do the task again.
func (d *desk) keep(held *job, outcome journal.Outcome) bool {
	for retry, told := pace.New(journalEvery), false; ; told = true {
		d.mu.Lock()
		superseded := held.successor != nil
		d.mu.Unlock()
		if superseded {
			return false
		}
		err := d.journal.Finish(held.task.ID, outcome)
		if err == nil {
			return true
		}
		if !told {
			d.log.Error("outcome not journalled; it will be tried until it succeeds", "", held.task, "error", err)
		}
		if retry.Wait(d.ctx) != nil {
			return false // the agent stops; the next one finds the task as running
		}
	}
}

// leave lets go of the task, wakes what waited for it, and begins what replaces it.
func (d *desk) leave(held *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tasks, held.task.ID)
	close(held.done)
	member := d.members[held.task.MemberID]
	if member.held--; member.held == 0 {
		delete(d.members, held.task.MemberID)
	}
	if held.successor != nil && d.ctx.Err() == nil {
		d.begin(*held.successor, false, "")
	}
}

// resultText gives the streams of a run's journalled result, when they are whole.
func resultText(outcome *journal.Outcome) (map[string]string, bool) {
	var result task.RunResult
	if outcome == nil || decodeResult(outcome.Result, &result) != nil || result.Truncated {
		return nil, false
	}
	return map[string]string{"stdout": result.Stdout, "stderr": result.Stderr}, true
}

// pumpOf makes a pump that holds the streams of a result, for an agent that did not see them come.
func pumpOf(entry journal.Entry, send func(context.Context, gql.AppendNodeTaskOutputInput) (int, error)) *pump.Pump {
	output := pump.New(entry.TaskID, entry.Fence, send)
	streams, whole := resultText(entry.Outcome)
	if whole {
		for name, content := range streams {
			output.Take(wire.Output{Stream: name, Data: []byte(content)})
		}
		output.Finish()
	}
	return output
}
