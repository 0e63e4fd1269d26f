package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/sdk/client"
)

const (
	// maxCleanup is the longest a clean-up may take.
	maxCleanup = 2 * time.Minute
	// maxSaved is the largest checkpoint value, in bytes.
	maxSaved = 256 << 10
	// parallelMembers is how many members [Run.Each] works on at once.
	parallelMembers = 8
	// stderrTail is how much of a failed command's error output its failure quotes, in bytes.
	stderrTail = 800
)

// Run is one operation under way: what was asked, and the means to do it. It is safe for
// concurrent use.
type Run struct {
	kit    *Kit
	op     *operation
	client *Client
	log    *slog.Logger
	poke   chan struct{}

	dispatch   Dispatch
	generation int
	cancel     context.CancelCauseFunc
	done       chan struct{}

	mu       sync.Mutex
	deadline time.Time
	timer    *time.Timer
}

// Dispatch returns what was asked. Its deadline and token are those of the first attempt of this
// run; use ctx and [Run.Client] instead.
func (r *Run) Dispatch() Dispatch { return r.dispatch }

// Instance returns the instance.
func (r *Run) Instance() Instance { return r.dispatch.Instance }

// Of returns the members of one component, in the order of their indexes.
func (r *Run) Of(component string) []Member { return membersOf(r.dispatch.Members, component) }

// Targets returns the members the operation acts on.
func (r *Run) Targets() []Member {
	return slices.DeleteFunc(slices.Clone(r.dispatch.Members), func(m Member) bool {
		return !slices.Contains(r.dispatch.Targets, m.ID)
	})
}

// Config decodes the instance's config, which is valid against the app's schema, into out.
func (r *Run) Config(out any) error {
	if isNull(r.dispatch.Instance.Config) {
		return nil
	}
	if err := json.Unmarshal(r.dispatch.Instance.Config, out); err != nil {
		return Fail(CodeConfigInvalid, OwnerUser, false, "config cannot be read: %v", err)
	}
	return nil
}

// Log carries operation, instance and correlation id.
func (r *Run) Log() *slog.Logger { return r.log }

// Client reaches the public API with the operation's token.
func (r *Run) Client() *Client { return r.client }

// Progress says what is being done and how much is done, 0 to 100. It never goes back.
func (r *Run) Progress(phase string, percent int, message string) {
	r.op.mu.Lock()
	durable := r.op.status.Phase != phase
	r.op.mu.Unlock()
	err := r.kit.update(r.op, durable, func(s *Status) {
		s.Phase, s.Message = clip(phase, 100), clip(message, MaxMessage)
		s.Percent = max(s.Percent, min(percent, 100))
	})
	r.told(err)
}

// Member says where a member stands. Detail may be nil; it must encode to an object of at most
// [MaxDetail] bytes.
func (r *Run) Member(id string, status MemberStatus, health Health, detail map[string]any) error {
	update := MemberUpdate{ID: id, Status: status, Health: health}
	if detail != nil {
		raw, err := json.Marshal(detail)
		if err != nil || len(raw) > MaxDetail {
			return fmt.Errorf("detail of member %s is not JSON of at most %d bytes", id, MaxDetail)
		}
		update.Detail = raw
	}
	err := r.kit.update(r.op, true, func(s *Status) { s.Members = upsert(s.Members, update) })
	r.told(err)
	return err
}

// Evidence records what was seen that proves the outcome. All of it may be at most [MaxEvidence].
func (r *Run) Evidence(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("evidence %q: %w", key, err)
	}
	size := len(raw)
	r.op.mu.Lock()
	for other, held := range r.op.status.Evidence {
		if other != key {
			size += len(other) + len(held)
		}
	}
	r.op.mu.Unlock()
	if size > MaxEvidence {
		return fmt.Errorf("evidence %q: more than %d bytes in all", key, MaxEvidence)
	}
	return r.kit.update(r.op, true, func(s *Status) {
		evidence := map[string]json.RawMessage{key: raw}
		for other, held := range s.Evidence {
			if other != key {
				evidence[other] = held
			}
		}
		s.Evidence = evidence
	})
}

// Once returns the value saved under name, making and saving it when there is none: what is
// random or depends on the hour stays the same after a crash. Never save a secret in clear.
func (r *Run) Once(name string, make func() (string, error)) (string, error) {
	r.op.mu.Lock()
	saved, ok := r.op.saved[name]
	r.op.mu.Unlock()
	if ok {
		return saved, nil
	}
	value, err := make()
	if err != nil {
		return "", err
	}
	if len(value) > maxSaved {
		return "", fmt.Errorf("checkpoint %q: more than %d bytes", name, maxSaved)
	}
	return value, r.kit.record(r.op, record{Saved: map[string]string{name: value}})
}

