package agent

import (
	"context"
	"log/slog"
	"regexp"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/task"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/traces"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

const (
	// maxTasks bounds the tasks that are held at once, waiting or running.
	maxTasks = 4096
	// maxAtOnce bounds the commands, probes and questions that run at once on the node, and apart from
	// those the changes; memberAtOnce bounds the former in one member.
	maxAtOnce    = 64
	memberAtOnce = 8
)

var taskIDForm = regexp.MustCompile(`^tsk_[0-9a-zA-Z]{1,64}$`)

// desk takes tasks as they come, decides what is to be done with each, and does it in order.
type desk struct {
	journal  *journal.Journal
	executor *task.Executor
	reporter *reporter
	log      *slog.Logger
	traces   *traces.Source
	ctx      context.Context // of the agent's run; tasks live in it
	wait     sync.WaitGroup

	mu       sync.Mutex
	tasks    map[string]*job
	members  map[string]*queue
	runs     chan struct{}
	changes  chan struct{}
	overflow func() // asks for all tasks anew, later
}

// job is a task that is held.
type job struct {
	task   task.Task
	cancel context.CancelCauseFunc
	done   chan struct{}
	span   trace.Span
	// successor is the same task with a higher fence, which waits for this one's end; with one the job
	// leaves no outcome behind.
	successor *gql.NodeWork
}

// queue is the order of one member's tasks.
type queue struct {
	// last is closed when the latest change of the member is done; what arrives later waits for it.
	last  chan struct{}
	slots chan struct{}
	held  int
}

func newDesk(ctx context.Context, j *journal.Journal, executor *task.Executor, reporter *reporter, log *slog.Logger,
	overflow func()) *desk {
	return &desk{
		ctx: ctx, journal: j, executor: executor, reporter: reporter, log: log, overflow: overflow,
		tasks: map[string]*job{}, members: map[string]*queue{},
		runs: make(chan struct{}, maxAtOnce), changes: make(chan struct{}, maxAtOnce),
	}
}

// take is called for every task that the stream brings: new ones, those of an earlier life, changes of
// those that are held, and repetitions.
func (d *desk) take(sent gql.NodeWork) {
	if !taskIDForm.MatchString(sent.Id) {
		d.log.Warn("task with an unusable id refused", "task_id", sent.Id, "correlation_id", sent.CorrelationId)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	if held, ok := d.tasks[sent.Id]; ok {
		d.again(held, sent)
		return
	}
	fence := int64(sent.Fence)
	entry, known := d.journal.Get(sent.Id)
	switch {
	case known && fence < entry.Fence:
		d.log.Warn("task with a stale fence refused", "task_id", sent.Id, "correlation_id", sent.CorrelationId, "fence",
			fence, "known", entry.Fence)
	case known && fence == entry.Fence && entry.Outcome != nil:
		d.reporter.add(entry, nil)
	case known && fence == entry.Fence && entry.State != journal.StateRunning:
		d.log.Warn("task ended too long ago: its outcome is no longer known", "task_id", sent.Id,
			"correlation_id", sent.CorrelationId, "state", entry.State)
	case len(d.tasks) >= maxTasks:
		d.log.Warn("too many tasks at once; they will be requested again", "held", len(d.tasks))
		d.overflow()
	default:
		d.begin(sent, known && fence == entry.Fence, entry.Epoch)
	}
}

// again handles a task that is held: a cancellation, a higher fence, or a mere repetition.
func (d *desk) again(held *job, sent gql.NodeWork) {
	fence := int64(sent.Fence)
	switch {
	case fence < held.task.Fence:
		d.log.Warn("task with a stale fence refused", "task_id", sent.Id, "correlation_id", sent.CorrelationId, "fence",
			fence, "known", held.task.Fence)
	case fence > held.task.Fence:
		d.log.Info("task is dispatched again; the running one is stopped", "", held.task, "new_fence", fence)
		held.successor = &sent
		held.cancel(task.ErrCanceled)
	case sent.CancelRequested:
		held.cancel(task.ErrCanceled)
	}
}

// begin journals and queues a task. With d.mu held.
func (d *desk) begin(sent gql.NodeWork, resumed bool, epoch string) {
	work := task.Task{
		ID: sent.Id, Fence: int64(sent.Fence), Kind: nodetask.Kind(sent.Kind), MemberID: sent.MemberId,
		InstanceID: sent.InstanceId,
		Spec:       sent.Spec, Timeout: task.TimeoutOf(sent.TimeoutSeconds), Walls: wallsOf(sent.Binding),
		Looks: sent.OperationId == nil, Context: traces.ContextOf(sent),
	}
	if !resumed {
		if err := d.journal.Accept(work.ID, work.Fence, work.MemberID, string(work.Kind), work.Context); err != nil {
			d.log.Error("task not taken: it cannot be journalled", "", work, "error", err)
			d.overflow()
			return
		}
	}
	traced, span := d.traces.Task(d.ctx, work, resumed)
	ctx, cancel := context.WithCancelCause(traced)
	held := &job{task: work, cancel: cancel, done: make(chan struct{}), span: span}
	if sent.CancelRequested {
		cancel(task.ErrCanceled)
	}
	d.tasks[work.ID] = held
	turn := d.enqueue(held)
	d.log.Info("task taken", "", work, "resumed", resumed)
	d.wait.Go(func() {
		defer span.End()
		defer cancel(nil)
		d.work(ctx, held, turn, task.Attempt{Resumed: resumed, Epoch: epoch})
	})
}

// turn is when a task may start: after the changes that arrived before it, in a free place.
type turn struct {
	after <-chan struct{}
	slots []chan struct{}
}

// enqueue gives the task its place in the member's order. With d.mu held.
func (d *desk) enqueue(held *job) turn {
	member := d.members[held.task.MemberID]
	if member == nil {
		member = &queue{slots: make(chan struct{}, memberAtOnce)}
		d.members[held.task.MemberID] = member
	}
	member.held++
	mine := turn{after: member.last}
	if task.Changes(held.task.Kind) {
		member.last = held.done
		mine.slots = []chan struct{}{d.changes}
	} else {
		mine.slots = []chan struct{}{member.slots, d.runs}
	}
	return mine
}
