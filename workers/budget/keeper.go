// Package budget keeps budgets: it brings each up to date with the books, reports what it has reached, and at the limit
// carries out the outcome that was chosen, by operations like any other.
package budget

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/budget"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/engine"
)

// maxEnded bounds what one look ends of a budget; the next one goes on.
const maxEnded = 200

// Keeper keeps budgets.
type Keeper struct {
	DB  *tx.DB
	Log *slog.Logger
}

// keeper is the actor that requests the operations of budgets at their limit.
var keeper = authz.System("budget")

// Once handles the budgets that are due. One that fails does not delay the others.
func (k *Keeper) Once(ctx context.Context) (err error) {
	var due []ids.ID
	err = k.DB.As(ctx, keeper, func(ctx context.Context, t *tx.Tx) (err error) {
		due, err = budget.Due(ctx, t)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range due {
		if failed := k.keep(ctx, id); failed != nil {
			err = failed
			k.Log.Warn("a budget could not be enforced; it is tried again", "budget", id, "error", failed)
		}
	}
	return err
}

// keep brings one budget up to date with the books, and ends what it is for when its amount is spent.
func (k *Keeper) keep(ctx context.Context, id ids.ID) error {
	var b *budget.Budget
	err := k.DB.As(ctx, keeper, func(ctx context.Context, t *tx.Tx) (err error) {
		b, err = budget.Accrue(ctx, t, id)
		return err
	})
	if err != nil || b == nil || b.LimitAt == nil {
		return err
	}
	var trouble string
	switch b.AtLimit {
	case spending.Drain:
		trouble, err = k.each(ctx, drainSQL, b, k.drain)
	case spending.Decommission:
		trouble, err = k.each(ctx, releaseSQL, b, k.release)
	default:
		return nil
	}
	if err != nil || trouble == b.Trouble {
		return err
	}
	return k.DB.As(ctx, keeper, func(ctx context.Context, t *tx.Tx) error {
		return budget.NoteTrouble(ctx, t, id, trouble)
	})
}

// ofBudget is whether an allocation counts against the budget.
const ofBudget = ` CASE $2 WHEN 'TENANT' THEN true WHEN 'PROJECT' THEN a.project_id = $3 WHEN 'INSTANCE' THEN a.instance_id = $3
	ELSE EXISTS (SELECT FROM allocation_requester r WHERE r.allocation_id = a.id AND r.subject_id = $3) END `

// drainSQL are the members in service that no open operation acts on; releaseSQL the capacity that is not being given
// back.
const (
	drainSQL = `SELECT m.id FROM member m JOIN instance i ON i.id = m.instance_id AND i.status = 'RUNNING'
		JOIN allocation a ON a.id = m.allocation_id
		WHERE a.tenant_id = $1 AND m.status = 'ACTIVE' AND` + ofBudget + `AND NOT EXISTS (SELECT FROM operation o
		WHERE o.instance_id = i.id AND o.ended_at IS NULL
			AND (coalesce(o.targets, '[]')::jsonb = '[]' OR o.targets::jsonb ? m.id)) ORDER BY m.id LIMIT $4`
	releaseSQL = `SELECT a.id FROM allocation a WHERE a.tenant_id = $1 AND a.status = 'READY'
		AND` + ofBudget + `ORDER BY a.id LIMIT $4`
)

// each ends everything that a statement lists, and returns the first refusal.
func (k *Keeper) each(ctx context.Context, sql string, b *budget.Budget,
	end func(context.Context, ids.ID, string) error) (trouble string, err error) {
	found, err := k.DB.Worker().Query(ctx, sql, b.TenantID, string(b.Scope), b.TargetID, maxEnded)
	if err != nil {
		return "", fmt.Errorf("find what budget %s ends: %w", b.ID, err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return "", fmt.Errorf("find what budget %s ends: %w", b.ID, err)
	}
	reason := fmt.Sprintf("budget %s of %s %s is spent", b.ID, b.Amount, b.Currency)
	for _, id := range list {
		err := end(ctx, id, reason)
		refusal, isFault := fault.As(err)
		if err != nil && !isFault {
			return "", err
		}
		if err != nil && trouble == "" {
			trouble = fmt.Sprintf("%.500s", fmt.Sprintf("%s: %s: %s", id, refusal.Code, refusal.Message))
		}
	}
	return trouble, nil
}

// drain drains a member.
func (k *Keeper) drain(ctx context.Context, id ids.ID, reason string) error {
	seconds := int(spending.DrainDeadline.Seconds())
	_, err := (&engine.Engine{DB: k.DB}).AcceptAs(ctx, keeper, &change.Request{
		Action: "drainMember", Kind: lifecycle.MemberDrain, MemberID: id,
		Conditions: change.Conditions{DeadlineSeconds: seconds},
		Asked: change.Asked{Reason: reason, Input: map[string]any{"MemberID": id, "DeadlineSeconds": seconds,
			"Reason": reason}},
	})
	return err
}

// release gives an allocation back; the instance that uses it is torn down first.
func (k *Keeper) release(ctx context.Context, id ids.ID, reason string) error {
	_, err := (&allocation.Service{DB: k.DB}).ReleaseAs(ctx, keeper,
		allocation.ReleaseInput{AllocationID: id, Reason: reason})
	return err
}
