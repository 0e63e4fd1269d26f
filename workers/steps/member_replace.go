package steps

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// replace puts a new member in another's place: the new one is proved to work, and of the old one it is
// proved that nothing is left. While the old one is part of the app, a failure takes the new one back;
// from then on the new one stays, and what is left of the old one can be removed.
func (w *work) replace() engine.Kind {
	return engine.Kind{
		Kind: lifecycle.MemberReplace,
		Steps: []engine.Step{w.prepareMembers(opening{
			title: "checking the new member's node", about: both, arriving: parts.Replacement, next: exchanged,
		}), patient(w.dispatch()), patient(yields(w.Await())), w.Verify(parts.Replacement), w.Residue(parts.Targets)},
		Complete: w.replaced,
		Undo:     []engine.Step{w.Withdraw(), w.undoReplacement()},
		OnFail:   w.notReplaced,
		Cancel:   w.Stop,
	}
}

// patient is a step that may need another grace, or the rest of the time, when force is used.
func patient(step engine.Step) engine.Step {
	step.DoubleGrace = true
	return step
}

// both are the member that goes and the one that comes.
func both(op *db.Operation) []ids.ID {
	return append(slices.Clone(op.Targets), parts.Replacement(op)...)
}

// exchanged begins a replacement: the new member joins, the old one serves until the adapter drains it.
func exchanged(op *db.Operation, member *db.Member) parts.Was {
	if slices.Contains(op.Targets, member.ID) {
		return kept(member)
	}
	return joining(op, member)
}

// stays reports whether the new member stays though the replacement did not succeed: the old one is out of
// the app already.
func stays(op *db.Operation) bool {
	said := operation.ReportedStatus(op)
	for _, id := range op.Targets {
		if said[id] != adapter.MemberRemoved {
			return false
		}
	}
	return op.DispatchAttempt > 0
}

// undoReplacement tears the new member down, unless it stays.
func (w *work) undoReplacement() engine.Step {
	step := w.UndoMembers(parts.Replacement)
	sweepNew := step.Run
	step.Run = func(ctx context.Context, c *engine.Context) (engine.Result, error) {
		if stays(c.Op.Operation) {
			return engine.Done(parts.Cleaned{Residue: []parts.ResidueProof{}}), nil
		}
		return sweepNew(ctx, c)
	}
	return step
}

// replacedEvidence proves both ends of a replacement.
type replacedEvidence struct {
	Joined  joined   `json:"joined"`
	Removed *removal `json:"removed"`
}

func (w *work) replaced(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
	arriving := parts.Replacement(locked.Op)
	removed, err := w.takeOut(ctx, t, c, locked)
	if err != nil {
		return nil, "", err
	}
	if err := join(ctx, t, locked, arriving); err != nil {
		return nil, "", err
	}
	locked.About = map[lifecycle.EventType][]ids.ID{lifecycle.EventMemberAdded: arriving}
	proof, err := proofOfJoin(c, arriving)
	return replacedEvidence{Joined: proof, Removed: removed},
		"replaced; of the old member: " + removedWords(removed.Orphans), err
}

// notReplaced takes the new member off the instance, or keeps it when the old one is out already.
func (w *work) notReplaced(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked,
	_ operation.Failure) error {
	arriving := parts.Replacement(locked.Op)
	locked.About = map[lifecycle.EventType][]ids.ID{lifecycle.EventMemberFailed: arriving}
	if stays(locked.Op) {
		return w.keepReplacement(ctx, t, c, locked, arriving)
	}
	if _, err := w.leave(ctx, t, c, locked, departure{about: arriving, step: "undo_members",
		also: parts.Created(locked.Op)}); err != nil {
		return err
	}
	if err := w.settle(ctx, t, c, locked, locked.Op.Targets); err != nil {
		return err
	}
	return roles.Recount(ctx, t, locked.Instance.ID)
}

// keepReplacement leaves the new member where it is proved to be, and the old one as FAILED for a
// removal: until then the instance has one member more than was requested.
func (w *work) keepReplacement(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked,
	arriving []ids.ID) error {
	var proof parts.Proved
	if err := c.Evidence("verify", &proof); err != nil {
		return err
	}
	status := lifecycle.MemberFailed
	if proof.Probes != nil {
		status = lifecycle.MemberActive
		locked.About = map[lifecycle.EventType][]ids.ID{lifecycle.EventMemberFailed: locked.Op.Targets}
	}
	_, err := t.Exec(ctx, `UPDATE member SET status = $2, updated_at = $3 WHERE id = ANY ($1) AND status = 'JOINING'`,
		arriving, status, t.Now)
	if err != nil {
		return fmt.Errorf("keep the new member of %s: %w", locked.Instance.ID, err)
	}
	if err := w.settle(ctx, t, c, locked, locked.Op.Targets); err != nil {
		return err
	}
	return restore(ctx, t, locked, locked.Op.Targets, 1)
}
