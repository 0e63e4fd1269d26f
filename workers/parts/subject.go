package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Subject is which members of the instance a step is about; nil means all of them.
type Subject func(op *db.Operation) []ids.ID

// Targets are the members that the operation names.
func Targets(op *db.Operation) []ids.ID { return op.Targets }

// Replacement is the member that comes in another's place.
func Replacement(op *db.Operation) []ids.ID {
	var change struct {
		ReplacementID ids.ID `json:"replacementId"`
	}
	if json.Unmarshal(op.DesiredChange, &change) != nil || change.ReplacementID == "" {
		return []ids.ID{}
	}
	return []ids.ID{change.ReplacementID}
}

// of reports whether the member is one of the subject's.
func (s Subject) of(op *db.Operation, id ids.ID) bool { return s == nil || slices.Contains(s(op), id) }

// changeOf is the desired change as the adapter sees it: without the platform's own part, and nothing
// for kinds that need none.
func changeOf(op *db.Operation) (json.RawMessage, error) {
	if op.Kind == lifecycle.InstanceCreate || op.Kind == lifecycle.InstanceDecommission || len(op.DesiredChange) == 0 {
		return nil, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(op.DesiredChange, &fields); err != nil {
		return nil, fmt.Errorf("read the change of %s: %w", op.ID, err)
	}
	delete(fields, "platform")
	if len(fields) == 0 {
		return nil, nil
	}
	return json.Marshal(fields)
}

// Member finds one by its id; nil when it is not in the snapshot.
func (s *Snapshot) Member(id ids.ID) *db.Member {
	for _, member := range s.Members {
		if member.ID == id {
			return member
		}
	}
	return nil
}

// Chosen are the members named that are in the snapshot.
func (s *Snapshot) Chosen(wanted []ids.ID) []*db.Member {
	var out []*db.Member
	for _, id := range wanted {
		if member := s.Member(id); member != nil {
			out = append(out, member)
		}
	}
	return out
}

// AbsentOf names the nodes of the members named whose agents are silent; empty when none is.
func (s *Snapshot) AbsentOf(wanted []ids.ID) string {
	var names []string
	for _, member := range s.Chosen(wanted) {
		if member.NodeID == nil {
			continue
		}
		if node := s.nodes[*member.NodeID]; node != nil && node.Status != lifecycle.NodeOnline {
			names = append(names, node.Name)
		}
	}
	return nameNodes(names)
}

// UnreadyOf names what a member named cannot live in; empty when all can.
func (s *Snapshot) UnreadyOf(wanted []ids.ID) string {
	for _, member := range s.Chosen(wanted) {
		if member.AllocationID == nil || member.NodeID == nil {
			return fmt.Sprintf("member %s is not bound to a node", member.ID)
		}
		allocation := s.allocations[*member.AllocationID]
		if allocation != nil && allocation.Status != lifecycle.AllocationReady {
			return fmt.Sprintf("allocation %s is %s", allocation.ID, lifecycle.Wire(allocation.Status))
		}
	}
	return ""
}

// sent narrows the snapshot to what was dispatched first, so that whatever other operations did to the
// instance since, this one is sent again as the same.
func (s *Snapshot) sent(ctx context.Context, from sender, op *db.Operation, first Prepared) error {
	if len(first.Members) == 0 {
		return nil
	}
	var missing []ids.ID
	for _, id := range first.Members {
		if s.Member(id) == nil {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		if err := s.fetch(ctx, from, op, missing); err != nil {
			return err
		}
	}
	s.Members = s.Chosen(first.Members)
	return nil
}

// fetch adds members that have been removed since, with their nodes and allocations.
func (s *Snapshot) fetch(ctx context.Context, from sender, op *db.Operation, missing []ids.ID) error {
	batch := &pgx.Batch{}
	queue(batch, rows.Member, func(found []*db.Member) { s.Members = append(s.Members, found...) },
		`SELECT `+rows.MemberColumns+` FROM member WHERE id = ANY ($1)`, missing)
	queue(batch, rows.ComputeNode, func(found []*db.ComputeNode) {
		for _, node := range found {
			s.nodes[node.ID] = node
		}
	}, `SELECT `+rows.ComputeNodeColumns+` FROM compute_node
		WHERE id IN (SELECT node_id FROM member WHERE id = ANY ($1))`,
		missing)
	queue(batch, rows.Allocation, func(found []*db.Allocation) {
		for _, allocation := range found {
			s.allocations[allocation.ID] = allocation
		}
	}, `SELECT `+rows.AllocationColumns+
		` FROM allocation WHERE id IN (SELECT allocation_id FROM member WHERE id = ANY ($1))`, missing)
	if err := from.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("load what %s was sent with: %w", op.ID, err)
	}
	return nil
}

// Created returns the allocations that the operation has requested.
func Created(op *db.Operation) []ids.ID { return operation.PrivateOf(op).CreatedAllocations }

// Prepared is the evidence of the step that prepares an operation on members: what the adapter is sent,
// whatever becomes of the instance meanwhile, and the states of the members before.
type Prepared struct {
	Members    []ids.ID                 `json:"members"`
	Components []adapter.ComponentCount `json:"components"`
	Before     map[ids.ID]Was           `json:"before"`
}

// Was is how a member stood before the operation.
type Was struct {
	Status   lifecycle.MemberStatus `json:"status"`
	Cordoned bool                   `json:"cordoned"`
}
