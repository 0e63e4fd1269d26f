package steps

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/contract/wire"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// opening is how an operation on members begins.
type opening struct {
	title string
	// about are the members that it touches; arriving those whose allocations and nodes must be ready.
	about, arriving parts.Subject
	// next is what becomes of a member when the work begins; nil changes nothing.
	next func(op *db.Operation, member *db.Member) parts.Was
}

// prepareMembers checks and marks the members, and makes this the operation's first dispatch, in one
// transaction. Once that is stored, another run of the step changes nothing.
func (w *work) prepareMembers(o opening) engine.Step {
	return w.asPlanned(engine.Step{
		Name: "prepare", Title: o.title, Percent: 5, Owner: operation.OwnerNode,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			var known parts.Prepared
			if err := c.State(&known); err != nil {
				return engine.Result{}, err
			}
			if known.Members != nil {
				return engine.Done(known), nil
			}
			s, result := &parts.Snapshot{}, engine.Result{}
			reads := func(batch *pgx.Batch) { s.Queue(batch, c.Op.Operation) }
			err := c.WriteAfter(ctx, reads, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) (err error) {
				if err := s.Check(locked.Op); err != nil {
					return err
				}
				var ready bool
				if result, ready = w.readyFor(o, locked, s); !ready {
					return nil
				}
				if err = o.open(ctx, t, locked, s, &known); err != nil {
					return err
				}
				result = engine.Done(known)
				return c.SetState(known)
			})
			if err == nil && known.Members != nil {
				s.Members = s.Chosen(known.Members)
				c.Cached = s
			}
			return result, err
		},
	})
}

// readyFor reports whether the work may begin; the result is what to do when it may not.
func (w *work) readyFor(o opening, locked *engine.Locked, s *parts.Snapshot) (engine.Result, bool) {
	refuse := func(format string, args ...any) (engine.Result, bool) {
		return engine.Fail(operation.Failure{Code: string(fault.FailedPrecondition), Owner: operation.OwnerUser,
			Message: fmt.Sprintf(format, args...)}), false
	}
	if locked.Instance.Status != lifecycle.InstanceRunning {
		return refuse("the instance is %s", lifecycle.Wire(locked.Instance.Status))
	}
	for _, id := range o.about(locked.Op) {
		member := s.Member(id)
		if member == nil {
			return refuse("member %s is no longer in the instance", id)
		}
		if o.next == nil {
			continue
		}
		if to := o.next(locked.Op, member).Status; to != member.Status && member.Status.CanMove(to) != nil {
			return refuse("member %s is %s and cannot become %s", id, lifecycle.Wire(member.Status), lifecycle.Wire(to))
		}
	}
	if o.arriving == nil {
		return engine.Result{}, true
	}
	arriving := o.arriving(locked.Op)
	if unready := s.UnreadyOf(arriving); unready != "" {
		return refuse("%s", unready)
	}
	if absent := s.AbsentOf(arriving); absent != "" {
		return engine.Wait(w.Pace.Round, absent, engine.FailureCause{Code: fault.NodeUnreachable,
			Owner: operation.OwnerNode}), false
	}
	return engine.Result{}, true
}

// open writes the beginning, and fills in what the step leaves as evidence.
func (o opening) open(ctx context.Context, t *tx.Tx, locked *engine.Locked, s *parts.Snapshot,
	known *parts.Prepared) error {
	about := o.about(locked.Op)
	*known = parts.Prepared{Members: []ids.ID{}, Before: make(map[ids.ID]parts.Was)}
	shown, err := wire.Instance(locked.Instance)
	if err != nil {
		return err
	}
	known.Components = shown.Components
	batch := &pgx.Batch{}
	for _, member := range s.Members {
		touched := slices.Contains(about, member.ID)
		if touched || member.Status != lifecycle.MemberPending { // who is still to come belongs to another operation
			known.Members = append(known.Members, member.ID)
		}
		if touched {
			known.Before[member.ID] = parts.Was{Status: member.Status, Cordoned: member.Cordoned}
			o.mark(batch, t, locked, member)
		}
	}
	batch.Queue(`UPDATE operation SET dispatch_attempt = 1 WHERE id = $1 AND dispatch_attempt = 0`, locked.Op.ID)
	locked.Op.DispatchAttempt = max(locked.Op.DispatchAttempt, 1)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("prepare %s: %w", locked.Op.ID, err)
	}
	return roles.Recount(ctx, t, locked.Instance.ID)
}

// mark moves a member on. What the adapter reported of it for an earlier operation is deleted.
func (o opening) mark(batch *pgx.Batch, t *tx.Tx, locked *engine.Locked, member *db.Member) {
	to := parts.Was{Status: member.Status, Cordoned: member.Cordoned}
	if o.next != nil {
		to = o.next(locked.Op, member)
	}
	batch.Queue(`UPDATE member SET status = $2, cordoned = $3, updated_at = $4, last_operation_id = $5, correlation_id
		= $6,
		adapter_detail = adapter_detail - 'reportedStatus' WHERE id
		= $1`, member.ID, to.Status, to.Cordoned, t.Now, locked.Op.ID, locked.Op.CorrelationID)
	if to.Status != member.Status || to.Cordoned != member.Cordoned {
		locked.Emit(changed(member, to.Status))
	}
	member.Status, member.Cordoned = to.Status, to.Cordoned
}

// changed returns the event of a member that has a new status.
func changed(member *db.Member, status lifecycle.MemberStatus) event.Draft {
	return event.Draft{Type: lifecycle.EventMemberChanged, MemberID: member.ID,
		Message: fmt.Sprintf("%s %d is %s", member.ComponentKey, member.Ordinal, lifecycle.Wire(status)),
		Payload: map[string]any{"componentKey": member.ComponentKey, "index": member.Ordinal, "status": status,
			"health": member.Health}}
}
