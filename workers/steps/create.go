package steps

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// create brings an instance up. What it started stays when it fails, for a decommission to tear
// down: nothing is reaped behind the owner's back.
func (w *work) create() engine.Kind {
	return engine.Kind{
		Kind:     lifecycle.InstanceCreate,
		Steps:    []engine.Step{w.prepareCreate(), w.Dispatch(), w.Await(), w.Verify(nil)},
		Queues:   true,
		Complete: w.started,
		OnFail:   w.createFailed,
		Abandon:  w.Abandon,
		Cancel:   w.Stop, CancelFails: true,
	}
}

func (w *work) prepareCreate() engine.Step {
	return engine.Step{
		Name: "prepare", Title: "checking allocations and nodes", Percent: 5, Owner: operation.OwnerNode,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			s := &parts.Snapshot{}
			var result engine.Result
			reads := func(batch *pgx.Batch) { s.Queue(batch, c.Op.Operation) }
			err := c.WriteTogether(ctx, reads, func(_ context.Context, t *tx.Tx, locked *engine.Locked) error {
				result = engine.Done(nil)
				if err := s.Check(locked.Op); err != nil {
					return err
				}
				if unready := s.Unready(); unready != "" {
					result = engine.Fail(operation.Failure{Code: string(fault.FailedPrecondition),
						Owner: operation.OwnerUser, Message: unready})
					return nil
				}
				if absent := s.Absent(); absent != "" {
					result = engine.Wait(w.Pace.Round, absent, engine.FailureCause{Code: fault.NodeUnreachable,
						Owner: operation.OwnerNode})
					return nil
				}
				begin(t, locked, s)
				return nil
			})
			if err == nil {
				c.Cached = s
			}
			return result, err
		},
	}
}

// begin moves the instance and its members on, and makes this the operation's first dispatch.
func begin(t *tx.Tx, locked *engine.Locked, s *parts.Snapshot) {
	batch := locked.Writes
	if locked.Instance.Status == lifecycle.InstanceCreated {
		locked.Set("status", lifecycle.InstanceStarting)
		locked.Instance.Status = lifecycle.InstanceStarting
		locked.Emit(event.Draft{Type: lifecycle.EventInstanceStarting, Message: "starting"})
	}
	locked.Dispatches()
	batch.Queue(`UPDATE member SET status = $2, updated_at = $3, last_operation_id = $4, correlation_id = $5
		WHERE instance_id = $1 AND status = 'PENDING'`, locked.Instance.ID, lifecycle.MemberJoining, t.Now,
		locked.Op.ID, locked.Op.CorrelationID)
	for _, member := range s.Members {
		if member.Status == lifecycle.MemberPending {
			member.Status = lifecycle.MemberJoining
		}
	}
}

// started makes the proved instance RUNNING.
func (w *work) started(_ context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
	if err := locked.Instance.Status.CanMove(lifecycle.InstanceRunning); err != nil {
		return nil, "", err
	}
	locked.Writes.Queue(`UPDATE member SET status = 'ACTIVE', updated_at = $2 WHERE instance_id = $1
		AND status = 'JOINING'`,
		locked.Instance.ID, t.Now)
	locked.Members.Joined()
	counts, err := locked.Members.Roles()
	if err != nil {
		return nil, "", err
	}
	locked.Set("status", lifecycle.InstanceRunning)
	locked.Set("health", locked.Members.Health())
	locked.Set("roles", counts)
	var proof parts.Proved
	var word parts.Answered
	if err := c.Evidence("verify", &proof); err != nil {
		return nil, "", err
	}
	if err := c.Evidence("await", &word); err != nil {
		return nil, "", err
	}
	return createEvidence{Rounds: proof.Rounds, Probes: proof.Probes, Adapter: word.Evidence}, "running", nil
}

// createEvidence proves a launch: the agents' probes, and beside them the adapter's own evidence.
type createEvidence struct {
	Rounds  int                        `json:"rounds"`
	Probes  []parts.ProbeProof         `json:"probes"`
	Adapter map[string]json.RawMessage `json:"adapter,omitempty"`
}

// createFailed loses the instance for service.
func (w *work) createFailed(ctx context.Context, t *tx.Tx, _ *engine.Context, locked *engine.Locked,
	failure operation.Failure) error {
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE member SET status = 'FAILED', updated_at = $2 WHERE instance_id = $1
		AND status IN ('PENDING', 'JOINING')`,
		locked.Instance.ID, t.Now)
	if locked.Instance.Status.CanMove(lifecycle.InstanceFailed) == nil {
		batch.Queue(`UPDATE instance SET status = 'FAILED', health = 'UNKNOWN', failure_code = $2, failure_message = $3,
			failure_owner = $4,
			failure_retryable = $5 WHERE id = $1`, locked.Instance.ID, failure.Code, failure.Message, failure.Owner,
			failure.Retryable)
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("fail %s: %w", locked.Instance.ID, err)
	}
	return roles.Recount(ctx, t, locked.Instance.ID)
}
