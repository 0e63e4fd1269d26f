package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change/engine"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/transport"
)

// Bounds of a look at the drains of nodes.
const (
	maxDrains       = 50          // nodes
	maxDrainMembers = 500         // members of each
	refusedPause    = time.Minute // before a member that could not be drained is tried again
)

// drainer is who requests the operations that a node's drain consists of.
var drainer = authz.System("drain of a node")

// draining is a node under drain.
type draining struct {
	ID    ids.ID
	Name  string
	Drain *nodehealth.Drain
}

// lodger is a member on such a node. Open is the operation that acts on it; nil for none.
type lodger struct {
	ID       ids.ID
	Status   lifecycle.MemberStatus
	Instance lifecycle.InstanceStatus
	Open     *ids.ID
	Kind     *lifecycle.OperationKind
	Ours     bool
}

// Drains carries the operators' drains of nodes on: every member there by an ordinary operation of its own. One that is
// taken back gives the members that it drained their work back.
func (k *Keeper) Drains(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := k.DB.Worker().Query(ctx, `SELECT id, name, drain FROM compute_node WHERE drain IS NOT NULL
		AND status <> 'RETIRED'
		ORDER BY id LIMIT $1`, maxDrains)
	if err != nil {
		return fmt.Errorf("list nodes that are drained: %w", err)
	}
	nodes, err := pgx.CollectRows(found, pgx.RowToStructByPos[draining])
	if err != nil {
		return fmt.Errorf("list nodes that are drained: %w", err)
	}
	var failures []error
	for _, node := range nodes {
		failures = append(failures, k.drain(ctx, node))
	}
	return errors.Join(failures...)
}

const lodgersSQL = `SELECT m.id, m.status, i.status, o.id, o.kind, coalesce(o.requester_kind = 'SYSTEM'
	AND o.requester_name = $3, false)
	FROM member m JOIN instance i ON i.id = m.instance_id
	LEFT JOIN LATERAL (SELECT id, kind, requester_kind, requester_name FROM operation WHERE instance_id = m.instance_id
		AND ended_at IS NULL AND (targets IS NULL OR targets = '[]' OR targets ? m.id) ORDER BY id LIMIT 1) o ON true
	WHERE m.node_id = $1 AND NOT m.removed ORDER BY m.id LIMIT $2`

func (k *Keeper) drain(ctx context.Context, node draining) error {
	found, err := k.DB.Worker().Query(ctx, lodgersSQL, node.ID, maxDrainMembers, drainer.Name)
	if err != nil {
		return fmt.Errorf("list the members on node %s: %w", node.ID, err)
	}
	members, err := pgx.CollectRows(found, pgx.RowToStructByPos[lodger])
	if err != nil {
		return fmt.Errorf("list the members on node %s: %w", node.ID, err)
	}
	ctx = authz.WithRequest(ctx, authz.RequestInfo{CorrelationID: transport.NewCorrelationID()})
	if node.Drain.Ending {
		return k.giveBack(ctx, node, members)
	}
	next := *node.Drain
	next.Refused = make(map[string]nodehealth.Refusal)
	next.Drained, next.Forced = slices.Clone(next.Drained), slices.Clone(next.Forced)
	var failures []error // one member holds no other back, and what was begun is noted
	for _, member := range members {
		failures = append(failures, k.drainMember(ctx, node, member, &next))
	}
	return errors.Join(append(failures, k.noteDrain(ctx, node, &next))...)
}

// drainMember requests the drain of a member that works, unless something acts on it already; by force it hastens a
// drain that is under way.
func (k *Keeper) drainMember(ctx context.Context, node draining, member lodger, next *nodehealth.Drain) error {
	id := string(member.ID)
	works := member.Instance == lifecycle.InstanceRunning &&
		(member.Status == lifecycle.MemberActive || member.Status == lifecycle.MemberDraining)
	hastens := next.Force && member.Open != nil && *member.Kind == lifecycle.MemberDrain &&
		!slices.Contains(next.Forced, id)
	if !works || (member.Open != nil && !hastens) {
		return nil
	}
	if before, known := node.Drain.Refused[id]; known && k.DB.Now().Sub(before.At) < refusedPause {
		next.Refused[id] = before
		return nil
	}
	refusal, err := k.request(ctx, lifecycle.MemberDrain, member.ID, node, next.Force)
	switch {
	case err != nil:
		return err
	case refusal != nil:
		next.Refused[id] = *refusal
		return nil
	}
	if !slices.Contains(next.Drained, id) {
		next.Drained = append(next.Drained, id)
	}
	if next.Force {
		next.Forced = append(next.Forced, id)
	}
	return nil
}

