package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pump"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/task"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// reportsAtOnce bounds the reports that are sent at once.
	reportsAtOnce = 8
	// runningPatience bounds the report that a task runs.
	runningPatience = 5 * time.Second
	// askedEvery bounds the pause before a platform that did not answer is asked again whether to begin a task.
	askedEvery = 2 * time.Second
	// shortTail is how much of a stream is left in a result that the platform found too large, in bytes.
	shortTail = 8 << 10
)

// reporter brings outcomes to the platform, each until it is acknowledged or refused for good.
type reporter struct {
	client  *platform.Client
	who     platform.Credentials
	journal *journal.Journal
	log     *slog.Logger
	ctx     context.Context
	wait    sync.WaitGroup
	slots   chan struct{}

	mu      sync.Mutex
	pending map[string]int64 // task → fence
}

func newReporter(ctx context.Context, client *platform.Client, who platform.Credentials, j *journal.Journal,
	log *slog.Logger) *reporter {
	return &reporter{
		ctx: ctx, client: client, who: who, journal: j, log: log,
		slots: make(chan struct{}, reportsAtOnce), pending: map[string]int64{},
	}
}

// append sends a piece of output.
func (r *reporter) append(ctx context.Context, piece gql.AppendNodeTaskOutputInput) (int, error) {
	return r.client.Append(ctx, r.who, piece)
}

// ask reports that a task begins and waits for the platform's answer, so that nothing begins after its operation ended,
// whatever cut lay between the task's delivery and its turn. It returns task.ErrCanceled for a task that the platform
// does not want any more, or the cause of ctx's end. It repeats the report while the platform does not answer.
func (r *reporter) ask(ctx context.Context, work task.Task) error {
	retry := pace.New(askedEvery)
	for {
		err := r.begin(ctx, work)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			return nil
		case platform.Permanent(err):
			r.log.Info("task is not started: the platform no longer wants it", "", work, "error", err)
			return task.ErrCanceled
		}
		r.log.Debug("the start of a task is not confirmed; it will be reported again", "", work, "error", err)
		if err := retry.Wait(ctx); err != nil {
			return err
		}
	}
}

// begin reports once that a task runs.
func (r *reporter) begin(ctx context.Context, work task.Task) error {
	ctx, cancel := context.WithTimeout(ctx, runningPatience)
	defer cancel()
	return r.client.Report(ctx, r.who, gql.ReportNodeTaskInput{TaskId: work.ID, Fence: int(work.Fence),
		State: gql.NodeTaskStateRunning})
}

// running reports that a task has begun, and how far it is when far is given.
func (r *reporter) running(ctx context.Context, work task.Task, far *gql.ReportNodeTaskInput) {
	ctx, cancel := context.WithTimeout(ctx, runningPatience)
	defer cancel()
	report := gql.ReportNodeTaskInput{}
	if far != nil {
		report = *far
	}
	report.TaskId, report.Fence, report.State = work.ID, int(work.Fence), gql.NodeTaskStateRunning
	if err := r.client.Report(ctx, r.who, report); err != nil {
		r.log.Debug("progress of the task not reported", "", work, "error", err)
	}
}

// add reports an outcome unless that is going on already. Output may be nil.
func (r *reporter) add(entry journal.Entry, output *pump.Pump) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fence, ok := r.pending[entry.TaskID]; ok && fence >= entry.Fence || r.ctx.Err() != nil {
		return
	}
	r.pending[entry.TaskID] = entry.Fence
	if output == nil {
		output = pumpOf(entry, r.append)
	}
	r.wait.Go(func() { r.deliver(entry, output) })
}

func (r *reporter) deliver(entry journal.Entry, output *pump.Pump) {
	defer r.settle(entry)
	retry := pace.New(maxBackoff)
	report := gql.ReportNodeTaskInput{
		TaskId: entry.TaskID, Fence: int(entry.Fence), State: gql.NodeTaskState(entry.Outcome.State),
		ExitCode: entry.Outcome.ExitCode,
		Result:   entry.Outcome.Result, Message: entry.Outcome.Message,
	}
	for {
		err := r.once(client.WithTraceparent(r.ctx, entry.Context.Traceparent), report, output)
		if err == nil || r.final(entry, &report, err) {
			if err := r.journal.Reported(entry.TaskID, entry.Fence); err != nil {
				r.log.Error("acknowledgement not journalled", "", entry, "error", err)
			}
			return
		}
		r.log.Debug("outcome will be reported again", "", entry, "error", err)
		if retry.Wait(r.ctx) != nil {
			return
		}
	}
}

// once sends the output that the platform lacks and then the outcome. Output that is refused does not keep the outcome
// back: its end is in the result.
func (r *reporter) once(ctx context.Context, report gql.ReportNodeTaskInput, output *pump.Pump) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
	if err := output.Flush(ctx); err != nil && !platform.Permanent(err) {
		return err
	}
	return r.client.Report(ctx, r.who, report)
}

// final reports whether the platform will never take the report. One that is too large is shortened, and is not final
// yet.
func (r *reporter) final(entry journal.Entry, report *gql.ReportNodeTaskInput, err error) bool {
	if !platform.Permanent(err) {
		return false
	}
	if platform.TooLarge(err) {
		if short, ok := shorten(report.Result); ok {
			report.Result = short
			return false
		}
	}
	r.log.Warn("the platform refuses the outcome of a task", "", entry, "error", err)
	return true
}

// shorten cuts the streams of a run's result; false when that changes nothing.
func shorten(raw json.RawMessage) (json.RawMessage, bool) {
	var result task.RunResult
	if decodeResult(raw, &result) != nil || len(result.Stdout) <= shortTail && len(result.Stderr) <= shortTail {
		return nil, false
	}
	result.Stdout, result.Stderr = text.Tail(result.Stdout, shortTail), text.Tail(result.Stderr, shortTail)
	result.Truncated = true
	short, err := json.Marshal(result)
	return short, err == nil
}

func decodeResult(raw json.RawMessage, into *task.RunResult) error { return json.Unmarshal(raw, into) }

func (r *reporter) settle(entry journal.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[entry.TaskID] == entry.Fence {
		delete(r.pending, entry.TaskID)
	}
}
