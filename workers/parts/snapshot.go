package parts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// Snapshot is an instance with everything its dispatch speaks of.
type Snapshot struct {
	instance    *db.Instance
	Members     []*db.Member // all but the removed, by component and number
	nodes       map[ids.ID]*db.ComputeNode
	allocations map[ids.ID]*db.Allocation
	target      adapterclient.Target
	narrow      bool // the adapter's calls are narrowed
}

// callee is an adapter as it is called.
type callee struct {
	adapterclient.Target
	Narrow bool
}

// sender is what sends a batch: a transaction, or the pool.
type sender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

const ofInstance = `FROM member WHERE instance_id = $1 AND NOT removed`

// load reads the snapshot in one round trip.
func load(ctx context.Context, from sender, op *db.Operation) (*Snapshot, error) {
	s, err := survey(ctx, from, op)
	if err != nil {
		return nil, err
	}
	return s, s.Check(op)
}

// survey is load for what needs no adapter.
func survey(ctx context.Context, from sender, op *db.Operation) (*Snapshot, error) {
	s, batch := &Snapshot{}, &pgx.Batch{}
	s.Queue(batch, op)
	if err := from.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("load what %s changes: %w", op.ID, err)
	}
	return s, nil
}

// Queue queues the queries of the snapshot.
func (s *Snapshot) Queue(batch *pgx.Batch, op *db.Operation) {
	*s = Snapshot{nodes: make(map[ids.ID]*db.ComputeNode), allocations: make(map[ids.ID]*db.Allocation)}
	if op.InstanceID == nil {
		return
	}
	queue(batch, rows.Instance, func(found []*db.Instance) { s.instance = first(found) },
		`SELECT `+rows.InstanceColumns+` FROM instance WHERE id = $1`, *op.InstanceID)
	queue(batch, rows.Member, func(found []*db.Member) { s.Members = found },
		`SELECT `+rows.MemberColumns+` `+ofInstance+` ORDER BY component_key, ordinal, id`, *op.InstanceID)
	queue(batch, rows.ComputeNode, func(found []*db.ComputeNode) {
		for _, node := range found {
			s.nodes[node.ID] = node
		}
	}, `SELECT `+rows.ComputeNodeColumns+` FROM compute_node
		WHERE id IN (SELECT node_id `+ofInstance+`)`, *op.InstanceID)
	queue(batch, rows.Allocation, func(found []*db.Allocation) {
		for _, allocation := range found {
			s.allocations[allocation.ID] = allocation
		}
	}, `SELECT `+rows.AllocationColumns+` FROM allocation WHERE id IN (SELECT allocation_id `+ofInstance+`)`,
		*op.InstanceID)
	queue(batch, pgx.RowToStructByPos[callee], func(found []callee) {
		s.target, s.narrow = first(found).Target, first(found).Narrow
	}, `SELECT name, url, authority, project_id IS NOT NULL, narrow_calls FROM adapter WHERE name = $1`, op.AdapterName)
}

// refresh reads the members again: of what a snapshot holds, only they change under a claim.
func (s *Snapshot) refresh(ctx context.Context, from sender) error {
	batch := &pgx.Batch{}
	queue(batch, rows.Member, func(found []*db.Member) { s.Members = found },
		`SELECT `+rows.MemberColumns+` `+ofInstance+` ORDER BY component_key, ordinal, id`, s.instance.ID)
	if err := from.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("load the members of %s: %w", s.instance.ID, err)
	}
	return nil
}

// Check refuses a snapshot that lacks what every dispatch needs.
func (s *Snapshot) Check(op *db.Operation) error {
	if s.instance == nil {
		return fmt.Errorf("operation %s has no instance", op.ID)
	}
	if s.target.Name == "" {
		return &engine.RetryableError{Message: fmt.Sprintf("no adapter %q is registered", op.AdapterName),
			Cause: engine.FailureCause{Owner: operation.OwnerPlatform}}
	}
	return nil
}

func queue[T any](batch *pgx.Batch, scan func(pgx.CollectableRow) (T, error), into func([]T), sql string, args ...any) {
	batch.Queue(sql, args...).Query(func(found pgx.Rows) error {
		collected, err := pgx.CollectRows(found, scan)
		if err == nil {
			into(collected)
		}
		return err
	})
}

func first[T any](list []T) T {
	var none T
	if len(list) == 0 {
		return none
	}
	return list[0]
}

// Absent names the nodes of members whose agents are silent; empty when none is.
func (s *Snapshot) Absent() string {
	var names []string
	for _, node := range s.nodes {
		if node.Status != lifecycle.NodeOnline {
			names = append(names, node.Name)
		}
	}
	return nameNodes(names)
}

func nameNodes(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "waits for the agent of node " + strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", ")
}

// Unready names an allocation that a launch cannot use; empty when all can.
func (s *Snapshot) Unready() string {
	for _, allocation := range s.allocations {
		if allocation.Status != lifecycle.AllocationReady {
			return fmt.Sprintf("allocation %s is %s", allocation.ID, lifecycle.Wire(allocation.Status))
		}
	}
	return ""
}
