package steps

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// remove takes members out, with the agents' proof that nothing of them is left. By force it goes on
// without the adapter and without silent nodes, and its outcome states that.
func (w *work) remove() engine.Kind {
	return engine.Kind{
		Kind: lifecycle.MemberRemove,
		Steps: []engine.Step{w.prepareMembers(opening{
			title: "marking the member", about: parts.Targets, next: leaving,
		}), yields(w.dispatch()), yields(w.Await()), w.Residue(parts.Targets)},
		Complete: w.removed,
		Undo:     []engine.Step{w.Withdraw()},
		OnFail:   w.notRemoved,
		Cancel:   w.Stop,
	}
}

// yields returns a step that force skips.
func yields(step engine.Step) engine.Step {
	step.SkipWhenForced = true
	return step
}

// leaving is a member on its way out, which takes no new work. By force its work is not waited for, so
// that it is not called draining.
func leaving(op *db.Operation, member *db.Member) parts.Was {
	if op.Force {
		return parts.Was{Status: member.Status, Cordoned: true}
	}
	return draining(op, member)
}

// removal is the evidence that members are removed.
type removal struct {
	parts.Cleaned
	departed
	Adapter map[string]json.RawMessage `json:"adapter,omitempty"`
}

func (w *work) removed(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
	out, err := w.takeOut(ctx, t, c, locked)
	if err != nil {
		return nil, "", err
	}
	return out, removedWords(out.Orphans), roles.Recount(ctx, t, locked.Instance.ID)
}

// takeOut ends the life of the operation's targets, and returns how well that is proved.
func (w *work) takeOut(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (*removal, error) {
	gone, err := w.leave(ctx, t, c, locked, departure{about: locked.Op.Targets, step: "residue"})
	if err != nil {
		return nil, err
	}
	var word parts.Answered
	if err := c.Evidence("await", &word); err != nil {
		return nil, err
	}
	locked.Outcome = outcomeOf(c, gone.Orphans)
	return &removal{Cleaned: gone.Cleaned, departed: *gone, Adapter: word.Evidence}, nil
}

func removedWords(orphans int) string {
	if orphans > 0 {
		return fmt.Sprintf("removed; for %d it is not proved that nothing is left", orphans)
	}
	return "nothing of it is left"
}

// notRemoved brings the members to where they are, and restores the number that is wanted.
func (w *work) notRemoved(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked,
	_ operation.Failure) error {
	if err := w.settle(ctx, t, c, locked, locked.Op.Targets); err != nil {
		return err
	}
	return restore(ctx, t, locked, locked.Op.Targets, 1)
}
