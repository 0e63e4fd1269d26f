// Package repair brings back members that were lost in service, or replaces them, as the policy of their instance says;
// it finds members whose node is lost, and ends the service of instances that their policy gives up. Each of its looks
// is bounded, and one process at a time makes them.
package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	rules "github.com/gpuaas/app-platform/domain/repair"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/engine"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Bounds of repair.
const (
	maxRepaired    = 100 // instances of one look
	repairDeadline = 900 // seconds that a repair has
	repairRequests = "repair"
	lookTimeout    = 10 * time.Second
	maxText        = 2_000
	refusedPause   = time.Minute // after a repair that was refused
)

// Repairer repairs. Its methods may be called by many goroutines.
type Repairer struct {
	DB  *tx.DB
	Log *slog.Logger
	// NodeGrace is how long a silent node's members may come back before they are lost; 0 is 5 minutes.
	NodeGrace time.Duration

	since   time.Time  // when this process began to look
	mu      sync.Mutex // held while repairs are decided
	refused map[ids.ID]refusedRepair
	after   ids.ID // the last instance of the look before, if there are more
}

// New returns a repairer.
func New(db *tx.DB, log *slog.Logger, nodeGrace time.Duration) *Repairer {
	return &Repairer{DB: db, Log: log, NodeGrace: nodeGrace, since: db.Now(), refused: make(map[ids.ID]refusedRepair)}
}

// repairer is who requests repairs.
var repairer = authz.System(repairRequests)

// damaged is an instance with members that are lost.
type damaged struct {
	ID      ids.ID
	Policy  []byte
	Stopped string
}

// damagedSQL are instances that run with members that were lost in service, and those whose repair has stopped for
// members that are not lost any more. An index finds each of the two: the query runs after operations have ended, and
// of all that runs next to nothing is damaged.
const damagedSQL = `SELECT i.id, i.repair, i.repair_stopped FROM (
		SELECT m.instance_id AS id FROM member m WHERE m.status = 'FAILED' AND NOT m.removed AND m.failure IS NOT NULL AND m.instance_id > $2
		UNION SELECT s.id FROM instance s WHERE s.repair_stopped <> '' AND s.released_at IS NULL AND s.id > $2) damaged
	JOIN instance i ON i.id = damaged.id WHERE i.status = 'RUNNING' AND i.released_at IS NULL
	ORDER BY i.id LIMIT $1`

