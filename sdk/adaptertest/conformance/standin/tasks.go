package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// task is one node task. What changes is guarded by the platform's mutex.
type task struct {
	id, key, spec string
	input         taskInput
	grant         *Grant
	created       time.Time

	state   adapter.TaskState
	begun   bool
	outcome sandbox.Outcome
	cancel  context.CancelFunc
	free    chan struct{} // closed when nothing holds it back any more
	done    chan struct{}
}

// taskInput is the input of runNodeTask.
type taskInput struct {
	MemberID       string           `json:"memberId"`
	Kind           adapter.TaskKind `json:"kind"`
	Spec           json.RawMessage  `json:"spec"`
	TimeoutSeconds int              `json:"timeoutSeconds"`
	IdempotencyKey string           `json:"idempotencyKey"`
}

// Entry is one node task of the ledger.
type Entry struct {
	// ID is the task's id, Operation the operation (or call) of the token that requested it.
	ID, Operation string
	// Member, Kind and Spec are the task's, Key is its idempotency key.
	Member string
	Kind   adapter.TaskKind
	Spec   json.RawMessage
	Key    string
	// Created is when it was requested.
	Created time.Time
	// Begun is whether it was carried out at all, State its present state.
	Begun bool
	State adapter.TaskState
	// Message, ExitCode, Stdout and Stderr are how it ended.
	Message        string
	ExitCode       *int
	Stdout, Stderr string
}

// entry returns the task for a ledger. The caller holds the platform's lock.
func (t *task) entry() Entry {
	return Entry{
		ID: t.id, Operation: t.grant.operation, Member: t.input.MemberID, Kind: t.input.Kind, Spec: t.input.Spec,
		Key: t.input.IdempotencyKey, Created: t.created, Begun: t.begun, State: t.state, Message: t.outcome.Message,
		ExitCode: t.outcome.ExitCode, Stdout: t.outcome.Stdout, Stderr: t.outcome.Stderr,
	}
}

// Requested returns how many node tasks were requested so far.
func (p *Platform) Requested() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ledger)
}

// Since returns the node tasks of every instance after the first so many, oldest first.
func (p *Platform) Since(first int) (list []Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.ledger[min(first, len(p.ledger)):] {
		list = append(list, t.entry())
	}
	return list
}

// Acts reports whether a task of this kind changes the member: probes and inspections only look.
func Acts(kind adapter.TaskKind) bool {
	switch kind {
	case adapter.TaskRun, adapter.TaskWriteFile, adapter.TaskStartProcess, adapter.TaskStopProcess,
		adapter.TaskFetchArtifact, adapter.TaskCloudInit, adapter.TaskTeardown:
		return true
	}
	return false
}

// Ledger returns every node task of an instance so far, oldest first.
func (p *Platform) Ledger(instance string) []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Entry
	for _, t := range p.ledger {
		if t.grant.instance == instance {
			list = append(list, t.entry())
		}
	}
	return list
}

// refusal is an error with a code of the public API's catalogue.
type refusal struct{ code, message string }

func (r refusal) Error() string { return r.code + ": " + r.message }

