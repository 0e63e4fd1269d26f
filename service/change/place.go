package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbnode "github.com/gpuaas/app-platform/ent/generated/db/computenode"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
)

// place finds the allocations of the members that come, and gives those members their seats. What is
// asked for along with the change is placed at once; a plan takes it back with its transaction.
func (c *Change) place(ctx context.Context, t *tx.Tx) error {
	chosen, err := c.choose()
	if err != nil {
		return err
	}
	if c.Intent != nil {
		if chosen, err = c.create(ctx, t); err != nil {
			return err
		}
	}
	key := c.ComponentKey
	if c.Member != nil {
		key = c.Member.ComponentKey
	}
	next, err := nextOrdinal(ctx, t, c.Instance.ID, key)
	if err != nil {
		return err
	}
	c.Seats = nil
	for i, id := range c.Made.Members {
		c.Seats = append(c.Seats, Seat{ID: id, ComponentKey: key, Ordinal: next + i, Allocation: chosen[i%len(chosen)]})
	}
	return nil
}

// choose checks the allocations that are named; for a replacement without one it is the old member's.
func (c *Change) choose() ([]*db.Allocation, error) {
	wanted := c.AllocationIDs
	if c.Kind == lifecycle.MemberReplace && len(wanted) == 0 && c.Intent == nil {
		if c.Member.AllocationID == nil {
			return nil, fault.New(fault.InvalidArgument, "the member has no allocation whose place a new one could take").
				With(fault.Reason{Code: fault.Required, Message: "name an allocation", Path: "input.allocationId"})
		}
		wanted = []ids.ID{*c.Member.AllocationID}
	}
	var chosen []*db.Allocation
	for i, id := range wanted {
		allocation := c.Allocations[id]
		if err := c.usable(allocation, id, c.allocationPath(i)); err != nil {
			return nil, err
		}
		chosen = append(chosen, allocation)
	}
	return chosen, nil
}

// allocationPath is the input field that names the i-th allocation.
func (c *Change) allocationPath(i int) string {
	if c.Kind == lifecycle.MemberReplace {
		return "input.allocationId"
	}
	return fmt.Sprintf("input.allocationIds.%d", i)
}

func (c *Change) usable(allocation *db.Allocation, id ids.ID, path string) error {
	switch {
	case allocation == nil:
		return fault.New(fault.NotFound, "there is no allocation %s in the project", id).At(path)
	case allocation.Status != lifecycle.AllocationReady:
		return fault.New(fault.FailedPrecondition, "allocation %s is %s, not ready", id, strings.ToLower(string(allocation.Status))).At(path)
	case allocation.InstanceID != nil && *allocation.InstanceID != c.Instance.ID:
		return fault.New(fault.Conflict, "allocation %s is used by instance %s", id, *allocation.InstanceID).At(path)
	}
	return nil
}

// create places one allocation for each member that comes.
func (c *Change) create(ctx context.Context, t *tx.Tx) ([]*db.Allocation, error) {
	c.created = nil
	for i := range c.Made.Members {
		row, err := capacity.Place(ctx, t, capacity.Draft{ID: ids.New(ids.Allocation), Project: c.Project, Want: *c.Intent, Policy: c.Terms.Policy, CreatedBy: c.Made.Operation})
		if fault.Is(err, fault.CapacityUnavailable) {
			return nil, fault.New(fault.CapacityUnavailable, "no node has room for allocation %d of %d just now", i+1, len(c.Made.Members)).At("input.intent")
		}
		if err != nil {
			return nil, err
		}
		c.created = append(c.created, row)
	}
	return c.created, c.loadCreatedNodes(ctx, t)
}

func (c *Change) loadCreatedNodes(ctx context.Context, t *tx.Tx) error {
	var wanted []ids.ID
	for _, allocation := range c.created {
		wanted = append(wanted, *allocation.NodeID)
	}
	found, err := t.ComputeNode.Query().Where(dbnode.IDIn(wanted...)).All(ctx)
	if err != nil {
		return fmt.Errorf("load the nodes of new allocations: %w", err)
	}
	for _, node := range found {
		c.Nodes[node.ID] = node
	}
	return nil
}

// nextOrdinal is the number of the component's next member: above all that were ever used.
func nextOrdinal(ctx context.Context, t *tx.Tx, instanceID ids.ID, key string) (next int, err error) {
	err = t.QueryRow(ctx, `SELECT coalesce(max(ordinal) + 1, 0) FROM member WHERE instance_id = $1 AND component_key = $2`,
		instanceID, key).Scan(&next)
	if err != nil {
		return 0, fmt.Errorf("number the members of %s: %w", instanceID, err)
	}
	return next, nil
}

// afterwards are the allocations that the instance uses once the change is done, by id.
func (c *Change) afterwards() []*db.Allocation {
	used := make(map[ids.ID]*db.Allocation)
	for id, allocation := range c.Allocations {
		if allocation.InstanceID != nil && *allocation.InstanceID == c.Instance.ID {
			used[id] = allocation
		}
	}
	if c.Kind == lifecycle.MemberReplace && c.Member.AllocationID != nil && c.lastThere() {
		delete(used, *c.Member.AllocationID)
	}
	for _, seat := range c.Seats {
		used[seat.Allocation.ID] = seat.Allocation
	}
	list := make([]*db.Allocation, 0, len(used))
	for _, allocation := range used {
		list = append(list, allocation)
	}
	slices.SortFunc(list, func(a, b *db.Allocation) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}

// lastThere says whether the member is the last of its allocation.
func (c *Change) lastThere() bool {
	return !slices.ContainsFunc(c.Members, func(m *db.Member) bool {
		return m.ID != c.Member.ID && m.AllocationID != nil && *m.AllocationID == *c.Member.AllocationID
	})
}