// Repair brings members back, or replaces them, as the policy of their instance says. A repair is an operation like any
// other, that the platform requests. A look goes on where the one before ended, so that many instances that cannot be
// repaired keep none from it.
func (r *Repairer) Repair(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	maps.DeleteFunc(r.refused, func(_ ids.ID, refused refusedRepair) bool { return !r.DB.Now().Before(refused.at) })
	found, err := r.DB.Worker().Query(ctx, damagedSQL, maxRepaired, r.after)
	if err != nil {
		return fmt.Errorf("list damaged instances: %w", err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[damaged])
	if err != nil {
		return fmt.Errorf("list damaged instances: %w", err)
	}
	r.after = ""
	if len(list) == maxRepaired {
		r.after = list[len(list)-1].ID
	}
	for _, one := range list {
		if err := r.mend(ctx, one); err != nil {
			r.Log.Warn("an instance could not be repaired; it is tried again", "app_instance_id", one.ID, "error", err)
		}
	}
	return nil
}

// mend decides what is done for one instance, and does it.
func (r *Repairer) mend(ctx context.Context, one damaged) error {
	policy, err := rules.Of(one.Policy)
	if err != nil {
		return err
	}
	facts := rules.Facts{Policy: policy, Now: r.DB.Now()}
	open, err := r.repairFacts(ctx, one.ID, &facts)
	if err != nil || open {
		return err
	}
	decided := rules.Next(facts)
	stopped := decided.Stopped
	for _, step := range decided.Steps {
		if said := r.begin(ctx, one.ID, step, policy); said != "" {
			stopped = said
		}
	}
	if decided.Spent && policy.Mode == rules.Automatic {
		if err := r.endUnserved(ctx, one.ID, decided.Stopped); err != nil {
			return err
		}
	}
	if stopped == one.Stopped {
		return nil
	}
	return r.DB.As(ctx, repairer, func(ctx context.Context, t *tx.Tx) error {
		return noteStopped(ctx, t, one.ID, stopped)
	})
}

// noteStopped keeps why repair has stopped, or that it goes on, on the instance's row and timeline.
func noteStopped(ctx context.Context, t *tx.Tx, id ids.ID, stopped string) error {
	instance, err := t.Instance.Query().Where(dbinstance.ID(id)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("lock instance %s: %w", id, err)
	}
	if instance.RepairStopped == stopped {
		return nil
	}
	if _, err := t.Exec(ctx, `UPDATE instance SET repair_stopped = $2 WHERE id = $1`, id, stopped); err != nil {
		return fmt.Errorf("note the repair of %s: %w", id, err)
	}
	t.Wake(event.InstanceTopic(id), event.ProjectTopic(instance.ProjectID))
	if stopped == "" {
		return nil
	}
	return event.Append(ctx, t, instance, event.Draft{Type: lifecycle.EventInstanceRepairStopped, Message: stopped,
		Payload: map[string]any{"reason": stopped}})
}

// begin requests a repair; it returns why that was refused, and nothing where it was accepted or is tried again soon.
func (r *Repairer) begin(ctx context.Context, instance ids.ID, step rules.Step, policy rules.Policy) string {
	if until, waits := r.refused[step.Member]; waits {
		return until.why
	}
	request, err := r.request(ctx, step, policy)
	if err == nil {
		_, err = (&engine.Engine{DB: r.DB}).AcceptAs(ctx, repairer, request)
	}
	refusal, isFault := fault.As(err)
	switch {
	case err == nil:
		r.Log.Info("a repair begins", "app_instance_id", instance, "member_id", step.Member, "kind", step.Kind)
		return ""
	case !isFault || refusal.Code == fault.Conflict || refusal.Code == fault.Internal ||
		refusal.Code == fault.Unavailable:
		r.Log.Warn("a repair could not begin; it is tried again", "member_id", step.Member, "error", err)
		return ""
	}
	why := fmt.Sprintf("repair has stopped: the %s of member %s was refused, %s: %s", nounOf(step.Kind), step.Member,
		refusal.Code, refusal.Message)
	r.refused[step.Member] = refusedRepair{at: r.DB.Now().Add(refusedPause), why: operation.Clip(why, maxText)}
	return operation.Clip(why, maxText)
}

// refusedRepair is why a repair was refused, and until when it is not requested again. The next look forgets it then.
type refusedRepair struct {
	at  time.Time
	why string
}

func nounOf(kind lifecycle.OperationKind) string {
	if kind == lifecycle.MemberReplace {
		return "replacement"
	}
	return "recovery"
}

// request returns the change that a step needs. A member is replaced into capacity like that which it had, by force,
// since its node cannot prove that nothing of it is left.
func (r *Repairer) request(ctx context.Context, step rules.Step, policy rules.Policy) (*change.Request, error) {
	request := &change.Request{
		Action: "repairMember", Kind: step.Kind, MemberID: step.Member,
		Conditions: change.Conditions{DeadlineSeconds: repairDeadline}, Asked: change.Asked{Reason: step.Reason},
	}
	input := map[string]any{"MemberID": step.Member, "DeadlineSeconds": repairDeadline, "Reason": step.Reason}
	request.Asked.Input = input
	if step.Kind != lifecycle.MemberReplace {
		return request, nil
	}
	want, err := r.sameCapacity(ctx, step.Member)
	if err != nil {
		return nil, err
	}
	request.Intent, request.Force, request.HourlyLimitMicros = want, true, policy.HourlyLimitMicros
	input["Intent"], input["Force"] = want, true
	return request, nil
}

// sameCapacity is capacity like that in which a member lives.
func (r *Repairer) sameCapacity(ctx context.Context, member ids.ID) (*capacity.Want, error) {
	var want capacity.Want
	var gpus int
	err := r.DB.Worker().QueryRow(ctx, `SELECT a.shape, a.gpu_count, a.sku, a.region FROM member m
		JOIN allocation a ON a.id = m.allocation_id
		WHERE m.id = $1`, member).Scan((*string)(&want.Shape), &gpus, &want.SKU, &want.Region)
	if err != nil {
		return nil, fmt.Errorf("read the capacity of member %s: %w", member, err)
	}
	if want.Shape == lifecycle.ShapeGPUSlice {
		want.GPUCount = &gpus
	}
	return &want, nil
}

// lostSQL are the instance's members that are FAILED or that a repair works on.
const lostSQL = `SELECT m.id, m.component_key, m.ordinal, m.status, coalesce(m.failure, ''), coalesce(n.status
	= 'ONLINE', false),
		coalesce(n.status = 'RETIRED' OR n.last_seen_at < now() - make_interval(secs => $2), true)
	FROM member m LEFT JOIN compute_node n ON n.id = m.node_id
	WHERE m.instance_id = $1 AND m.status IN ('FAILED', 'JOINING') ORDER BY m.component_key, m.ordinal`

// triedSQL are the instance's operations that are open, and repairs of the last hour. The step after the adapter's is
// the proof.
const triedSQL = `SELECT id, kind, state, coalesce(targets, '[]'), requester_kind = 'SYSTEM' AND requester_name = '` +
	repairRequests + `', ended_at, EXISTS (SELECT FROM operation_step s
		WHERE s.operation_id = operation.id AND s.name = 'await' AND s.state = 'SUCCEEDED')
	FROM operation WHERE instance_id = $1 AND (ended_at IS NULL OR created_at > now() - make_interval(secs => $2))
	ORDER BY id`

// tried is an operation that is open, or a repair of late.
type tried struct {
	ID      ids.ID
	Kind    lifecycle.OperationKind
	State   lifecycle.OperationState
	Targets []byte
	Repair  bool
	Ended   *time.Time
	Proving bool
}

// repairFacts reads what a decision rests on; true while an operation on the whole instance is open.
func (r *Repairer) repairFacts(ctx context.Context, id ids.ID, facts *rules.Facts) (open bool, err error) {
	order, err := r.componentOrder(ctx, id)
	if err != nil {
		return false, err
	}
	found, err := r.DB.Worker().Query(ctx, triedSQL, id, rules.Window.Seconds())
	if err != nil {
		return false, fmt.Errorf("read the repairs of %s: %w", id, err)
	}
	ops, err := pgx.CollectRows(found, pgx.RowToStructByPos[tried])
	if err != nil {
		return false, fmt.Errorf("read the repairs of %s: %w", id, err)
	}
	for _, op := range ops {
		if op.Ended == nil && op.Kind.Effects().Scope == lifecycle.ScopeInstance {
			return true, nil
		}
		if op.Repair {
			facts.Begun++
		}
	}
	facts.Members, err = r.lostMembers(ctx, id, order, ops)
	return false, err
}

// componentOrder reads the components of an instance's manifest, each with its place.
func (r *Repairer) componentOrder(ctx context.Context, id ids.ID) (map[string]int, error) {
	var document []byte
	err := r.DB.Worker().QueryRow(ctx, `SELECT m.document FROM instance i JOIN manifest m ON m.id = i.manifest_id
		WHERE i.id = $1`,
		id).Scan(&document)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", id, err)
	}
	parsed, err := manifest.Stored(document)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", id, err)
	}
	order := make(map[string]int, len(parsed.Components))
	for i, one := range parsed.Components {
		order[one.Key] = i
	}
	return order, nil
}

