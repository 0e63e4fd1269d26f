package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// The longest that looking for residue, and tearing down, may take on a node, in seconds.
const (
	residueSeconds  = 60
	teardownSeconds = 180
)

// left is what an agent finds of a member on its node.
type left struct {
	Sandbox   bool `json:"sandbox"`
	Processes []struct {
		PID     int    `json:"pid"`
		Command string `json:"command"`
	} `json:"processes"`
	Mounts []string `json:"mounts"`
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	Names  []string `json:"names"`
}

func (l left) empty() bool {
	return !l.Sandbox && len(l.Processes) == 0 && len(l.Mounts) == 0 && l.Files == 0
}

// String says in a few words what is left.
func (l left) String() string {
	text := fmt.Sprintf("%d processes, %d mounts, %d files", len(l.Processes), len(l.Mounts), l.Files)
	if len(l.Processes) > 0 {
		text += fmt.Sprintf(" (process %d: %.80s)", l.Processes[0].PID, l.Processes[0].Command)
	} else if len(l.Names) > 0 {
		text += fmt.Sprintf(" (%.120s)", l.Names[0])
	}
	return text
}

// cleaned is the evidence of the residue step: for each member, the agent's report that found nothing.
type cleaned struct {
	Rounds  int            `json:"rounds"`
	Residue []residueProof `json:"residue"`
}

type residueProof struct {
	Member ids.ID     `json:"member"`
	Node   string     `json:"node"`
	Task   ids.ID     `json:"task"`
	At     *time.Time `json:"at"`
	Report left       `json:"report"`
	// Teardowns are the platform's own tasks that had to remove what the adapter had left.
	Teardowns []ids.ID `json:"teardowns,omitempty"`
}

// residue has the agents look for anything left of each member, in rounds. What is still there after
// the adapter said that it is done is torn down by the platform's own hand, which the evidence says,
// and looked at again. Members that never touched their node are looked for all the same.
//
// A task that somebody asked for earlier and that has not ended could bring the member back after the
// agent has looked, so a round begins when there is none, and proves nothing if one came meanwhile.
func (w *work) residue() engine.Step {
	return engine.Step{
		Name: "residue", Title: "checking that nothing is left on the nodes", Percent: 95, Owner: operation.OwnerNode,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			var state rounds
			if err := c.State(&state); err != nil {
				return engine.Result{}, err
			}
			if state.Round == 0 || (!state.Again.IsZero() && !c.Now().Before(state.Again)) {
				return w.look(ctx, c, rounds{Round: state.Round + 1})
			}
			if !state.Again.IsZero() {
				return engine.Wait(state.Again.Sub(c.Now()), "", residueBlame), nil
			}
			return w.weigh(ctx, c, state)
		},
	}
}

var residueBlame = engine.Blame{Code: fault.ResidueLeft, Owner: operation.OwnerNode}

func residuePrefix(c *engine.Context, round int) string {
	return fmt.Sprintf("%sresidue %s %d ", keyPrefix, c.Op.ID, round)
}

// look begins a round once no task of another's is under way on the members; those that are, are asked
// to end.
func (w *work) look(ctx context.Context, c *engine.Context, state rounds) (engine.Result, error) {
	silent, open := "", 0
	err := c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) (err error) {
		silent, open, err = cancelOthers(ctx, t, locked.Op)
		return err
	})
	switch {
	case err != nil:
		return engine.Result{}, err
	case silent != "":
		return engine.Wait(w.Pace.Task, silent, engine.Blame{Code: fault.NodeUnreachable, Owner: operation.OwnerNode}), nil
	case open > 0:
		return engine.Wait(w.Pace.Task, fmt.Sprintf("waits for earlier node tasks to end: %d", open), residueBlame), nil
	}
	return w.search(ctx, c, state, lifecycle.TaskResidue, nil)
}

