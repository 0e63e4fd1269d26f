package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// drain lets a member's work end. Only the adapter can know that nothing runs any more: it must have
// reported every member as drained, and an end that does not mention one is not a success.
func (w *work) drain() engine.Kind {
	return engine.Kind{
		Kind: lifecycle.MemberDrain,
		Steps: []engine.Step{w.prepareMembers(opening{
			title: "marking the member", about: parts.Targets, next: draining,
		}), w.dispatch(), w.Await(), w.saidOf("drained", adapter.MemberDrained)},
		Complete: w.drained,
		Undo:     []engine.Step{w.Withdraw()},
		OnFail: func(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked,
			_ operation.Failure) error {
			if err := w.settle(ctx, t, c, locked, locked.Op.Targets); err != nil {
				return err
			}
			return roles.Recount(ctx, t, locked.Instance.ID)
		},
		Cancel: w.Stop,
	}
}

// draining is a member that takes no new work.
func draining(_ *db.Operation, member *db.Member) parts.Was {
	if member.Status == lifecycle.MemberActive {
		return parts.Was{Status: lifecycle.MemberDraining, Cordoned: true}
	}
	return parts.Was{Status: member.Status, Cordoned: true}
}

// words is the evidence of the step that checks the adapter's report on each member.
type words struct {
	Members map[ids.ID]adapter.MemberStatus `json:"members"`
}

// saidOf requires that the adapter has reported the status for every target: unknown is never read as
// yes.
func (w *work) saidOf(name string, status adapter.MemberStatus) engine.Step {
	return engine.Step{
		Name: name, Title: "checking the adapter's report on each member", Percent: 95, Owner: operation.OwnerAdapter,
		Run: func(_ context.Context, c *engine.Context) (engine.Result, error) {
			said := operation.ReportedStatus(c.Op.Operation)
			var missing []string
			for _, id := range c.Op.Targets {
				if said[id] != status {
					missing = append(missing, fmt.Sprintf("%s (%s)", id, wordOf(said[id])))
				}
			}
			if len(missing) > 0 {
				return engine.Fail(operation.Failure{Code: string(fault.EvidenceMissing), Owner: operation.OwnerAdapter,
					Message: fmt.Sprintf("adapter %s reported success without reporting %s for %s", c.Op.AdapterName,
						status, strings.Join(missing, ", "))}), nil
			}
			return engine.Done(words{Members: said}), nil
		},
	}
}

func wordOf(said adapter.MemberStatus) string {
	if said == "" {
		return "nothing reported"
	}
	return string(said)
}

// drainEvidence proves a drain: the adapter's word on each member, and what it saw.
type drainEvidence struct {
	Members map[ids.ID]adapter.MemberStatus `json:"members"`
	Adapter map[string]json.RawMessage      `json:"adapter,omitempty"`
}

func (w *work) drained(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
	var said words
	var word parts.Answered
	if err := c.Evidence("drained", &said); err != nil {
		return nil, "", err
	}
	if err := c.Evidence("await", &word); err != nil {
		return nil, "", err
	}
	members, err := t.Member.Query().Where(dbmember.IDIn(locked.Op.Targets...)).Order(db.Asc(dbmember.FieldID)).
		ForUpdate().All(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("lock members of %s: %w", locked.Instance.ID, err)
	}
	for _, member := range members {
		if member.Status != lifecycle.MemberDrained {
			if err := member.Status.CanMove(lifecycle.MemberDrained); err != nil {
				return nil, "", err
			}
		}
		if err := set(ctx, t, locked, member, parts.Was{Status: lifecycle.MemberDrained, Cordoned: true}); err != nil {
			return nil, "", err
		}
	}
	locked.Outcome = outcomeOf(c, 0)
	return drainEvidence{Members: said.Members, Adapter: word.Evidence}, "nothing runs on it any more",
		roles.Recount(ctx, t, locked.Instance.ID)
}
