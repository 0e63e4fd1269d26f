// Package blocker reads what keeps operations and instances from where they should be, and ranks it by the rules. A
// batch of any size costs one round trip.
package blocker

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds what the reads need.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Operations reads the blockers of operations, each list with the one to mend first at its head; an
// operation that has ended has none. The caller has authorised the operations; what it cannot see
// beside them is left out.
func (s *Service) Operations(ctx context.Context, wanted []ids.ID) (map[ids.ID][]*blocker.Blocker, error) {
	read := newReading(ofOperations, wanted)
	if _, err := s.DB.Read(ctx, read.queries()...); err != nil {
		return nil, fmt.Errorf("read the blockers of operations: %w", err)
	}
	out := make(map[ids.ID][]*blocker.Blocker, len(wanted))
	for _, id := range wanted {
		if op := read.operation(id); op != nil {
			out[id] = blocker.Of(read.ofOperation(op, true))
		}
	}
	return out, nil
}

// Instances reads the blockers of instances, those of their open operations among them; an instance
// that is released has none. The caller has authorised the instances.
func (s *Service) Instances(ctx context.Context, wanted []ids.ID) (map[ids.ID][]*blocker.Blocker, error) {
	read := newReading(ofInstances, wanted)
	if _, err := s.DB.Read(ctx, read.queries()...); err != nil {
		return nil, fmt.Errorf("read the blockers of instances: %w", err)
	}
	out := make(map[ids.ID][]*blocker.Blocker, len(wanted))
	for _, id := range wanted {
		if instance := read.instances[id]; instance != nil {
			out[id] = blocker.OfInstance(read.ofInstance(instance), read.ofOperations(instance))
		}
	}
	return out, nil
}

// One is a reading of the blockers of one operation or instance that another read takes along in its transaction.
type One struct {
	id   ids.ID
	read *reading
}

// ForOne prepares the reading of an operation's blockers.
func ForOne(id ids.ID) One { return One{id: id, read: newReading(ofOperations, []ids.ID{id})} }

// ForInstance prepares the reading of an instance's blockers.
func ForInstance(id ids.ID) One { return One{id: id, read: newReading(ofInstances, []ids.ID{id})} }

// Queries are what the read takes along.
func (o One) Queries() []tx.Query { return o.read.queries() }

// List is the blockers once the queries have run, the one to mend first at its head; empty for an operation that has
// ended, an instance that is released, and what does not exist.
func (o One) List() []*blocker.Blocker {
	if o.read.scope == ofInstances {
		if instance := o.read.instances[o.id]; instance != nil {
			return blocker.OfInstance(o.read.ofInstance(instance), o.read.ofOperations(instance))
		}
		return []*blocker.Blocker{}
	}
	if op := o.read.operation(o.id); op != nil {
		return blocker.Of(o.read.ofOperation(op, true))
	}
	return []*blocker.Blocker{}
}