// search asks for tasks of a kind on the members named, or on all of them when none is.
func (w *work) search(ctx context.Context, c *engine.Context, state rounds, kind lifecycle.NodeTaskKind, named []ids.ID) (engine.Result, error) {
	s, err := load(ctx, c.DB().Worker(), c.Op.Operation)
	if err != nil {
		return engine.Result{}, err
	}
	seconds := residueSeconds
	if kind == lifecycle.TaskTeardown {
		seconds = teardownSeconds
	}
	var orders []order
	for _, member := range s.members {
		if member.NodeID != nil && (named == nil || slices.Contains(named, member.ID)) {
			orders = append(orders, order{member: member, kind: kind, spec: struct{}{}, timeout: seconds,
				key: residuePrefix(c, state.Round) + lifecycle.Wire(kind)})
		}
	}
	if len(orders) == 0 {
		return engine.Done(cleaned{Residue: []residueProof{}}), nil
	}
	if err := c.SetState(state); err != nil {
		return engine.Result{}, err
	}
	err = c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
		return place(ctx, t, locked.Op, orders)
	})
	return engine.Wait(w.Pace.Task, "", residueBlame), err
}

// weigh looks at a round under way: first its reports, then the teardowns that they called for.
func (w *work) weigh(ctx context.Context, c *engine.Context, state rounds) (engine.Result, error) {
	list, err := findings(ctx, c, residuePrefix(c, state.Round))
	if err != nil {
		return engine.Result{}, err
	}
	if pending, silent := open(list); silent != "" {
		return engine.Wait(w.Pace.Task, silent, engine.Blame{Code: fault.NodeUnreachable, Owner: operation.OwnerNode}), nil
	} else if pending {
		return engine.Wait(w.Pace.Task, "", residueBlame), nil
	}
	dirty, worst := unclean(list)
	switch {
	case len(dirty) == 0:
		if later, err := laterThan(ctx, c, list); err != nil || later {
			return engine.Wait(0, "a node task came while the agents looked", residueBlame), errors.Join(err, c.SetState(rounds{Round: state.Round, Again: c.Now()}))
		}
		return w.proof(ctx, c, state.Round, list)
	case slices.ContainsFunc(list, func(f finding) bool { return f.Kind == lifecycle.TaskTeardown }):
		// What the teardown came to is what the next round finds.
		state.Again = c.Now().Add(w.pause(state.Round))
		if torn(list) {
			state.Again = c.Now()
		}
		return engine.Wait(state.Again.Sub(c.Now()), worst, residueBlame), c.SetState(state)
	}
	c.Say(worst + "; the platform tears it down")
	return w.search(ctx, c, state, lifecycle.TaskTeardown, dirty)
}

// unclean are the members of which the round's reports found something, or found nothing out.
func unclean(list []finding) (dirty []ids.ID, worst string) {
	for _, one := range list {
		if one.Kind != lifecycle.TaskResidue {
			continue
		}
		report, ok := one.report()
		if ok && report.empty() {
			continue
		}
		dirty = append(dirty, one.MemberID)
		worst = fmt.Sprintf("on node %s is left: %s", one.Node, report)
		if !ok {
			worst = fmt.Sprintf("node %s could not look for residue: %s", one.Node, one.Message)
		}
	}
	return dirty, worst
}

// torn says that every teardown succeeded.
func torn(list []finding) bool {
	for _, one := range list {
		if one.Kind == lifecycle.TaskTeardown && one.State != lifecycle.TaskSucceeded {
			return false
		}
	}
	return true
}

func (f finding) report() (left, bool) {
	var result struct {
		Residue *left `json:"residue"`
	}
	if f.State != lifecycle.TaskSucceeded || json.Unmarshal(f.Result, &result) != nil || result.Residue == nil {
		return left{}, false
	}
	return *result.Residue, true
}

// proof is the evidence of a round that found nothing, with the teardowns of the rounds before.
func (w *work) proof(ctx context.Context, c *engine.Context, round int, list []finding) (engine.Result, error) {
	all, err := findings(ctx, c, fmt.Sprintf("%sresidue %s ", keyPrefix, c.Op.ID))
	if err != nil {
		return engine.Result{}, err
	}
	evidence := cleaned{Rounds: round}
	for _, one := range list {
		report, _ := one.report()
		proof := residueProof{Member: one.MemberID, Node: one.Node, Task: one.ID, At: one.EndedAt, Report: report}
		for _, earlier := range all {
			if earlier.MemberID == one.MemberID && earlier.Kind == lifecycle.TaskTeardown {
				proof.Teardowns = append(proof.Teardowns, earlier.ID)
			}
		}
		evidence.Residue = append(evidence.Residue, proof)
	}
	return engine.Done(evidence), nil
}
