package fleet

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// RetireInput names a node that is taken out for good.
type RetireInput struct {
	NodeID ids.ID
	// Lost says that the machine is lost for good, with everything on it; it needs a reason.
	Lost   bool
	Reason string
}

// Retire takes a node out for good: its credentials and its name end with it. Nothing may be rented there, unless it is
// lost: then its allocations and members are FAILED, and what was left of members on it counts as deleted with it. It
// requires node.operate on the platform. Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when it is
// retired, rented, or declared lost while its agent answers.
func (s *Service) Retire(ctx context.Context, in RetireInput) (*db.ComputeNode, error) {
	if in.Lost && in.Reason == "" {
		return nil, fault.New(fault.InvalidArgument, "give a reason why the node is lost for good").With(fault.Reason{
			Code: fault.Required, Message: "give a reason why the node is lost for good", Path: "input.reason"})
	}
	return s.operate(ctx, "retireNode", OperateInput{NodeID: in.NodeID, Reason: in.Reason},
		func(ctx context.Context, t *tx.Tx, node *db.ComputeNode) (set, error) {
			if err := retirable(ctx, t, node, in.Lost); err != nil {
				return set{}, err
			}
			if err := correlateVolumes(ctx, t, node.ID); err != nil {
				return set{}, err
			}
			return set{`status = 'RETIRED', cordoned = true, drain = NULL, retired_at = $2, lost = $3,
				cordon_reason = $4, cordoned_at = coalesce(cordoned_at, $2)`, []any{t.Now, in.Lost, in.Reason}}, nil
		})
}

func retirable(ctx context.Context, t *tx.Tx, node *db.ComputeNode, lost bool) error {
	if err := live(node); err != nil {
		return err
	}
	if lost {
		if node.Status == lifecycle.NodeOnline {
			return fault.New(fault.FailedPrecondition,
				"the agent of node %q answers: drain the node instead, or stop it first", node.Name).At("input.lost")
		}
		return nil
	}
	return unrented(ctx, t, node)
}

// correlateVolumes has what happens to the local volumes of a node that is retired carry this request's correlation.
func correlateVolumes(ctx context.Context, t *tx.Tx, node ids.ID) error {
	_, err := t.Exec(ctx, `UPDATE volume SET correlation_id = $2, trace_id = $3 WHERE node_id = $1
		AND deleted_at IS NULL
		AND lost_at IS NULL`, node, t.Request.CorrelationID, t.Request.TraceID)
	if err != nil {
		return fmt.Errorf("note the request in the volumes of %s: %w", node, err)
	}
	return nil
}

// unrented refuses a node that an allocation holds.
func unrented(ctx context.Context, t *tx.Tx, node *db.ComputeNode) error {
	var rented int
	err := t.QueryRow(ctx, `SELECT count(*) FROM allocation WHERE node_id = $1
		AND released_at IS NULL`, node.ID).Scan(&rented)
	if err != nil {
		return fmt.Errorf("count the allocations of %s: %w", node.ID, err)
	}
	if rented > 0 {
		return fault.New(fault.FailedPrecondition,
			"%d allocations are on node %q: drain it, and have them released; or retire "+
				"it as lost once its machine does not exist any more", rented, node.Name).At("input.nodeId")
	}
	return nil
}

// Delete takes a retired node from the list; its name is free again, and its history stays in the audit. It requires
// node.operate on the platform. Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when it is not
// retired, or rented still.
func (s *Service) Delete(ctx context.Context, in OperateInput) (ids.ID, error) {
	node, err := s.operate(ctx, "deleteNode", in, func(ctx context.Context, t *tx.Tx,
		node *db.ComputeNode) (set, error) {
		if node.Status != lifecycle.NodeRetired {
			return set{}, fault.New(fault.FailedPrecondition, "node %q is %s: retire it first", node.Name,
				node.Status).At("input.nodeId")
		}
		if err := unrented(ctx, t, node); err != nil {
			return set{}, err
		}
		return set{`deleted_at = $2`, []any{t.Now}}, nil
	})
	if err != nil {
		return "", err
	}
	return node.ID, nil
}
