package steps

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// mark is what the adapter's success makes of a member.
type mark func(ctx context.Context, t *tx.Tx, locked *engine.Locked, member *db.Member) error

// simple is a kind that the adapter carries out alone, and whose success is noted on the members: a
// cordon, its end, labels. Without success nothing is noted.
func (w *work) simple(kind lifecycle.OperationKind, note mark) engine.Kind {
	return engine.Kind{
		Kind: kind,
		Steps: []engine.Step{w.prepareMembers(opening{title: "checking the member", about: parts.Targets}),
			w.dispatch(), w.Await()},
		Complete: func(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
			members, err := t.Member.Query().Where(dbmember.IDIn(locked.Op.Targets...)).Order(db.Asc(dbmember.FieldID)).
				ForUpdate().All(ctx)
			if err != nil {
				return nil, "", fmt.Errorf("lock members of %s: %w", locked.Instance.ID, err)
			}
			for _, member := range members {
				if err := note(ctx, t, locked, member); err != nil {
					return nil, "", err
				}
			}
			var word parts.Answered
			if err := c.Evidence("await", &word); err != nil {
				return nil, "", err
			}
			return simpleEvidence{Members: locked.Op.Targets, Adapter: word.Evidence}, "done",
				roles.Recount(ctx, t, locked.Instance.ID)
		},
		Undo: []engine.Step{w.Withdraw()},
		Undoes: func(c *engine.Context, failure operation.Failure) bool {
			return c.Op.DispatchAttempt > 0 && !engine.Canceled(failure)
		},
		Cancel: w.Stop,
	}
}

// simpleEvidence is the adapter's report that it did what was requested.
type simpleEvidence struct {
	Members []ids.ID                   `json:"members"`
	Adapter map[string]json.RawMessage `json:"adapter,omitempty"`
}

func cordon(ctx context.Context, t *tx.Tx, locked *engine.Locked, member *db.Member) error {
	return set(ctx, t, locked, member, parts.Was{Status: member.Status, Cordoned: true})
}

// uncordon puts a member back in service, a drained one too.
func uncordon(ctx context.Context, t *tx.Tx, locked *engine.Locked, member *db.Member) error {
	to := parts.Was{Status: member.Status}
	if member.Status == lifecycle.MemberDrained || member.Status == lifecycle.MemberDraining {
		to.Status = lifecycle.MemberActive
	}
	return set(ctx, t, locked, member, to)
}

func label(ctx context.Context, t *tx.Tx, locked *engine.Locked, member *db.Member) error {
	var change struct {
		Labels json.RawMessage `json:"labels"`
	}
	if err := json.Unmarshal(locked.Op.DesiredChange, &change); err != nil {
		return fmt.Errorf("read the labels of %s: %w", locked.Op.ID, err)
	}
	if len(change.Labels) == 0 {
		change.Labels = json.RawMessage("{}")
	}
	_, err := t.Exec(ctx, `UPDATE member SET labels = $2, updated_at = $3, last_operation_id = $4, correlation_id = $5
		WHERE id = $1`,
		member.ID, []byte(change.Labels), t.Now, locked.Op.ID, locked.Op.CorrelationID)
	if err != nil {
		return fmt.Errorf("label member %s: %w", member.ID, err)
	}
	return nil
}