func (r *Repairer) lostMembers(ctx context.Context, id ids.ID, order map[string]int, ops []tried) ([]rules.Member,
	error) {
	found, err := r.DB.Worker().Query(ctx, lostSQL, id, r.nodeGrace().Seconds())
	if err != nil {
		return nil, fmt.Errorf("read the lost members of %s: %w", id, err)
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (m rules.Member, err error) {
		var key string
		var ordinal int
		var status lifecycle.MemberStatus
		var gone bool
		if err := row.Scan((*string)(&m.ID), &key, &ordinal, (*string)(&status), (*string)(&m.Failure), &m.NodeUp,
			&gone); err != nil {
			return m, err
		}
		m.Name, m.Order, m.Busy = fmt.Sprintf("%s %d", key, ordinal), order[key], status == lifecycle.MemberJoining
		switch {
		case m.NodeUp && m.Failure == lifecycle.FailureNodeLost: // it is back, with the member's files
			m.Failure = lifecycle.FailureNodeRestarted
		case gone && m.Failure != "" && r.settled():
			m.Failure = lifecycle.FailureNodeLost
		}
		for _, op := range ops {
			m = op.about(m)
		}
		return m, nil
	})
}

// about adds what the operation is to a member.
func (o tried) about(m rules.Member) rules.Member {
	var targets []ids.ID
	if json.Unmarshal(o.Targets, &targets) != nil || !slices.Contains(targets, m.ID) {
		return m
	}
	switch {
	case o.Ended == nil:
		m.Busy, m.Proving = true, o.Proving
	case o.Repair:
		m.Tries = append(m.Tries, rules.Try{Kind: o.Kind, Ended: *o.Ended,
			Succeeded: o.State == lifecycle.OperationSucceeded})
	}
	return m
}
