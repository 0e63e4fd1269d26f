package parts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// sweep has the agents look for anything left of members, in rounds. What is still there after the
// adapter has ended, or gave up, is torn down by tasks of the platform, which the evidence states,
// and looked for again. Members that never touched their node are looked for all the same.
//
// A task that was requested earlier and that has not ended could bring a member back after the
// agent has looked, so a round begins when there is none, and proves nothing if one came meanwhile.
//
// A strict sweep ends only when everything is proved. A forced one needs only the nodes whose agents
// answer; one that undoes waits for the others as well, but not for ever. Both name what they could
// not prove.
type sweep struct {
	*Work
	about Subject
	undo  bool
}

// Residue sweeps the members that an operation takes away.
func (w *Work) Residue(about Subject) engine.Step {
	return engine.Step{
		Name: "residue", Title: "checking that nothing is left on the nodes", Percent: 95, Owner: operation.OwnerNode,
		OwnDeadline: true,
		Run:         sweep{Work: w, about: about}.run,
	}
}

// UndoMembers sweeps the members that an operation brought and that do not stay.
func (w *Work) UndoMembers(about Subject) engine.Step {
	return engine.Step{
		Name: "undo_members", Title: "tearing down what was begun", Owner: operation.OwnerNode,
		Run: sweep{Work: w, about: about, undo: true}.run,
	}
}

func (s sweep) run(ctx context.Context, c *engine.Context) (engine.Result, error) {
	var state Rounds
	if err := c.State(&state); err != nil {
		return engine.Result{}, err
	}
	switch {
	case s.undo && c.Op.DispatchAttempt == 0: // nobody was ever asked to put anything there
		return engine.Done(Cleaned{Residue: []ResidueProof{}}), nil
	case s.over(c):
		return s.giveUp(ctx, c, state)
	case state.Round == 0 || (!state.Again.IsZero() && !c.Now().Before(state.Again)):
		return s.look(ctx, c, Rounds{Round: state.Round + 1})
	case !state.Again.IsZero():
		return engine.Wait(state.Again.Sub(c.Now()), "", ResidueCause), nil
	}
	return s.weigh(ctx, c, state)
}

// forced reports whether the sweep needs only the nodes whose agents answer.
func (s sweep) forced(c *engine.Context) bool {
	_, forced := c.ForcedSince()
	return forced && !s.undo
}

// over reports whether a sweep that need not prove everything has tried for long enough.
func (s sweep) over(c *engine.Context) bool {
	if s.undo {
		return !c.Now().Before(c.UndoneBy())
	}
	since, forced := c.ForcedSince()
	return forced && !c.Now().Before(since.Add(c.Grace()).Add(c.Bound()))
}

func (s sweep) prefix(c *engine.Context, round int) string {
	return fmt.Sprintf("%s%s %s %d ", keyPrefix, c.Step(), c.Op.ID, round)
}

// members are those that live on a node, of the instance's as they are now.
func (s sweep) members(ctx context.Context, c *engine.Context) ([]*db.Member, *Snapshot, error) {
	snap, err := survey(ctx, c.DB().Worker(), c.Op.Operation)
	if err != nil {
		return nil, nil, err
	}
	var out []*db.Member
	for _, member := range snap.Members {
		if member.NodeID != nil && s.about.of(c.Op.Operation, member.ID) {
			out = append(out, member)
		}
	}
	return out, snap, nil
}

// look begins a round once no foreign task is under way on the members; it asks the agents to end
// those that are.
func (s sweep) look(ctx context.Context, c *engine.Context, state Rounds) (engine.Result, error) {
	members, _, err := s.members(ctx, c)
	if err != nil {
		return engine.Result{}, err
	}
	var busy foreign
	err = c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) (err error) {
		busy, err = cancelOthers(ctx, t, locked.Op, idsOf(members))
		return err
	})
	switch {
	case err != nil:
		return engine.Result{}, err
	case s.forced(c) && busy.heard == 0: // those on silent nodes count as unproved
	case len(busy.silent) > 0:
		return engine.Wait(s.Pace.Task, nameNodes(busy.silent), silentCause), nil
	case busy.open > 0:
		return engine.Wait(s.Pace.Task, fmt.Sprintf("waits for earlier node tasks to end: %d", busy.open),
			ResidueCause), nil
	}
	return s.search(ctx, c, state, lifecycle.TaskResidue, nil)
}

func idsOf(members []*db.Member) []ids.ID {
	out := make([]ids.ID, len(members))
	for i, member := range members {
		out[i] = member.ID
	}
	return out
}

