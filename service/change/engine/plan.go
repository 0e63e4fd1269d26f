package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/contract"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/kit/tariff"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// errPreviewed ends the transaction of a preview, so that what it placed is rolled back.
var errPreviewed = errors.New("only a preview")

// previewed is a change that was judged and not carried out.
type previewed struct {
	*verdict.Verdicts
	said   answers
	asker  authz.Ref
	impact *impact.Impact // nil unless a plan shows it
}

// answers are the adapter's about a change; none when the state refuses it, so that the adapter was not called.
type answers struct {
	now *adapter.PlanAnswer
	// atDeadline is about the same change by force; nil unless force was chosen for the deadline.
	atDeadline *adapter.PlanAnswer
}

// planned returns what is kept with the operation; nil for a change without a plan.
func (a *answers) planned() *operation.Planned {
	if a == nil || a.now == nil {
		return nil
	}
	return &operation.Planned{Now: *operation.PlannedOf(a.now), AtDeadline: operation.PlannedOf(a.atDeadline)}
}

// asking is who plans the change, and the correlation id of the request.
type asking struct {
	correlation string
	who         authz.Ref
}

// Plan shows what a change would do. It requires the same keys as the change and writes nothing.
//
// Faults: NOT_FOUND, FORBIDDEN, INVALID_ARGUMENT. That the change would be refused is in the plan's verdicts, not a
// fault.
func (e *Engine) Plan(ctx context.Context, request *change.Request) (*change.Plan, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	action := "plan" + strings.ToUpper(request.Action[:1]) + request.Action[1:]
	request, err := e.chosen(ctx, request, action)
	if err != nil {
		return nil, err
	}
	judged, err := e.preview(ctx, request, action)
	if err != nil {
		return nil, err
	}
	judged.ApplyAdapterAnswer(judged.said.now)
	return judged.plan()
}

// preview evaluates the change in a transaction that is rolled back, and calls the adapter after it, unless the state
// refuses the change. A refusal for want of a key is audited under the action.
func (e *Engine) preview(ctx context.Context, request *change.Request, action string) (*previewed, error) {
	out, correlation := &previewed{}, ""
	err := e.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		correlation, out.asker = t.Request.CorrelationID, t.Actor.Ref()
		if out.Verdicts, err = judge(ctx, t, request, action); err != nil {
			return err
		}
		if action != request.Action &&
			request.Launch == nil { // only a plan shows it, and only an instance that exists has one
			if out.impact, err = impact.Of(ctx, t, out.Instance.ID); err != nil {
				return err
			}
		}
		return errPreviewed
	})
	if !errors.Is(err, errPreviewed) {
		return nil, err
	}
	if out.List[0].Outcome == lifecycle.VerdictRefused || request.Launch != nil {
		return out, nil
	}
	out.said, err = e.askBoth(ctx, out.Verdicts, asking{correlation, out.asker})
	return out, err
}

// look evaluates the change in a transaction that is rolled back, and returns who asks the adapter about it.
func (e *Engine) look(ctx context.Context, request *change.Request, action string) (v *verdict.Verdicts, by asking,
	err error) {
	err = e.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		by = asking{t.Request.CorrelationID, t.Actor.Ref()}
		if v, err = judge(ctx, t, request, action); err != nil {
			return err
		}
		return errPreviewed
	})
	if !errors.Is(err, errPreviewed) {
		return nil, by, err
	}
	return v, by, nil
}

// judge leads a request to its verdicts without locking rows.
func judge(ctx context.Context, t *tx.Tx, request *change.Request, action string) (*verdict.Verdicts, error) {
	subject, err := change.Locate(ctx, t, request, action)
	if err != nil {
		return nil, err
	}
	read, err := subject.Lock(ctx, t, false)
	if err != nil {
		return nil, err
	}
	facts, err := read.Load(ctx, t)
	if err != nil {
		return nil, err
	}
	return verdict.Evaluate(ctx, t, facts, subject.Mint())
}

// askBoth calls the adapter about the change as it begins, and, where force was chosen for the deadline, as force would
// end it. Both calls go out at once, since a person waits.
func (e *Engine) askBoth(ctx context.Context, v *verdict.Verdicts, by asking) (out answers, err error) {
	if v.Force || v.Conditions.OnDeadline != lifecycle.DeadlineForce {
		out.now, err = e.ask(ctx, v, by, v.Force)
		return out, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { out.now, err = e.ask(ctx, v, by, false); return err })
	group.Go(func() (err error) { out.atDeadline, err = e.ask(ctx, v, by, true); return err })
	err = group.Wait() // before out is read
	return out, err
}

// ask calls the adapter about the change. Whatever keeps it from answering is an unknown verdict.
func (e *Engine) ask(ctx context.Context, v *verdict.Verdicts, by asking, force bool) (*adapter.PlanAnswer, error) {
	if e.Calls == nil || v.Adapter == nil {
		message := fmt.Sprintf("adapter %q is not registered, so it cannot judge the plan", v.Instance.RuntimeBackend)
		return &adapter.PlanAnswer{Verdict: adapter.VerdictUnknown, Reasons: []adapter.PlanReason{
			{Code: string(fault.AdapterUnavailable), Message: message},
		}}, nil
	}
	call, err := question(v, by, force)
	if err != nil {
		return nil, err
	}
	return e.Calls.Plan(ctx, *call)
}