// Commit marks the point after which cancelling would do harm: from here on a request to cancel
// is answered "too late". It fails when the platform has already canceled.
func (r *Run) Commit() error {
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	if r.op.canceled {
		return ErrCanceled
	}
	return r.kit.recordLocked(r.op, record{Committed: true}, true)
}

// Do runs a node task on a member and waits for it. The step names it within the operation: the
// same step is the same task, also after a crash, and its details are kept from the first time.
// A task that did not succeed is a failure owned by the node.
func (r *Run) Do(ctx context.Context, member Member, step string, task NodeTask, options ...TaskOption) (TaskResult, error) {
	result, err := r.Try(ctx, member, step, task, options...)
	if err == nil && result.State != TaskSucceeded {
		err = taskError(member, step, result)
	}
	return result, err
}

// Try is Do, but a task that did not succeed is a result and not an error.
func (r *Run) Try(ctx context.Context, member Member, step string, task NodeTask, options ...TaskOption) (TaskResult, error) {
	key := fmt.Sprintf("%s.%d.%s.%s", r.dispatch.OperationID, r.generation, member.ID, step)
	spec, err := newTaskSpec(key, task, options)
	if err != nil {
		return TaskResult{}, err
	}
	if spec.Spec, err = r.journalled(key, spec.Spec); err != nil {
		return TaskResult{}, err
	}
	result, err := r.client.Run(ctx, member.ID, spec)
	return result, platformFailure(step, err)
}

// journalled keeps what a step sends before it is sent. A resumed step must send the same bytes,
// or the platform would refuse its key: sealing alone makes every rendering different.
func (r *Run) journalled(key string, spec json.RawMessage) (json.RawMessage, error) {
	r.op.mu.Lock()
	kept, ok := r.op.steps[key]
	r.op.mu.Unlock()
	if ok {
		return kept, nil
	}
	return spec, r.kit.record(r.op, record{Step: key, Spec: spec})
}

// Each calls work for every member, several at once, and returns the first error after all have
// ended. The others are canceled by then.
func (r *Run) Each(ctx context.Context, members []Member, work func(context.Context, Member) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelMembers)
	for _, member := range members {
		group.Go(func() error { return work(ctx, member) })
	}
	return group.Wait()
}

// Cleanup returns a context for undoing things after ctx has ended, of at most two minutes. When
// the controller itself is stopping it is over at once: the run will resume, so nothing may be undone.
func (r *Run) Cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCleanup)
	if errors.Is(context.Cause(ctx), errStopping) {
		cancel()
	}
	return clean, cancel
}

func (r *Run) told(err error) {
	if err != nil {
		r.log.Error("status not journalled", "error", err)
	}
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// TaskOption changes how a node task is run.
type TaskOption func(*TaskSpec)

// Within bounds how long the task may take on the node, one second to one hour.
func Within(d time.Duration) TaskOption { return func(s *TaskSpec) { s.Timeout = d } }

func newTaskSpec(key string, task NodeTask, options []TaskOption) (TaskSpec, error) {
	raw, err := json.Marshal(task)
	if err != nil {
		return TaskSpec{}, fmt.Errorf("encode node task %s: %w", key, err)
	}
	spec := TaskSpec{IdempotencyKey: key, Kind: task.TaskKind(), Spec: raw}
	for _, option := range options {
		option(&spec)
	}
	return spec, nil
}

func taskError(member Member, step string, result TaskResult) error {
	text := result.Message
	if tail := strings.TrimSpace(result.Stderr); tail != "" {
		text += ": " + tail[max(0, len(tail)-stderrTail):]
	}
	return Fail(CodeNodeTask, OwnerNode, true, "step %s on member %s ended %s: %s", step, member.ID, result.State, strings.ToValidUTF8(text, "?"))
}

// platformFailure gives a refusal of the public API its owner; other errors pass.
func platformFailure(step string, err error) error {
	refused, ok := client.AsError(err)
	if !ok {
		return err
	}
	return Fail(CodePlatform, OwnerPlatform, true, "step %s: %s %s", step, refused.Code, clip(refused.Message, MaxMessage))
}

func upsert(list []MemberUpdate, update MemberUpdate) []MemberUpdate {
	list = slices.Clone(list)
	for i, held := range list {
		if held.ID == update.ID {
			list[i] = update
			return list
		}
	}
	return append(list, update)
}
