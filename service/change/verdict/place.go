package verdict

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
)

// Seat is a member before it exists.
type Seat struct {
	ID           ids.ID
	ComponentKey string
	Ordinal      int
	Allocation   *db.Allocation
}

// place finds the allocations of the members that come, and seats those members. Capacity that the change requests is
// placed at once; a plan rolls it back with its transaction.
func (v *Verdicts) place(ctx context.Context, t *tx.Tx) error {
	key := v.ComponentKey
	if v.Member != nil {
		key = v.Member.ComponentKey
	}
	chosen, err := v.choose()
	if err == nil {
		err = v.seatedVolumes(ctx, t)
	}
	if err != nil {
		return err
	}
	if v.Intent != nil {
		chosen, err = v.create(ctx, t, v.walled(*v.Intent), len(v.Minted.Members), key, "input.intent")
		if err != nil {
			return err
		}
	}
	if err := v.taking(chosen); err != nil {
		return err
	}
	next, err := nextOrdinal(ctx, t, v.Instance.ID, key)
	if err != nil {
		return err
	}
	v.seat(key, next, v.Minted.Members, chosen)
	return nil
}

// seat spreads new members of a component over allocations in turn, numbered from first.
func (v *Verdicts) seat(key string, first int, members []ids.ID, over []*db.Allocation) {
	for i, id := range members {
		v.Seats = append(v.Seats, Seat{ID: id, ComponentKey: key, Ordinal: first + i, Allocation: over[i%len(over)]})
	}
}

// choose returns the allocations that the request names; for a replacement without one, the old member's.
func (v *Verdicts) choose() ([]*db.Allocation, error) {
	wanted := v.AllocationIDs
	if v.Kind == lifecycle.MemberReplace && len(wanted) == 0 && v.Intent == nil {
		if v.Member.AllocationID == nil {
			return nil, fault.New(fault.InvalidArgument, "the member has no allocation that the new member could use").
				With(fault.Reason{Code: fault.Required, Message: "name an allocation", Path: "input.allocationId"})
		}
		wanted = []ids.ID{*v.Member.AllocationID}
	}
	return v.usable(wanted)
}

// usable returns the allocations of these ids: NOT_FOUND, FAILED_PRECONDITION or CONFLICT at the first that the
// instance cannot use.
func (v *Verdicts) usable(wanted []ids.ID) ([]*db.Allocation, error) {
	var chosen []*db.Allocation
	for i, id := range wanted {
		allocation := v.Allocations[id]
		if err := v.checkUsable(allocation, id, v.allocationPath(i)); err != nil {
			return nil, err
		}
		chosen = append(chosen, allocation)
	}
	return chosen, nil
}

// allocationPath returns the input field that names the i-th allocation, or that requests it: a launch's named ones
// come first.
func (v *Verdicts) allocationPath(i int) string {
	switch {
	case v.Kind == lifecycle.MemberReplace:
		return "input.allocationId"
	case v.Launch != nil && i >= len(v.Named) && i-len(v.Named) < len(v.asked):
		return v.asked[i-len(v.Named)]
	}
	return fmt.Sprintf("input.allocationIds.%d", i)
}

func (v *Verdicts) checkUsable(allocation *db.Allocation, id ids.ID, path string) error {
	switch {
	case allocation == nil:
		return fault.New(fault.NotFound, "there is no allocation %s in the project", id).At(path)
	case allocation.Status != lifecycle.AllocationReady:
		return fault.New(fault.FailedPrecondition, "allocation %s is %s, not ready", id,
			strings.ToLower(string(allocation.Status))).At(path)
	case allocation.InstanceID != nil && *allocation.InstanceID != v.Instance.ID:
		return fault.New(fault.Conflict, "allocation %s is used by instance %s", id, *allocation.InstanceID).At(path)
	}
	return nil
}

// create places allocations, one for each member of a component that comes, where its volumes are served; the path is
// the input field that wants them.
func (v *Verdicts) create(ctx context.Context, t *tx.Tx, want capacity.Want, count int, key, path string) (
	made []*db.Allocation, err error) {
	var nodes []ids.ID
	bound := volume.Of(v.Bound, key)
	for i := range count {
		row, err := capacity.Place(ctx, t, capacity.Draft{ID: ids.New(ids.Allocation), Project: v.Project, Want: want,
			Policy: v.Terms.Policy, CreatedBy: v.Minted.Operation, Lodging: v.homes.Lodging(bound, v.Volumes, count-i)})
		if refused := capacity.Refused(err, path); refused != nil {
			return nil, refused
		}
		if refused := capacity.Exhausted(err, i+1, count, path); refused != nil {
			return nil, refused
		}
		if fault.Is(err, fault.ClassUnavailable) {
			return nil, fault.From(err).At(path)
		}
		if err != nil {
			return nil, err
		}
		made, nodes = append(made, row), append(nodes, *row.NodeID)
		v.homes.Settle(bound, v.Volumes, *row.NodeID)
	}
	v.Created = append(v.Created, made...)
	return made, v.LoadNodes(ctx, t, nodes)
}

// nextOrdinal returns the number of the component's next member, above all that were ever used.
func nextOrdinal(ctx context.Context, t *tx.Tx, instanceID ids.ID, key string) (next int, err error) {
	err = t.QueryRow(ctx, `SELECT coalesce(max(ordinal) + 1, 0) FROM member WHERE instance_id = $1
		AND component_key = $2`,
		instanceID, key).Scan(&next)
	if err != nil {
		return 0, fmt.Errorf("number the members of %s: %w", instanceID, err)
	}
	return next, nil
}

// Afterwards returns the allocations that the instance uses once the change is done: by id, or of a launch as named,
// and behind them those that it requested.
func (v *Verdicts) Afterwards() []*db.Allocation {
	if v.Launch != nil {
		return slices.Concat(v.Named, v.Created)
	}
	used := make(map[ids.ID]*db.Allocation)
	for id, allocation := range v.Allocations {
		if allocation.InstanceID != nil && *allocation.InstanceID == v.Instance.ID {
			used[id] = allocation
		}
	}
	if v.Kind == lifecycle.MemberReplace && v.Member.AllocationID != nil && v.lastThere() {
		delete(used, *v.Member.AllocationID)
	}
	for _, seat := range v.Seats {
		used[seat.Allocation.ID] = seat.Allocation
	}
	list := make([]*db.Allocation, 0, len(used))
	for _, allocation := range used {
		list = append(list, allocation)
	}
	slices.SortFunc(list, func(a, b *db.Allocation) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}

// lastThere reports whether the member is the last of its allocation.
func (v *Verdicts) lastThere() bool {
	return !slices.ContainsFunc(v.Members, func(m *db.Member) bool {
		return m.ID != v.Member.ID && m.AllocationID != nil && *m.AllocationID == *v.Member.AllocationID
	})
}
