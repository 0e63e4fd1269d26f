package steps

import (
	"context"
	"fmt"

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

// settle brings members that an operation without success has touched to where they truly are: by the
// adapter's last report, or to what they were before when the adapter never worked on them. One of
// which nothing is known stays where it is, from where the verbs can take it on.
func (w *work) settle(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked, about []ids.ID) error {
	var first parts.Prepared
	var ending parts.Withdrawn
	if err := c.Evidence("prepare", &first); err != nil {
		return err
	}
	if err := c.Evidence("withdraw", &ending); err != nil {
		return err
	}
	members, err := t.Member.Query().Where(dbmember.IDIn(about...),
		dbmember.InstanceID(locked.Instance.ID)).Order(db.Asc(dbmember.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return fmt.Errorf("lock members of %s: %w", locked.Instance.ID, err)
	}
	said := operation.ReportedStatus(locked.Op)
	for _, member := range members {
		before, touched := first.Before[member.ID]
		if !touched {
			continue
		}
		to := standingOf(locked.Op, member, before, said[member.ID], ending.Outcome)
		if err := set(ctx, t, locked, member, to); err != nil {
			return err
		}
	}
	return nil
}

// standingOf is where a member is after an operation that did not succeed.
func standingOf(op *db.Operation, member *db.Member, before parts.Was, said adapter.MemberStatus,
	ending string) parts.Was {
	to := parts.Was{Status: member.Status, Cordoned: member.Cordoned}
	back := parts.Was{Status: lifecycle.MemberActive, Cordoned: before.Cordoned}
	switch {
	case op.DispatchAttempt == 0 || ending == "rejected" || ending == "never_dispatched":
		to = before
	case said == adapter.MemberActive:
		to = back
	case op.Kind == lifecycle.MemberDrain && ending == string(adapter.CancelDone):
		to = back // a drain that is canceled puts the member back in service
	case said == adapter.MemberDrained:
		to.Status = lifecycle.MemberDrained
	case said == adapter.MemberRemoved:
		to.Status = lifecycle.MemberFailed // out of the app, and not proved gone from its node
	}
	if to.Status != member.Status && member.Status.CanMove(to.Status) != nil {
		to = parts.Was{Status: member.Status, Cordoned: member.Cordoned}
	}
	return to
}

// set moves a member and emits the change.
func set(ctx context.Context, t *tx.Tx, locked *engine.Locked, member *db.Member, to parts.Was) error {
	if to.Status == member.Status && to.Cordoned == member.Cordoned {
		return nil
	}
	_, err := t.Exec(ctx, `UPDATE member SET status = $2::text, cordoned = $3, updated_at = $4, last_operation_id = $5,
		correlation_id = $6,
		failure = CASE WHEN $2::text <> 'ACTIVE' THEN failure END, failed_at = CASE
		WHEN $2::text <> 'ACTIVE' THEN failed_at END,
		restarts = CASE WHEN status = 'JOINING' AND $2::text = 'ACTIVE' THEN 0 ELSE restarts END WHERE id = $1`,
		member.ID, to.Status, to.Cordoned, t.Now, locked.Op.ID, locked.Op.CorrelationID)
	if err != nil {
		return fmt.Errorf("settle member %s: %w", member.ID, err)
	}
	member.Status, member.Cordoned = to.Status, to.Cordoned
	locked.Emit(changed(member, to.Status))
	return nil
}

// restore sets the wanted number of members to that before a change that did not succeed; more is for each.
func restore(ctx context.Context, t *tx.Tx, locked *engine.Locked, about []ids.ID, more int) error {
	counts := make(map[string]int)
	members, err := t.Member.Query().Where(dbmember.IDIn(about...), dbmember.InstanceID(locked.Instance.ID)).All(ctx)
	if err != nil {
		return fmt.Errorf("count members of %s: %w", locked.Instance.ID, err)
	}
	for _, member := range members {
		counts[member.ComponentKey] += more
	}
	for key, count := range counts {
		if err := roles.WantMore(ctx, t, locked.Instance, key, count); err != nil {
			return err
		}
	}
	return roles.Recount(ctx, t, locked.Instance.ID)
}

// join makes members ACTIVE whose readiness the agents have proved.
func join(ctx context.Context, t *tx.Tx, locked *engine.Locked, about []ids.ID) error {
	members, err := t.Member.Query().Where(dbmember.IDIn(about...),
		dbmember.InstanceID(locked.Instance.ID)).Order(db.Asc(dbmember.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return fmt.Errorf("lock members of %s: %w", locked.Instance.ID, err)
	}
	for _, member := range members {
		if err := member.Status.CanMove(lifecycle.MemberActive); err != nil {
			return fmt.Errorf("member %s: %w", member.ID, err)
		}
		if err := set(ctx, t, locked, member, parts.Was{Status: lifecycle.MemberActive,
			Cordoned: member.Cordoned}); err != nil {
			return err
		}
	}
	return roles.Recount(ctx, t, locked.Instance.ID)
}
