package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/journal"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

const (
	// maxCleanup is the longest a clean-up may take.
	maxCleanup = 2 * time.Minute
	// maxSaved is the largest checkpoint value, in bytes.
	maxSaved = 256 << 10
	// parallelMembers is how many members [Run.Each] works on at once.
	parallelMembers = 8
)

// Run is one operation under way: its dispatch, and the means to carry it out. It is safe for
// concurrent use.
type Run struct {
	engine *Engine
	op     *operation
	client *api.Client
	log    *slog.Logger
	poke   chan struct{}

	dispatch   contract.Dispatch
	generation int
	cancel     context.CancelCauseFunc
	done       chan struct{}

	mu       sync.Mutex
	deadline time.Time
	timer    *time.Timer
}

// Dispatch returns the request. Its deadline and token are those of the first attempt of this
// run; use ctx and [Run.Client] instead.
func (r *Run) Dispatch() contract.Dispatch { return r.dispatch }

// Instance returns the instance.
func (r *Run) Instance() contract.Instance { return r.dispatch.Instance }

// Of returns the members of one component, in the order of their indexes.
func (r *Run) Of(component string) []contract.Member {
	return contract.MembersOf(r.dispatch.Members, component)
}

// Targets returns the members the operation acts on.
func (r *Run) Targets() []contract.Member {
	return contract.TargetsOf(r.dispatch.Members, r.dispatch.Targets)
}

// Change decodes the desired change of the operation into out, such as an [contract.AddChange].
func (r *Run) Change(out any) error { return contract.DecodeChange(r.dispatch.Change, out) }

// Config decodes the instance's config, which is valid against the app's schema, into out.
func (r *Run) Config(out any) error {
	if wire.IsNull(r.dispatch.Instance.Config) {
		return nil
	}
	if err := json.Unmarshal(r.dispatch.Instance.Config, out); err != nil {
		return contract.Fail(contract.CodeConfigInvalid, contract.OwnerUser, false, "config cannot be read: %v", err)
	}
	return nil
}

// Log carries operation, instance and correlation id.
func (r *Run) Log() *slog.Logger { return r.log }

// Client reaches the public API with the operation's token.
func (r *Run) Client() *api.Client { return r.client }

// Progress reports the present phase and how much is done, 0 to 100 percent. The percentage never goes back.
func (r *Run) Progress(phase string, percent int, message string) {
	r.op.mu.Lock()
	durable := r.op.status.Phase != phase
	r.op.mu.Unlock()
	err := r.update(durable, func(s *contract.Status) {
		s.Phase, s.Message = wire.Clip(phase, 100), wire.Clip(message, contract.MaxMessage)
		s.Percent = max(s.Percent, min(percent, 100))
	})
	r.told(err)
}

// Member reports the state of a member. Detail may be nil; it must encode to an object of at most
// [contract.MaxDetail] bytes.
func (r *Run) Member(id string, status contract.MemberStatus, health contract.Health, detail map[string]any) error {
	update := contract.MemberUpdate{ID: id, Status: status, Health: health}
	if detail != nil {
		raw, err := json.Marshal(detail)
		if err != nil || len(raw) > contract.MaxDetail {
			return fmt.Errorf("detail of member %s is not JSON of at most %d bytes", id, contract.MaxDetail)
		}
		update.Detail = raw
	}
	err := r.update(true, func(s *contract.Status) { s.Members = upsert(s.Members, update) })
	r.told(err)
	return err
}

// WaitsFor reports which work the operation waits for right now, longest waiting first; nil when it no
// longer waits. Pieces beyond [contract.MaxWork] are left out. It is for people: nothing is decided by it.
func (r *Run) WaitsFor(work []contract.Work) {
	bounded := contract.BoundWork(work)
	r.op.mu.Lock()
	same := slices.Equal(r.op.status.WaitsFor, bounded)
	r.op.mu.Unlock()
	if same {
		return
	}
	r.told(r.update(false, func(s *contract.Status) { s.WaitsFor = bounded }))
}

// Force reports whether the caller chose to finish now, though work is lost and nodes cannot be reached.
func (r *Run) Force() bool { return r.dispatch.Force }

// Reaches reports whether a node task on the member is worth a try. It is not when the caller chose force and
// the platform cannot reach the member's node: to wait would change nothing.
func (r *Run) Reaches(member contract.Member) bool {
	return !r.dispatch.Force || member.Node.IsReachable()
}

// Evidence records an observation that proves the outcome. All of it together is at most [contract.MaxEvidence] bytes.
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
	if size > contract.MaxEvidence {
		return fmt.Errorf("evidence %q: more than %d bytes in all", key, contract.MaxEvidence)
	}
	return r.update(true, func(s *contract.Status) {
		evidence := map[string]json.RawMessage{key: raw}
		for other, held := range s.Evidence {
			if other != key {
				evidence[other] = held
			}
		}
		s.Evidence = evidence
	})
}

// Once returns the value saved under name; the first time it calls make and saves the result. So a value that is
// random or depends on the time stays the same after a crash. Never save a secret in clear.
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
	return value, r.record(journal.Record{Saved: map[string]string{name: value}})
}

// Commit marks the point after which cancelling would do harm: from here on a request to cancel
// is answered "too late". It fails when the platform has already canceled.
func (r *Run) Commit() error {
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	switch {
	case r.op.generation != r.generation:
		return errForced
	case r.op.canceled:
		return contract.ErrCanceled
	}
	return r.engine.recordLocked(r.op, journal.Record{Committed: true}, true)
}

// Each calls work for every member, several at once, and returns the first error after all have
// ended. The others are canceled by then.
func (r *Run) Each(ctx context.Context, members []contract.Member, work func(context.Context,
	contract.Member) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelMembers)
	for _, member := range members {
		group.Go(func() error { return work(ctx, member) })
	}
	return group.Wait()
}

// Cleanup returns a context for undoing things after ctx has ended, of at most two minutes. When
// the controller itself is stopping, or the operation starts again with force, that context has
// ended already: the work goes on, so nothing may be undone.
func (r *Run) Cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCleanup)
	if interrupted(ctx) {
		cancel()
	}
	return clean, cancel
}

// update changes the status of the operation unless a newer run has replaced this one.
func (r *Run) update(durable bool, change func(*contract.Status)) error {
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	if r.op.generation != r.generation {
		return errForced
	}
	return r.engine.updateLocked(r.op, durable, change)
}

// end changes the status to a terminal one unless a newer run has replaced this one. A terminal status that is
// journalled already and could not be published is published.
func (r *Run) end(change func(*contract.Status)) error {
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	switch {
	case r.op.generation != r.generation:
		return errForced
	case r.op.status.State.Terminal():
		return r.engine.feed.Put(r.op.status)
	}
	return r.engine.updateLocked(r.op, true, change)
}

// record journals a change durably unless a newer run has replaced this one.
func (r *Run) record(rec journal.Record) error {
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	if r.op.generation != r.generation {
		return errForced
	}
	return r.engine.recordLocked(r.op, rec, true)
}

func (r *Run) told(err error) {
	if err != nil && !errors.Is(err, errForced) {
		r.log.Error("status not journalled", "error", err)
	}
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

func upsert(list []contract.MemberUpdate, update contract.MemberUpdate) []contract.MemberUpdate {
	list = slices.Clone(list)
	for i, held := range list {
		if held.ID == update.ID {
			list[i] = update
			return list
		}
	}
	return append(list, update)
}