// question returns the call to the adapter: about the instance as it would be after the change.
func question(v *verdict.Verdicts, by asking, force bool) (*contract.Plan, error) {
	after, err := instanceAfter(v)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(contractChange(v, true))
	if err != nil {
		return nil, fmt.Errorf("encode the change: %w", err)
	}
	call := &contract.Plan{Kind: v.Kind, Change: encoded, Force: force, Subject: contract.Subject{
		Adapter: v.Adapter, Instance: after, Manifest: v.Manifest, Members: v.Members, Nodes: v.Nodes,
		Allocations: v.Allocations, CorrelationID: by.correlation, Requester: by.who,
	}}
	if v.Next != nil {
		call.Manifest = v.Next
	}
	if v.Kind != lifecycle.MembersAdd { // those do not exist yet
		call.Targets = v.Targets()
	}
	return call, nil
}

// plan returns the judged change as it is shown.
func (p *previewed) plan() (*change.Plan, error) {
	hash, err := hashOf(p.Verdicts, &p.said)
	if err != nil {
		return nil, err
	}
	shown, err := p.shown()
	if err != nil {
		return nil, err
	}
	out := &change.Plan{
		Hash: hash, Kind: p.Kind, InstanceID: p.Instance.ID, Allowed: p.Refused() == nil,
		Members:  plannedMembers(p.Verdicts),
		WorkLost: []*operation.Work{}, Verdicts: []*change.Verdict{}, SupersedesIDs: []ids.ID{},
		Reversible: p.Rule.Reversible, Reversal: p.Rule.Reversal, Change: shown, Impact: p.impact,
		Force: p.Force, KeepFailed: p.Conditions.KeepFailed, DeadlineSeconds: p.Conditions.DeadlineSeconds,
		OnDeadline: p.Conditions.Outcome(), WorkAtRisk: []*operation.Work{}, Cost: p.Cost,
	}
	if p.To != nil {
		out.Version = p.To.Version
	}
	for _, one := range p.answers() {
		out.Verdicts = append(out.Verdicts, one.View())
	}
	for _, op := range p.Superseded {
		out.SupersedesIDs = append(out.SupersedesIDs, op.ID)
	}
	applyAdapterAnswers(out, &p.said)
	return out, nil
}

// shown returns what else would change; of a launch the members of each component.
func (p *previewed) shown() (json.RawMessage, error) {
	if p.Launch != nil {
		return json.Marshal(map[string]any{"components": p.Counts})
	}
	return shownChange(p.Verdicts)
}

// answers returns a verdict for each source. A launch asks some of them several times: the last answer is the source's.
func (p *previewed) answers() (list []verdict.Verdict) {
	for _, one := range p.List {
		at := slices.IndexFunc(list, func(before verdict.Verdict) bool { return before.Source == one.Source })
		if at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
		list = append(list, one)
	}
	return list
}

// applyAdapterAnswers adds what the adapter reports of lost work and of the way back.
func applyAdapterAnswers(plan *change.Plan, said *answers) {
	answer := said.now
	if answer == nil {
		return
	}
	plan.WorkLost, plan.WorkLostTotal = operation.WorkOf(plan.InstanceID, answer.WorkLost), totalOf(answer)
	if said.atDeadline != nil {
		plan.WorkAtRisk, plan.WorkAtRiskTotal = operation.WorkOf(plan.InstanceID, said.atDeadline.WorkLost),
			totalOf(said.atDeadline)
	}
	if plan.Reversible && answer.Verdict != adapter.VerdictUnknown && !answer.Reversible {
		plan.Reversible, plan.Reversal = false, "the adapter reports that it cannot be undone"
	}
}

// totalOf returns how much work would be lost; nil when the adapter does not know.
func totalOf(answer *adapter.PlanAnswer) *int {
	if answer.Verdict == adapter.VerdictUnknown && answer.WorkTotal == 0 {
		return nil
	}
	return &answer.WorkTotal
}

// plannedMembers returns the members that the change touches, at most MaxMembers.
func plannedMembers(v *verdict.Verdicts) []*change.PlannedMember {
	list, targets := []*change.PlannedMember{}, v.Targets()
	for _, member := range v.Members {
		if v.Kind.Effects().Scope == lifecycle.ScopeMember && !slices.Contains(targets, member.ID) {
			continue
		}
		list = append(list, &change.PlannedMember{
			MemberID: &member.ID, ComponentKey: member.ComponentKey, Action: v.Rule.Touches,
			AllocationID: member.AllocationID, Reachable: v.Reachable(member.NodeID),
			Profile: member.Profile, IsolationClass: member.IsolationClass,
		})
	}
	for _, seat := range v.Seats {
		walls := v.WallsOf(seat)
		coming := &change.PlannedMember{
			ComponentKey: seat.ComponentKey, Action: lifecycle.PlanAdd, Profile: walls.Profile,
			IsolationClass: walls.Class,
			Volumes:        volume.Of(v.Bound, seat.ComponentKey),
		}
		coming.Reachable = v.Reachable(seat.Allocation.NodeID)
		if !slices.Contains(v.Created, seat.Allocation) {
			coming.AllocationID = &seat.Allocation.ID
		} else {
			coming.Capacity = plannedCapacity(v, seat.Allocation)
		}
		list = append(list, coming)
	}
	return list[:min(len(list), change.MaxMembers)]
}

// plannedCapacity returns what was chosen to place for a member.
func plannedCapacity(v *verdict.Verdicts, row *db.Allocation) *change.PlannedCapacity {
	return &change.PlannedCapacity{
		Shape: row.Shape, GPUCount: row.GpuCount, SKU: row.Sku, Region: row.Region,
		Hourly: v.Cost.Of(tariff.Kind(row.Shape, row.GpuCount, row.Sku, row.Region)),
	}
}
