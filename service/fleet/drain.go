package fleet

import (
	"cmp"
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// defaultDrain is how long the drain of each member may take when no deadline is given, in seconds.
const defaultDrain = 3_600

// DrainInput names a node whose members are to end their work.
type DrainInput struct {
	NodeID ids.ID
	// DeadlineSeconds is how long the drain of each member may take; 0 for an hour.
	DeadlineSeconds int
	// Force loses the members' work at once; it needs a reason.
	Force  bool
	Reason string
}

// Drain cordons a node and has every member there, of every tenant, drained by an ordinary operation of its own;
// workers carry that out, and Tenancy shows how far it is. With Force a drain under way is hastened. It requires
// node.operate on the platform. Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when it is drained
// already, or retired.
func (s *Service) Drain(ctx context.Context, in DrainInput) (*db.ComputeNode, error) {
	seconds := cmp.Or(in.DeadlineSeconds, defaultDrain)
	if err := operation.CheckDeadline(seconds); err != nil {
		return nil, err
	}
	if in.Force && in.Reason == "" {
		return nil, fault.New(fault.InvalidArgument, "force needs a reason").With(fault.Reason{
			Code: fault.Required, Message: "force needs a reason", Path: "input.reason"})
	}
	return s.operate(ctx, "drainNode", OperateInput{NodeID: in.NodeID, Reason: in.Reason},
		func(_ context.Context, t *tx.Tx, node *db.ComputeNode) (set, error) {
			if err := drainable(node, in.Force); err != nil {
				return set{}, err
			}
			drain := &nodehealth.Drain{Since: t.Now, By: t.Actor.Name, Reason: in.Reason, DeadlineSeconds: seconds,
				Force: in.Force}
			if before := node.Drain; before != nil {
				drain.Since, drain.Drained = before.Since, before.Drained
			}
			return set{`cordoned = true, cordon_reason = $2, cordoned_at = coalesce(cordoned_at, $3), drain = $4`,
				[]any{cmp.Or(in.Reason, node.CordonReason), t.Now, drain}}, nil
		})
}

func drainable(node *db.ComputeNode, force bool) error {
	if err := live(node); err != nil {
		return err
	}
	if node.Drain == nil || node.Drain.Ending || (force && !node.Drain.Force) {
		return nil
	}
	remedy := "drain it with force to finish sooner, or uncordon the node to end the drain"
	if node.Drain.Force {
		remedy = "it continues with force; uncordon the node to end the drain"
	}
	return fault.New(fault.FailedPrecondition, "node %q is being drained since %s: %s", node.Name,
		node.Drain.Since.Format("2006-01-02 15:04:05Z"), remedy).At("input.nodeId")
}
