package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// release gives an allocation back. An instance that uses it is stopped first, by an operation of
// its own that the verb has requested; no adapter takes part in this one.
func (w *work) release() engine.Kind {
	return engine.Kind{
		Kind:     lifecycle.AllocationRelease,
		Steps:    []engine.Step{w.stopInstance(), w.proofOfMembers()},
		Complete: w.released,
	}
}

// stopped is the evidence of the stop step.
type stopped struct {
	Instance  ids.ID `json:"instance,omitempty"`
	Operation ids.ID `json:"operation,omitempty"`
}

func (w *work) stopInstance() engine.Step {
	return engine.Step{
		Name: "stop_instance", Title: "stopping the instance that uses it", Percent: 60, Owner: operation.OwnerPlatform,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			var instance *ids.ID
			var known stopped
			err := c.DB().Worker().QueryRow(ctx, `SELECT instance_id FROM allocation WHERE id = $1`,
				c.Op.AllocationID).Scan(&instance)
			if err != nil {
				return engine.Result{}, fmt.Errorf("load allocation: %w", err)
			}
			if err := c.State(&known); err != nil {
				return engine.Result{}, err
			}
			if instance == nil {
				return engine.Done(known), nil
			}
			return w.follow(ctx, c, *instance)
		},
	}
}

// follow waits for the newest decommission of the instance.
func (w *work) follow(ctx context.Context, c *engine.Context, instance ids.ID) (engine.Result, error) {
	var op struct {
		id                   ids.ID
		state                lifecycle.OperationState
		code, message, owner string
		orphan               string
	}
	err := c.DB().Worker().QueryRow(ctx, `SELECT id, state, error_code, error_message, error_owner,
		coalesce((SELECT ': orphan ' || min(p.id) FROM orphan p WHERE p.instance_id = $1 AND p.resolved_at IS NULL), '')
		FROM operation
		WHERE instance_id = $1 AND kind = 'INSTANCE_DECOMMISSION' ORDER BY coalesce(seq, 0) DESC, id DESC
		LIMIT 1`, instance).
		Scan(&op.id, &op.state, &op.code, &op.message, &op.owner, &op.orphan)
	if errors.Is(err, pgx.ErrNoRows) {
		return engine.Fail(operation.Failure{Code: string(fault.FailedPrecondition), Owner: operation.OwnerUser,
			Retryable: true,
			Message:   fmt.Sprintf("instance %s uses the allocation and is not being decommissioned", instance)}), nil
	}
	if err != nil {
		return engine.Result{}, fmt.Errorf("find the decommission of %s: %w", instance, err)
	}
	if op.state.Terminal() && op.state != lifecycle.OperationSucceeded {
		return engine.Fail(operation.Failure{Code: op.code, Owner: op.owner, Retryable: true,
			Message: fmt.Sprintf("operation %s did not tear instance %s down: %s", op.id, instance, op.message)}), nil
	}
	if err := c.SetState(stopped{Instance: instance, Operation: op.id}); err != nil {
		return engine.Result{}, err
	}
	if op.state == lifecycle.OperationSucceeded {
		return engine.Wait(w.Pace.Poll,
			fmt.Sprintf("waits until nothing is left of instance %s, which was torn down by force%s", instance,
				op.orphan),
			parts.ResidueCause), nil
	}
	return engine.Wait(w.Pace.Poll, fmt.Sprintf("waits for operation %s to tear instance %s down", op.id, instance),
		engine.FailureCause{}), nil
}

// memberProofs is the evidence of the residue step: for each member that ever lived in the
// allocation, the newest agent's report that found nothing of it.
type memberProofs struct {
	Members []memberProof `json:"members"`
}

type memberProof struct {
	Member ids.ID     `json:"member"`
	Node   *string    `json:"node"`
	Task   *ids.ID    `json:"task"`
	At     *time.Time `json:"at"`
	// Lost says that the node was retired as lost for good: nothing can look there, and nothing is left to be rented.
	Lost   bool `json:"lost,omitempty"`
	status lifecycle.MemberStatus
	orphan *ids.ID // what an operation has left of it; nil for none
}

