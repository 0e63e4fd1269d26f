package steps

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// add brings members in. If that fails or is canceled, all of them are torn down, the number that is
// wanted is what it was, and allocations that were requested along with them are released; unless the
// caller wanted members that could not join kept as FAILED.
func (w *work) add() engine.Kind {
	return engine.Kind{
		Kind: lifecycle.MembersAdd,
		Steps: []engine.Step{w.prepareMembers(opening{
			title: "checking allocations and nodes", about: parts.Targets, arriving: parts.Targets, next: joining,
		}), w.dispatch(), w.Await(), w.Verify(parts.Targets)},
		Complete: w.added,
		Undo:     []engine.Step{w.Withdraw(), w.UndoMembers(parts.Targets)},
		Undoes:   func(c *engine.Context, failure operation.Failure) bool { return !keeps(c.Op.Operation, failure) },
		OnFail:   w.notAdded,
		Cancel:   w.Stop,
		Abandon:  w.abandonKept,
	}
}

func joining(_ *db.Operation, member *db.Member) parts.Was {
	return parts.Was{Status: lifecycle.MemberJoining, Cordoned: member.Cordoned}
}

// keeps reports whether members that could not join stay, to be recovered or replaced.
func keeps(op *db.Operation, failure operation.Failure) bool {
	return operation.PrivateOf(op).KeepFailed && !engine.Canceled(failure) && op.DispatchAttempt > 0
}

// joined proves that members work: the agents' probes, and beside them the adapter's own evidence.
type joined struct {
	Members []ids.ID                   `json:"members"`
	Rounds  int                        `json:"rounds"`
	Probes  []parts.ProbeProof         `json:"probes"`
	Adapter map[string]json.RawMessage `json:"adapter,omitempty"`
}

// proofOfJoin reads what the steps have proved of members that came in.
func proofOfJoin(c *engine.Context, about []ids.ID) (joined, error) {
	var proof parts.Proved
	var word parts.Answered
	if err := c.Evidence("verify", &proof); err != nil {
		return joined{}, err
	}
	err := c.Evidence("await", &word)
	return joined{Members: about, Rounds: proof.Rounds, Probes: proof.Probes, Adapter: word.Evidence}, err
}

func (w *work) added(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
	about := locked.Op.Targets
	if err := join(ctx, t, locked, about); err != nil {
		return nil, "", err
	}
	proof, err := proofOfJoin(c, about)
	return proof, fmt.Sprintf("%d members joined", len(about)), err
}

// notAdded takes the members off the instance, or keeps those that failed.
func (w *work) notAdded(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked,
	failure operation.Failure) error {
	about := locked.Op.Targets
	if keeps(locked.Op, failure) {
		return w.keepFailed(ctx, t, c, locked)
	}
	locked.About = map[lifecycle.EventType][]ids.ID{lifecycle.EventMemberFailed: about}
	if _, err := w.leave(ctx, t, c, locked, departure{about: about, step: "undo_members",
		also: parts.Created(locked.Op)}); err != nil {
		return err
	}
	return restore(ctx, t, locked, about, -1)
}

// keepFailed keeps those that are proved to work as ACTIVE and the others as FAILED.
func (w *work) keepFailed(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) error {
	var state parts.Rounds
	if err := c.StateOf("verify", &state); err != nil {
		return err
	}
	_, err := t.Exec(ctx, `UPDATE member SET status = 'ACTIVE', updated_at = $2 WHERE id = ANY ($1)
		AND status = 'JOINING'`, state.Proved, t.Now)
	if err != nil {
		return fmt.Errorf("keep members of %s: %w", locked.Instance.ID, err)
	}
	found, err := t.Query(ctx,
		`UPDATE member SET status = 'FAILED', updated_at = $2 WHERE id = ANY ($1) AND status IN ('PENDING', 'JOINING')
			RETURNING id`,
		locked.Op.Targets, t.Now)
	if err != nil {
		return fmt.Errorf("keep failed members of %s: %w", locked.Instance.ID, err)
	}
	failed, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("keep failed members of %s: %w", locked.Instance.ID, err)
	}
	// Members that the adapter reported as failed had their event then.
	locked.About = map[lifecycle.EventType][]ids.ID{lifecycle.EventMemberFailed: failed}
	return roles.Recount(ctx, t, locked.Instance.ID)
}

// abandonKept asks the adapter to stop when failed members are kept; otherwise the undo steps have asked already.
func (w *work) abandonKept(ctx context.Context, c *engine.Context) {
	if operation.PrivateOf(c.Op.Operation).KeepFailed {
		w.Abandon(ctx, c)
	}
}
