package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/contract"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Engine shows and accepts changes.
type Engine struct {
	// DB is the database.
	DB *tx.DB
	// Calls reach adapters; nil leaves their verdicts unknown.
	Calls *contract.Calls
}

// errLooked ends a transaction that only looked, so that whatever it placed to find out is taken back.
var errLooked = errors.New("only looked")

// Plan shows what a change would do. It asks for the same keys as the change and writes nothing.
//
// Faults: NOT_FOUND, FORBIDDEN, INVALID_ARGUMENT. That the change would be refused is no fault: the
// plan's verdicts say so.
func (e *Engine) Plan(ctx context.Context, request *Request) (*Plan, error) {
	if err := request.check(); err != nil {
		return nil, err
	}
	c, said, err := e.look(ctx, request, "plan"+strings.ToUpper(request.Action[:1])+request.Action[1:])
	if err != nil {
		return nil, err
	}
	c.hear(said)
	return c.plan(said)
}

// look judges the change in a transaction that is taken back, and asks the adapter after it. The
// adapter is not asked, and nothing is answered, when the state refuses the change. A refusal for want
// of a key is audited under the action.
func (e *Engine) look(ctx context.Context, request *Request, action string) (*Change, *adapter.PlanAnswer, error) {
	c := newChange(request)
	correlation := ""
	err := e.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		correlation = t.Request.CorrelationID
		*c = *newChange(request)
		for _, step := range []func() error{
			func() error { return c.find(ctx, t, action) },
			func() error { return c.lock(ctx, t, false) },
			func() error { return c.load(ctx, t, false) },
			func() error { return c.judge(ctx, t) },
			func() (err error) {
				if action != request.Action { // only a plan shows it
					c.Impact, err = impact.Of(ctx, t, c.Instance.ID)
				}
				return err
			},
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return errLooked
	})
	if !errors.Is(err, errLooked) {
		return nil, nil, err
	}
	if c.verdicts[0].outcome == lifecycle.VerdictRefused {
		return c, nil, nil
	}
	said, err := e.ask(ctx, c, correlation)
	return c, said, err
}

// newChange is a change before anything of it is known, with the ids that it would need.
func newChange(request *Request) *Change {
	c := &Change{Request: request, Rule: ruleOf(request.Kind), Made: Made{Operation: ids.New(ids.Operation)}}
	count := 0
	switch request.Kind {
	case lifecycle.MembersAdd:
		count = request.Count
	case lifecycle.MemberReplace:
		count = 1
	}
	for range count {
		c.Made.Members = append(c.Made.Members, ids.New(ids.Member))
	}
	return c
}

// ask asks the adapter what it thinks of the change. Whatever keeps it from answering is an unknown
// verdict.
func (e *Engine) ask(ctx context.Context, c *Change, correlation string) (*adapter.PlanAnswer, error) {
	if e.Calls == nil || c.Adapter == nil {
		return &adapter.PlanAnswer{Verdict: adapter.VerdictUnknown, Reasons: []adapter.PlanReason{
			{Code: string(fault.AdapterUnavailable), Message: fmt.Sprintf("no adapter %q is registered that could be asked", c.Instance.RuntimeBackend)}}}, nil
	}
	call, err := c.call(correlation)
	if err != nil {
		return nil, err
	}
	return e.Calls.Plan(ctx, *call)
}

// call is the question to the adapter: the instance as it would be after the change.
func (c *Change) call(correlation string) (*contract.Plan, error) {
	after, err := c.instanceAfter()
	if err != nil {
		return nil, err
	}
	change, err := json.Marshal(c.contract(true))
	if err != nil {
		return nil, fmt.Errorf("encode the change: %w", err)
	}
	call := &contract.Plan{Kind: c.Kind, Change: change, Force: c.Force, Subject: contract.Subject{
		Adapter: c.Adapter, Instance: after, Manifest: c.Manifest, Members: c.Members, Nodes: c.Nodes, Allocations: c.Allocations,
		CorrelationID: correlation,
	}}
	if c.next != nil {
		call.Manifest = c.next
	}
	if c.MemberID != "" {
		call.Targets = []ids.ID{c.MemberID}
	}
	return call, nil
}

// plan is the judged change as it is shown.
func (c *Change) plan(said *adapter.PlanAnswer) (*Plan, error) {
	hash, err := c.hash(said)
	if err != nil {
		return nil, err
	}
	shown, err := c.shown()
	if err != nil {
		return nil, err
	}
	out := &Plan{
		Hash: hash, Kind: c.Kind, InstanceID: c.Instance.ID, Allowed: c.refused() == nil, Members: c.planned(), WorkLost: []*operation.Work{},
		Verdicts: []*Verdict{}, Reversible: c.Rule.Reversible, Reversal: c.Rule.Reversal, SupersedesIDs: []ids.ID{}, Change: shown,
		Impact: c.Impact,
	}
	for _, v := range c.verdicts {
		out.Verdicts = append(out.Verdicts, v.view())
	}
	for _, op := range c.superseded {
		out.SupersedesIDs = append(out.SupersedesIDs, op.ID)
	}
	out.word(said)
	return out, nil
}

// word adds what the adapter says of lost work and of the way back.
func (p *Plan) word(said *adapter.PlanAnswer) {
	if said == nil {
		return
	}
	p.WorkLost = operation.WorkOf(said.WorkLost)
	if said.Verdict != adapter.VerdictUnknown || said.WorkTotal > 0 {
		p.WorkLostTotal = &said.WorkTotal
	}
	if p.Reversible && said.Verdict != adapter.VerdictUnknown && !said.Reversible {
		p.Reversible, p.Reversal = false, "the adapter says that it cannot be taken back"
	}
}

// shown is what else would change: the contract's change and the members asked for after it.
func (c *Change) shown() (json.RawMessage, error) {
	encoded, err := json.Marshal(c.contract(true))
	if err != nil {
		return nil, fmt.Errorf("encode the change: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("encode the change: %w", err)
	}
	if _, more := c.More(); more != 0 {
		fields["desired"] = c.wantedAfter()
	}
	return json.Marshal(fields)
}

// planned are the members that it touches, at most MaxMembers.
func (c *Change) planned() []*PlannedMember {
	list := []*PlannedMember{}
	for _, member := range c.Members {
		if c.Kind == lifecycle.MembersAdd || (c.MemberID != "" && member.ID != c.MemberID) {
			continue
		}
		list = append(list, &PlannedMember{MemberID: &member.ID, ComponentKey: member.ComponentKey, Action: c.Rule.Touches,
			AllocationID: member.AllocationID, Reachable: c.reachable(member.NodeID)})
	}
	for _, seat := range c.Seats {
		coming := &PlannedMember{ComponentKey: seat.ComponentKey, Action: lifecycle.PlanAdd, Reachable: c.reachable(seat.Allocation.NodeID)}
		if c.Intent == nil {
			coming.AllocationID = &seat.Allocation.ID
		}
		list = append(list, coming)
	}
	return list[:min(len(list), MaxMembers)]
}
