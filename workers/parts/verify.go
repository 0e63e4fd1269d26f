package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers/engine"
)

// Bounds of a probe task: the longest it may take, and what it gets beyond its own patience.
const (
	maxTaskSeconds = 3_600
	taskMargin     = 10
)

// Proved is the evidence of the verify step: each probe's task, of the last round.
type Proved struct {
	Rounds int          `json:"rounds"`
	Probes []ProbeProof `json:"probes"`
}

// ProbeProof is one probe that passed: its task on the member's node, and when it ended.
type ProbeProof struct {
	Task   ids.ID     `json:"task"`
	Member ids.ID     `json:"member"`
	Probe  string     `json:"probe"`
	Node   string     `json:"node"`
	At     *time.Time `json:"at"`
}

// Rounds is the state of a step that asks again until what it finds is good.
type Rounds struct {
	Round int `json:"round"`
	// Again is when the next round may begin; zero while one is under way.
	Again time.Time `json:"again,omitzero"`
	// Proved are the members that passed though others failed.
	Proved []ids.ID `json:"proved,omitempty"`
}

// Verify has the agents run the manifest's readiness probes, in rounds, until all pass. The tasks
// are new ones of this dispatch, so that nothing seen earlier counts, nor the adapter's word. It is
// about all members, or those of a subject, and about the manifest that the operation leads to.
func (w *Work) Verify(about Subject) engine.Step {
	return engine.Step{
		Name: "verify", Title: "checking readiness on the nodes", Percent: 95, Owner: operation.OwnerAdapter,
		DoubleGrace: true,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			var state Rounds
			if err := c.State(&state); err != nil {
				return engine.Result{}, err
			}
			if state.Round == 0 || (!state.Again.IsZero() && !c.Now().Before(state.Again)) {
				return w.probe(ctx, c, about, Rounds{Round: state.Round + 1})
			}
			if !state.Again.IsZero() {
				return engine.Wait(state.Again.Sub(c.Now()), "", readinessBlame), nil
			}
			return w.judge(ctx, c, about, state)
		},
	}
}

// maxPause bounds the pause between two rounds, which grows with their number.
const maxPause = 10 * time.Second

func (w *Work) pause(round int) time.Duration {
	return min(w.Pace.Round*time.Duration(round), max(maxPause, w.Pace.Round))
}

var readinessBlame = engine.FailureCause{Code: fault.ReadinessFailed, Owner: operation.OwnerAdapter}

func probePrefix(c *engine.Context, round int) string {
	return fmt.Sprintf("%sprobe %s %d %d ", keyPrefix, c.Op.ID, c.Op.DispatchAttempt, round)
}

// probe begins a round.
func (w *Work) probe(ctx context.Context, c *engine.Context, about Subject, state Rounds) (engine.Result, error) {
	s, err := w.snapshot(ctx, c)
	if err == nil {
		err = s.refresh(ctx, c.DB().Worker())
	}
	if err != nil {
		return engine.Result{}, err
	}
	orders, failure, err := w.probes(ctx, c, about, s, state.Round)
	switch {
	case err != nil:
		return engine.Result{}, err
	case failure != nil:
		return engine.Fail(*failure), nil
	case len(orders) == 0:
		return w.standing(ctx, c, about, Proved{Probes: []ProbeProof{}})
	}
	if err := c.SetState(state); err != nil {
		return engine.Result{}, err
	}
	err = c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
		return place(ctx, t, locked.Op, orders)
	})
	return engine.Wait(w.Pace.Task, "", readinessBlame), err
}

// probes are a round's tasks: each readiness probe on every member of its component that the step is
// about. A component whose members failed beyond its minimum cannot become ready, nor can members that
// must join and have failed.
func (w *Work) probes(ctx context.Context, c *engine.Context, about Subject, s *Snapshot, round int) ([]order,
	*operation.Failure, error) {
	private := operation.PrivateOf(c.Op.Operation)
	wanted := s.instance.ManifestID
	if private.To != nil {
		wanted = private.To.ManifestID
	}
	m, err := w.manifests.Of(ctx, c.DB().Worker(), wanted)
	if err != nil {
		return nil, nil, err
	}
	if about == nil {
		if failure := tooFew(m, s.Members); failure != nil {
			return nil, failure, nil
		}
	} else if failed := failedOf(s.Chosen(about(c.Op.Operation))); failed != nil && !private.KeepFailed {
		return nil, failed, nil
	}
	var orders []order
	for _, readiness := range m.Readiness {
		for _, member := range s.Members {
			if member.ComponentKey != readiness.ComponentKey || !probed(member) ||
				!about.of(c.Op.Operation, member.ID) {
				continue
			}
			orders = append(orders, order{
				member: member, kind: lifecycle.TaskProbe, spec: readiness.Probe,
				timeout: probeSeconds(readiness.Probe),
				key:     probePrefix(c, round) + readiness.Name,
			})
		}
	}
	return orders, nil, nil
}