// runTask returns the task of an idempotency key, or begins a new one.
func (p *Platform) runTask(g *Grant, input taskInput) (map[string]any, error) {
	if err := check(g, &input); err != nil {
		return nil, err
	}
	spec := fmt.Sprintf("%s %d %s", input.Kind, input.TimeoutSeconds, input.Spec)
	key := input.MemberID + " " + input.IdempotencyKey
	p.mu.Lock()
	defer p.mu.Unlock()
	if held, known := p.tasks[key]; known {
		if held.spec != spec {
			return nil, refusal{"IDEMPOTENCY_KEY_REUSED",
				"the idempotency key was used for another task of this member"}
		}
		return held.view(), nil
	}
	if len(p.ledger) >= maxTasks {
		return nil, refusal{"LIMIT_EXCEEDED", fmt.Sprintf("more than %d node tasks", maxTasks)}
	}
	t := &task{
		id: fmt.Sprintf("tsk_%06d", len(p.ledger)), key: key, spec: spec, input: input, grant: g, created: time.Now(),
		state: adapter.TaskPending, free: make(chan struct{}), done: make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(p.ctx)
	t.cancel = cancel
	p.tasks[key], p.tasks[t.id] = t, t
	p.ledger = append(p.ledger, t)
	fate := p.fateLocked(t)
	p.work.Go(func() { p.carryOut(ctx, t, fate) })
	return t.view(), nil
}

// check refuses an input that the public API refuses, and fills in the default of the timeout.
func check(g *Grant, input *taskInput) error {
	if input.TimeoutSeconds == 0 {
		input.TimeoutSeconds = 60
	}
	switch {
	case !g.open && !g.members[input.MemberID]:
		return refusal{"NOT_FOUND", "the member is not one of this token's instance"}
	case input.IdempotencyKey == "" || len(input.IdempotencyKey) > 200:
		return refusal{"INVALID_ARGUMENT", "input.idempotencyKey must be 1 to 200 bytes"}
	case input.TimeoutSeconds < 1 || input.TimeoutSeconds > 3600:
		return refusal{"INVALID_ARGUMENT", "input.timeoutSeconds must be 1 to 3600"}
	case len(input.Spec) > 512<<10:
		return refusal{"INVALID_ARGUMENT", "input.spec is larger than 512 KiB"}
	}
	return nil
}

// carryOut waits until nothing holds the task back and carries it out, once.
func (p *Platform) carryOut(ctx context.Context, t *task, fate Fate) {
	defer t.cancel()
	switch fate {
	case Fail:
		p.end(
			t,
			sandbox.Outcome{
				State: adapter.TaskFailed, Message: "the stand-in platform failed this task on purpose",
				Result: map[string]any{"code": "INTERNAL"},
			},
		)
		return
	case Hold, Lose:
		select {
		case <-t.free:
		case <-ctx.Done():
			p.end(t, sandbox.Outcome{State: adapter.TaskCanceled, Message: "canceled before it began"})
			return
		}
	}
	p.mu.Lock()
	t.begun, t.state = true, adapter.TaskRunning
	p.mu.Unlock()
	p.end(t, p.nodes.Do(ctx, sandbox.Task{
		InstanceID: t.grant.instance, MemberID: t.input.MemberID, Kind: t.input.Kind, Spec: t.input.Spec,
		Timeout: time.Duration(t.input.TimeoutSeconds) * time.Second,
	}))
}

func (p *Platform) end(t *task, outcome sandbox.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.outcome, t.state = outcome, outcome.State
	close(t.done)
}

// cancelTask cancels a task and waits a second for its end.
func (p *Platform) cancelTask(ctx context.Context, g *Grant, id string) (map[string]any, error) {
	t, err := p.taskOf(g, id)
	if err != nil {
		return nil, err
	}
	t.cancel()
	return p.awaitTask(ctx, g, id, time.Second)
}

// awaitTask returns the task at its end or when the time is over.
func (p *Platform) awaitTask(ctx context.Context, g *Grant, id string, wait time.Duration) (map[string]any, error) {
	t, err := p.taskOf(g, id)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return t.view(), nil
}

func (p *Platform) taskOf(g *Grant, id string) (*task, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.tasks[id]
	if !ok || t.id != id || t.grant.instance != g.instance {
		return nil, refusal{"NOT_FOUND", "no such node task"}
	}
	return t, nil
}

// view returns the task as the public API shows it. The caller holds the platform's lock.
func (t *task) view() map[string]any {
	view := map[string]any{
		"__typename": "NodeTask", "id": t.id, "memberId": t.input.MemberID, "instanceId": t.grant.instance,
		"nodeId":      "nod_1",
		"operationId": t.grant.operation, "kind": t.input.Kind, "spec": t.input.Spec, "fence": 1, "state": t.state,
		"cancelRequested": t.state == adapter.TaskCanceled, "timeoutSeconds": t.input.TimeoutSeconds,
		"exitCode": nil, "result": nil, "message": t.outcome.Message, "stdout": t.outcome.Stdout,
		"stderr":    t.outcome.Stderr,
		"createdAt": t.created.UTC(), "startedAt": nil, "endedAt": nil,
	}
	if t.outcome.ExitCode != nil {
		view["exitCode"] = *t.outcome.ExitCode
	}
	if t.state.Ended() {
		view["result"] = t.outcome.Result
	}
	return view
}
