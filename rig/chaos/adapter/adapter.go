// Package adapter is the app of the crash suite: each operation does one thing to each member it acts
// on that must not be done twice, which is to append a line to a file in the member's sandbox. Before
// a member goes, its lines are collected in a ledger of the adapter's own.
package adapter

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Component is the only kind of member.
const Component = "unit"

// Manifest is the app's manifest.
//
//go:embed manifest.json
var Manifest []byte

// app is the adapter's state beside its journal.
type app struct{ ledger *Ledger }

// New returns the app with its ledger in a folder.
func New(dir string) (adapter.App, error) {
	described, err := adapter.FromManifest(Manifest, nil)
	if err != nil {
		return described, err
	}
	ledger, err := OpenLedger(dir)
	if err != nil {
		return described, err
	}
	a := &app{ledger: ledger}
	described.Operations = map[adapter.Kind]adapter.OperationFunc{
		adapter.InstanceCreate: a.join, adapter.MembersAdd: a.join, adapter.MemberRecover: a.join,
		adapter.MemberDrain: a.drain, adapter.MemberCordon: a.touch, adapter.MemberUncordon: a.touch,
		adapter.MemberLabel:     a.touch,
		adapter.InstanceUpgrade: a.touch, adapter.InstanceRollback: a.touch,
		adapter.MemberRemove: a.leave, adapter.MemberReplace: a.replace, adapter.InstanceDecommission: a.leave,
	}
	described.Observe = observe
	return described, nil
}

// targets are the members that the operation acts on: all of them when it names none.
func targets(run *adapter.Run) []adapter.Member {
	if len(run.Dispatch().Targets) == 0 {
		return run.Dispatch().Members
	}
	return run.Targets()
}

// effect does what must not be done twice. The agents and the kit promise that a step is one task. A line begins by
// ending what a full disk left of the one before, and ends with a mark, so that a torn one is known.
func effect(ctx context.Context, run *adapter.Run, member adapter.Member) error {
	line := run.Dispatch().OperationID + " " + string(run.Dispatch().Kind)
	script := fmt.Sprintf(
		`mkdir -p "$GPUAAS_MEMBER_ROOT/srv" && printf '\n%%s %%s .\n' "%s" "$(date +%%s%%3N)" >> "$GPUAAS_MEMBER_ROOT/srv/ledger"`, line)
	_, err := run.Do(ctx, member, "effect", adapter.RunCommand{Command: []string{"sh", "-c", script}})
	return err
}

func (a *app) join(ctx context.Context, run *adapter.Run) error {
	return run.Each(ctx, targets(run), func(ctx context.Context, member adapter.Member) error {
		if err := effect(ctx, run, member); err != nil {
			return err
		}
		return run.Member(member.ID, adapter.MemberActive, adapter.Healthy, nil)
	})
}

func (a *app) touch(ctx context.Context, run *adapter.Run) error {
	return run.Each(ctx, targets(run), func(ctx context.Context, member adapter.Member) error {
		return effect(ctx, run, member)
	})
}

func (a *app) drain(ctx context.Context, run *adapter.Run) error {
	return run.Each(ctx, targets(run), func(ctx context.Context, member adapter.Member) error {
		if err := run.Member(member.ID, adapter.MemberDraining, adapter.Healthy, nil); err != nil {
			return err
		}
		if err := effect(ctx, run, member); err != nil {
			return err
		}
		if err := run.Evidence(member.ID, "no work runs"); err != nil {
			return err
		}
		return run.Member(member.ID, adapter.MemberDrained, adapter.Healthy, nil)
	})
}

// leave collects the lines of the members, and then has their nodes remove the members. From then on it is too late to
// cancel: a member whose sandbox is deleted cannot be in service again.
func (a *app) leave(ctx context.Context, run *adapter.Run) error {
	if err := run.Each(ctx, targets(run), func(ctx context.Context, member adapter.Member) error {
		return a.collect(ctx, run, member)
	}); err != nil {
		return err
	}
	if err := run.Commit(); err != nil {
		return err
	}
	return run.Teardown(ctx, targets(run))
}

// collect reads what was written; a member that never came to be has nothing to read.
func (a *app) collect(ctx context.Context, run *adapter.Run, member adapter.Member) error {
	result, err := run.Try(ctx, member, "collect", adapter.RunCommand{Command: []string{"sh", "-c",
		`cat "$GPUAAS_MEMBER_ROOT/srv/ledger"`}})
	if adapter.IsUnreachable(err) {
		return nil
	}
	if err != nil || result.State != adapter.TaskSucceeded {
		return err
	}
	return a.ledger.Append(Entry{Operation: run.Dispatch().OperationID, Member: member.ID, Lines: lines(result)})
}

func lines(result adapter.TaskResult) []string {
	return strings.FieldsFunc(result.Stdout, func(r rune) bool { return r == '\n' })
}

func (a *app) replace(ctx context.Context, run *adapter.Run) error {
	var change adapter.ReplaceChange
	if err := run.Change(&change); err != nil {
		return err
	}
	for _, member := range run.Dispatch().Members {
		if member.ID != change.ReplacementID {
			continue
		}
		if err := effect(ctx, run, member); err != nil {
			return err
		}
		if err := run.Member(member.ID, adapter.MemberActive, adapter.Healthy, nil); err != nil {
			return err
		}
	}
	return a.leave(ctx, run)
}

// observe says of each member whether its ledger can be read.
func observe(ctx context.Context, call *adapter.Call) (adapter.Observation, error) {
	seen := adapter.Observation{Health: adapter.Healthy, Message: "every unit has its ledger"}
	for _, member := range call.Of(Component) {
		one := adapter.MemberObservation{ID: member.ID, Health: adapter.Healthy}
		result, err := call.Try(ctx, member, "look", adapter.RunCommand{Command: []string{"sh", "-c",
			`test -s "$GPUAAS_MEMBER_ROOT/srv/ledger"`}})
		if err != nil || result.State != adapter.TaskSucceeded {
			one.Health, one.Message, seen.Health = adapter.HealthUnknown, "its ledger cannot be read",
				adapter.HealthUnknown
		}
		seen.Members = append(seen.Members, one)
	}
	return seen, nil
}
