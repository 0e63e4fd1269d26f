package gap

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// DecideInput is a decision on a gap.
type DecideInput struct {
	GapID  ids.ID
	To     lifecycle.GapState
	Reason string
}

// Decide decides a gap: the platform's operators will close it, not yet, or never. Key: gap.decide on the platform.
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN; FAILED_PRECONDITION at input.to naming both states.
func (s *Service) Decide(ctx context.Context, in DecideInput) (out *Gap, err error) {
	var input check.Input
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	if in.To == lifecycle.GapClosed {
		input.Bad("input.to", "must be ACCEPTED, DEFERRED or DECLINED: to close a gap, use closeGap")
	}
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "decideGap"
		before, err := lock(ctx, t, action, in.GapID)
		if err != nil {
			return err
		}
		if err := before.State.CanMove(in.To); err != nil {
			return fault.From(err).At("input.to")
		}
		by := t.Actor.Ref()
		out, err = one(ctx, t, `UPDATE gap SET state = $2, decider_kind = $3, decider_id = $4, decider_name = $5,
			decided_at = $6,
			decision = $7 WHERE id = $1 RETURNING `+columns, before.ID, string(in.To), by.Kind, by.ID, by.Name,
			t.Now, in.Reason)
		if err != nil {
			return fmt.Errorf("decide gap %s: %w", before.ID, err)
		}
		return moved(ctx, t, action, before, out, in.Reason)
	})
	return out, err
}

// lock loads a gap, requires gap.decide on the platform, and locks it. A caller without the key is refused before a
// lock: no one else writes gaps.
func lock(ctx context.Context, t *tx.Tx, action string, id ids.ID) (*Gap, error) {
	seen, err := one(ctx, t, `SELECT `+columns+` FROM gap WHERE id = $1`, id)
	if err != nil {
		return nil, fmt.Errorf("load gap %s: %w", id, err)
	}
	if seen == nil {
		return nil, audit.Missing(t, action, authz.GapDecide, id)
	}
	if err := audit.Require(t, action, authz.GapDecide, authz.Object{}, id); err != nil {
		return nil, err
	}
	locked, err := one(ctx, t, `SELECT `+columns+` FROM gap WHERE id = $1 FOR UPDATE`, id)
	if err != nil {
		return nil, fmt.Errorf("lock gap %s: %w", id, err)
	}
	return locked, nil
}

// moved writes a step of a gap into the audit.
func moved(ctx context.Context, t *tx.Tx, action string, before, after *Gap, reason string) error {
	return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.GapDecide, Object: after.object(),
		ObjectID: after.ID, Reason: reason, Before: map[string]any{"state": before.State},
		After: map[string]any{"state": after.State, "app": after.AppSlug, "release": after.Release,
			"releaseManifest": after.ReleaseManifestID}})
}
