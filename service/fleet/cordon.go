package fleet

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Cordon keeps new members and new allocations away from a node; what is there goes on. It requires node.operate on the
// platform. Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when it is cordoned or retired.
func (s *Service) Cordon(ctx context.Context, in OperateInput) (*db.ComputeNode, error) {
	return s.operate(ctx, "cordonNode", in, func(_ context.Context, t *tx.Tx, node *db.ComputeNode) (set, error) {
		if err := live(node); err != nil {
			return set{}, err
		}
		if node.Cordoned {
			return set{}, fault.New(fault.FailedPrecondition, "node %q is cordoned already", node.Name).
				At("input.nodeId")
		}
		return set{`cordoned = true, cordon_reason = $2, cordoned_at = $3`, []any{in.Reason, t.Now}}, nil
	})
}

// Uncordon lets a node take members again, and ends its drain: members that were drained for it take work again by
// ordinary operations. It requires node.operate on the platform. Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN,
// FAILED_PRECONDITION when it is not cordoned, or retired.
func (s *Service) Uncordon(ctx context.Context, in OperateInput) (*db.ComputeNode, error) {
	return s.operate(ctx, "uncordonNode", in, func(_ context.Context, _ *tx.Tx, node *db.ComputeNode) (set, error) {
		if err := live(node); err != nil {
			return set{}, err
		}
		if !node.Cordoned {
			return set{}, fault.New(fault.FailedPrecondition,
				"node %q is not cordoned: it takes members unless a condition "+
					"keeps them away", node.Name).At("input.nodeId")
		}
		return set{`cordoned = false, cordon_reason = '', cordoned_at = NULL, drain = $2`,
			[]any{ended(node.Drain)}}, nil
	})
}

// ended returns a drain as taken back; nil for nil.
func ended(drain *nodehealth.Drain) *nodehealth.Drain {
	if drain == nil {
		return nil
	}
	next := *drain
	next.Ending, next.Refused = true, nil
	return &next
}