// search orders tasks of a kind on the members named, or on all of them when none is.
func (s sweep) search(ctx context.Context, c *engine.Context, state Rounds, kind lifecycle.NodeTaskKind,
	named []ids.ID) (engine.Result, error) {
	members, _, err := s.members(ctx, c)
	if err != nil {
		return engine.Result{}, err
	}
	seconds := residueSeconds
	if kind == lifecycle.TaskTeardown {
		seconds = teardownSeconds
	}
	var orders []order
	for _, member := range members {
		if named == nil || slices.Contains(named, member.ID) {
			orders = append(orders, order{member: member, kind: kind, spec: struct{}{}, timeout: seconds,
				key: s.prefix(c, state.Round) + lifecycle.Wire(kind)})
		}
	}
	if len(orders) == 0 {
		return engine.Done(Cleaned{Residue: []ResidueProof{}}), nil
	}
	if err := c.SetState(state); err != nil {
		return engine.Result{}, err
	}
	err = c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
		return place(ctx, t, locked.Op, orders)
	})
	return engine.Wait(s.Pace.Task, "", ResidueCause), err
}

// weigh looks at a round under way: first its reports, then the teardowns that they called for.
func (s sweep) weigh(ctx context.Context, c *engine.Context, state Rounds) (engine.Result, error) {
	list, err := findings(ctx, c, s.prefix(c, state.Round))
	if err != nil {
		return engine.Result{}, err
	}
	if s.forced(c) {
		list = heard(list)
	}
	if pending, silent := open(list); silent != "" {
		return engine.Wait(s.Pace.Task, silent, silentCause), nil
	} else if pending {
		return engine.Wait(s.Pace.Task, "", ResidueCause), nil
	}
	dirty, worst := unclean(list)
	switch {
	case len(dirty) == 0:
		return s.proof(ctx, c, state.Round, list)
	case slices.ContainsFunc(list, func(f finding) bool { return f.Kind == lifecycle.TaskTeardown }):
		// What the teardown came to is what the next round finds.
		state.Again = c.Now().Add(s.pause(state.Round))
		if torn(list) {
			state.Again = c.Now()
		}
		return engine.Wait(state.Again.Sub(c.Now()), worst, ResidueCause), c.SetState(state)
	}
	c.Say(worst + "; the platform tears it down")
	return s.search(ctx, c, state, lifecycle.TaskTeardown, dirty)
}

// heard leaves out the open tasks of silent nodes.
func heard(list []finding) []finding {
	var out []finding
	for _, one := range list {
		if one.State.Terminal() || one.Online {
			out = append(out, one)
		}
	}
	return out
}

// proof is the evidence of a round that found nothing, unless a task came meanwhile.
func (s sweep) proof(ctx context.Context, c *engine.Context, round int, list []finding) (engine.Result, error) {
	evidence, err := s.evidence(ctx, c, round, list)
	if err != nil {
		return engine.Result{}, err
	}
	if later, err := LaterThan(ctx, c.DB().Worker(), c.Op.Operation, evidence.Residue); err != nil || later {
		return engine.Wait(0, "a node task was created while the agents were checking", ResidueCause),
			errors.Join(err, c.SetState(Rounds{Round: round, Again: c.Now()}))
	}
	return engine.Done(evidence), nil
}

// giveUp returns the evidence of a sweep whose time has passed.
func (s sweep) giveUp(ctx context.Context, c *engine.Context, state Rounds) (engine.Result, error) {
	list, err := findings(ctx, c, s.prefix(c, state.Round))
	if err != nil {
		return engine.Result{}, err
	}
	evidence, err := s.evidence(ctx, c, state.Round, list)
	return engine.Done(evidence), err
}

// evidence is what a round proves, with the teardowns of the rounds before, and what it does not.
func (s sweep) evidence(ctx context.Context, c *engine.Context, round int, list []finding) (Cleaned, error) {
	all, err := findings(ctx, c, fmt.Sprintf("%s%s %s ", keyPrefix, c.Step(), c.Op.ID))
	if err != nil {
		return Cleaned{}, err
	}
	members, snap, err := s.members(ctx, c)
	if err != nil {
		return Cleaned{}, err
	}
	out := Cleaned{Rounds: round, Residue: []ResidueProof{}}
	for _, member := range members {
		proof, reason := proofOf(member, list, all)
		if proof != nil {
			out.Residue = append(out.Residue, *proof)
			continue
		}
		node := snap.nodes[*member.NodeID]
		if node.Status != lifecycle.NodeOnline {
			reason = "the agent of its node does not report"
		}
		out.Unproved = append(out.Unproved, unproved{Member: member.ID, Node: node.Name, Reason: reason})
	}
	return out, nil
}

// proofOf returns a member's proof in a round, or the reason why it has none.
func proofOf(member *db.Member, list, all []finding) (*ResidueProof, string) {
	reason := "it was not checked"
	for _, one := range list {
		if one.MemberID != member.ID || one.Kind != lifecycle.TaskResidue {
			continue
		}
		report, ok := one.report()
		if !ok || !report.empty() {
			reason = "left: " + report.String()
			if !ok {
				reason = "the agent could not check: " + one.Message
			}
			continue
		}
		proof := ResidueProof{Member: one.MemberID, Node: one.Node, Task: one.ID, At: one.EndedAt, Report: report}
		for _, earlier := range all {
			if earlier.MemberID == one.MemberID && earlier.Kind == lifecycle.TaskTeardown {
				proof.Teardowns = append(proof.Teardowns, earlier.ID)
			}
		}
		return &proof, ""
	}
	return nil, reason
}