// probed reports whether a member is one that must answer.
func probed(member *db.Member) bool {
	return member.Status != lifecycle.MemberFailed && member.Status != lifecycle.MemberRemoved && member.NodeID != nil
}

func tooFew(m *manifest.Manifest, members []*db.Member) *operation.Failure {
	for _, component := range m.Components {
		if joined, failed := count(members, component.Key); failed > 0 && joined < component.Min {
			return &operation.Failure{Code: string(fault.AdapterFailed), Owner: operation.OwnerAdapter, Retryable: true,
				Message: fmt.Sprintf("%d members of %s failed; at least %d are needed", failed, component.DisplayName,
					component.Min)}
		}
	}
	return nil
}

// failedOf is the failure of members that the adapter calls failed; nil when it calls none so.
func failedOf(members []*db.Member) *operation.Failure {
	var names []string
	for _, member := range members {
		if member.Status == lifecycle.MemberFailed {
			names = append(names, fmt.Sprintf("%s %d", member.ComponentKey, member.Ordinal))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &operation.Failure{Code: string(fault.AdapterFailed), Owner: operation.OwnerAdapter, Retryable: true,
		Message: fmt.Sprintf("the adapter reports as failed: %s", strings.Join(names, ", "))}
}

// standing ends the step once all probes pass. Members that must join and have failed, and are to be
// kept, fail the operation here: with the proof of the others.
func (w *Work) standing(ctx context.Context, c *engine.Context, about Subject, evidence Proved) (engine.Result, error) {
	if about == nil || !operation.PrivateOf(c.Op.Operation).KeepFailed {
		return engine.Done(evidence), nil
	}
	s, err := load(ctx, c.DB().Worker(), c.Op.Operation)
	if err != nil {
		return engine.Result{}, err
	}
	members := s.Chosen(about(c.Op.Operation))
	failure := failedOf(members)
	if failure == nil {
		return engine.Done(evidence), nil
	}
	var others []ids.ID
	for _, member := range members {
		if member.Status != lifecycle.MemberFailed {
			others = append(others, member.ID)
		}
	}
	return engine.Fail(*failure), c.SetState(Rounds{Proved: others})
}

func count(members []*db.Member, key string) (joined, failed int) {
	for _, member := range members {
		switch {
		case member.ComponentKey != key:
		case member.Status == lifecycle.MemberFailed:
			failed++
		default:
			joined++
		}
	}
	return joined, failed
}

func probeSeconds(probe manifest.Probe) int {
	return min(probe.Attempts*(probe.IntervalSeconds+probe.TimeoutSeconds)+taskMargin, maxTaskSeconds)
}

// judge looks at a round under way.
func (w *Work) judge(ctx context.Context, c *engine.Context, about Subject, state Rounds) (engine.Result, error) {
	prefix := probePrefix(c, state.Round)
	list, err := findings(ctx, c, prefix)
	if err != nil {
		return engine.Result{}, err
	}
	if len(list) == 0 { // the attempt was raised since
		return w.probe(ctx, c, about, Rounds{Round: state.Round + 1})
	}
	if pending, silent := open(list); silent != "" {
		return engine.Wait(w.Pace.Task, silent, engine.FailureCause{Code: fault.NodeUnreachable,
				Owner: operation.OwnerNode}),
			nil
	} else if pending {
		return engine.Wait(w.Pace.Task, "", awaited(list)), nil
	}
	evidence, worst := Proved{Rounds: state.Round}, ""
	for _, one := range list {
		name := one.Key[len(prefix):]
		evidence.Probes = append(evidence.Probes, ProbeProof{Task: one.ID, Member: one.MemberID, Probe: name,
			Node: one.Node, At: one.EndedAt})
		if detail, ok := one.passed(); !ok {
			worst = fmt.Sprintf("probe %s on %s does not pass: %s", name, one.Node, detail)
		}
	}
	if worst == "" {
		return w.standing(ctx, c, about, evidence)
	}
	pause := w.pause(state.Round)
	state.Again = c.Now().Add(pause)
	return engine.Wait(pause, worst, readinessBlame), c.SetState(state)
}

// awaited returns what a round waits for: the node that has not taken its probe, though it is online, else the probes.
func awaited(list []finding) engine.FailureCause {
	for _, one := range list {
		if one.State == lifecycle.TaskPending {
			return engine.FailureCause{Owner: operation.OwnerNode}
		}
	}
	return readinessBlame
}

// passed reads a probe's result; the detail is its last output.
func (f finding) passed() (detail string, ok bool) {
	var result struct {
		OK     bool   `json:"ok"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(f.Result, &result) != nil {
		result.OK = false
	}
	detail = result.Detail
	if detail == "" {
		detail = f.Message
	}
	if detail == "" {
		detail = "the task is " + lifecycle.Wire(f.State)
	}
	return detail, f.State == lifecycle.TaskSucceeded && result.OK
}