// request accepts an operation on a member for the drain of its node; it returns a rule's refusal apart from errors.
func (k *Keeper) request(ctx context.Context, kind lifecycle.OperationKind, id ids.ID, node draining,
	force bool) (*nodehealth.Refusal, error) {
	reason := "node " + node.Name + " is drained by " + node.Drain.By
	if kind == lifecycle.MemberUncordon {
		reason = "node " + node.Name + " takes members again"
	}
	if node.Drain.Reason != "" {
		reason += ": " + node.Drain.Reason
	}
	work := engine.Engine{DB: k.DB}
	_, err := work.AcceptAs(ctx, drainer, member.Request(kind, member.Input{MemberID: id, Force: force,
		DeadlineSeconds: node.Drain.DeadlineSeconds, Reason: reason}))
	if refused, ok := fault.As(err); ok && refused.Code != fault.Internal && refused.Code != fault.Unavailable {
		return &nodehealth.Refusal{Code: string(refused.Code), Message: refused.Message, At: k.DB.Now()}, nil
	}
	return nil, err
}

// giveBack lets the members that a drain took work from take it again: a drain under way is canceled, a drained member
// uncordoned. Members that cannot be, or that changed otherwise meanwhile, are left as they are.
func (k *Keeper) giveBack(ctx context.Context, node draining, members []lodger) error {
	var failures []error
	next := *node.Drain
	next.Drained = nil
	for _, member := range members {
		if !slices.Contains(node.Drain.Drained, string(member.ID)) {
			continue
		}
		again, err := k.giveBackOne(ctx, node, member)
		failures = append(failures, err)
		if again || err != nil {
			next.Drained = append(next.Drained, string(member.ID))
		}
	}
	then := &next
	if len(next.Drained) == 0 {
		then = nil
	}
	return errors.Join(append(failures, k.noteDrain(ctx, node, then))...)
}

// giveBackOne reports whether the member is to be looked at again.
func (k *Keeper) giveBackOne(ctx context.Context, node draining, member lodger) (again bool, err error) {
	switch {
	case member.Open != nil && *member.Kind == lifecycle.MemberDrain && member.Ours:
		err := k.DB.As(ctx, drainer, func(ctx context.Context, t *tx.Tx) error {
			_, err := operation.CancelIn(ctx, t, *member.Open, "node "+node.Name+" takes members again")
			return err
		})
		if _, refused := fault.As(err); refused { // it has ended, or cannot be stopped: what it comes to is seen then
			return true, nil
		}
		return true, err
	case member.Open != nil:
		return *member.Kind == lifecycle.MemberUncordon || member.Ours, nil
	case member.Status == lifecycle.MemberDrained:
		refusal, err := k.request(ctx, lifecycle.MemberUncordon, member.ID, node, false)
		return refusal != nil && refusal.Code == string(fault.Conflict), err
	}
	return false, nil
}

// noteDrain stores how far a drain is, unless an operator changed it meanwhile; nil ends it.
func (k *Keeper) noteDrain(ctx context.Context, node draining, next *nodehealth.Drain) error {
	_, err := k.DB.Worker().Exec(ctx, `UPDATE compute_node SET drain = $2 WHERE id = $1 AND status <> 'RETIRED'
		AND (drain ->> 'since')::timestamptz = ($3::jsonb ->> 'since')::timestamptz
		AND drain ->> 'ending' = $3::jsonb ->> 'ending' AND drain ->> 'force' = $3::jsonb ->> 'force'
		AND drain IS DISTINCT FROM $2`, node.ID, next, node.Drain)
	if err != nil {
		return fmt.Errorf("note the drain of node %s: %w", node.ID, err)
	}
	return nil
}