// unproved is what the release waits for in this member; empty when nothing of it is left.
func (p memberProof) unproved() string {
	switch {
	case p.orphan != nil:
		return fmt.Sprintf("waits for orphan %s: something of member %s may be left on its node; it is torn down "+
			"when the node's agent reports, and counts as removed when the node is retired as lost",
			*p.orphan, p.Member)
	case p.status != lifecycle.MemberRemoved || (p.Task == nil && !p.Lost):
		return fmt.Sprintf("the removal of member %s is not proved", p.Member)
	}
	return ""
}

func (w *work) proofOfMembers() engine.Step {
	return engine.Step{
		Name: "residue", Title: "checking the proof that every member in it is removed", Percent: 95,
		Owner: operation.OwnerNode,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			found, err := c.DB().Worker().Query(ctx, `SELECT m.id, m.status, n.name, t.id, t.ended_at,
				coalesce(n.lost, false),
				p.id FROM member m
				LEFT JOIN compute_node n ON n.id = m.node_id
				LEFT JOIN LATERAL (SELECT id FROM orphan WHERE member_id = m.id AND resolved_at IS NULL ORDER BY id
				LIMIT 1) p ON true
				LEFT JOIN LATERAL (SELECT id, ended_at FROM node_task WHERE member_id = m.id AND kind = 'RESIDUE'
				AND state = 'SUCCEEDED'
					ORDER BY coalesce(seq, 0) DESC, id DESC LIMIT 1) t ON true
				WHERE m.allocation_id = $1 AND (m.status <> 'REMOVED' OR EXISTS (SELECT FROM node_task k WHERE k.member_id = m.id))
				ORDER BY m.id`, c.Op.AllocationID) // nothing was ever asked of one that has no task
			if err != nil {
				return engine.Result{}, fmt.Errorf("find the allocation's members: %w", err)
			}
			members, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (p memberProof, err error) {
				return p, row.Scan(&p.Member, &p.status, &p.Node, &p.Task, &p.At, &p.Lost, &p.orphan)
			})
			if err != nil {
				return engine.Result{}, fmt.Errorf("find the allocation's members: %w", err)
			}
			for _, member := range members {
				if why := member.unproved(); why != "" {
					return engine.Wait(w.Pace.Poll, why, parts.ResidueCause), nil
				}
			}
			return engine.Done(memberProofs{Members: members}), nil
		},
	}
}

// released gives the capacity back.
func (w *work) released(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
	var proof memberProofs
	if err := c.Evidence("residue", &proof); err != nil {
		return nil, "", err
	}
	if err := tellReleased(ctx, t, c, locked); err != nil {
		return nil, "", err
	}
	tag, err := t.Exec(ctx, `UPDATE allocation SET status = 'RELEASED', released_at = $2
		WHERE id = $1 AND status = 'RELEASING' AND instance_id IS NULL`, locked.Op.AllocationID, t.Now)
	if err != nil {
		return nil, "", fmt.Errorf("release the allocation: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil, "", fmt.Errorf("allocation %s is not being released, or is in use", *locked.Op.AllocationID)
	}
	t.Wake(event.ProjectTopic(locked.Op.ProjectID))
	return proof, "released", nil
}

// tellReleased appends the release to the timeline of the instance that it has stopped, or, for an allocation that
// nothing used, to the project's feed. The instance is locked before the allocation, as everywhere.
func tellReleased(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) error {
	var known stopped
	if err := c.Evidence("stop_instance", &known); err != nil {
		return err
	}
	told := event.Draft{
		Type: lifecycle.EventAllocationReleased, OperationID: locked.Op.ID, CorrelationID: locked.Op.CorrelationID,
		Message: "its allocation is released", Payload: map[string]any{"allocation": locked.Op.AllocationID},
	}
	if known.Instance == "" {
		allocation, err := t.Allocation.Query().Where(dballocation.ID(*locked.Op.AllocationID)).ForUpdate().Only(ctx)
		if err != nil {
			return fmt.Errorf("lock allocation %s: %w", *locked.Op.AllocationID, err)
		}
		told.Message = "allocation " + allocation.Name + " is released"
		return event.AppendFree(t, allocation, told)
	}
	instance, err := t.Instance.Query().Where(dbinstance.ID(known.Instance)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("lock instance %s: %w", known.Instance, err)
	}
	return event.Append(ctx, t, instance, told)
}
