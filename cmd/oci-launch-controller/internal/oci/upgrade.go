package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// errUntouched says that a member was not changed yet.
var errUntouched = errors.New("the member was not changed")

// change brings every member to the release of another version, one at a time in the order of their numbers: the first
// shows whether it is well before any other is touched. Until all are changed the old containers stay, stopped, so that
// the way back needs nothing that is not on the node.
func change(ctx context.Context, run *adapter.Run) error {
	members := settled(run.Of(component))
	if err := answering(ctx, run, members); err != nil {
		return err
	}
	found, changed := make(map[string]string, len(members)), make([]*release, len(members))
	for i, member := range members {
		run.Progress("changing "+name(member), 10+80*i/len(members),
			fmt.Sprintf("changing %s, %d of %d", name(member), i+1, len(members)))
		r, err := changeOne(ctx, node{run: run, member: member})
		if err != nil {
			return restore(ctx, run, members[:i+1], err)
		}
		found[name(member)], changed[i] = r.image.Digest, r
	}
	for i, member := range members { // what is said of members before may yet be taken back
		if err := run.Member(member.ID, standing(member), healthOf(member),
			(node{run: run, member: member}).detail(ctx, changed[i])); err != nil {
			return err
		}
	}
	if err := tidyUp(ctx, run, members); err != nil {
		return err
	}
	return run.Evidence("images", found)
}

// answering refuses to begin a change that would stop half way at a node that is away, and keeps which release each
// member has.
func answering(ctx context.Context, run *adapter.Run, members []adapter.Member) error {
	run.Progress("checking the nodes", 5, fmt.Sprintf("checking the nodes of %d members", len(members)))
	return run.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		bounded, cancel := context.WithTimeout(ctx, quick+askTime)
		defer cancel()
		if member.Node.IsReachable() {
			result, err := run.Look(bounded, member, "asked", adapter.InspectProcess{Name: process},
				adapter.Within(askTime))
			if err == nil && result.State == adapter.TaskSucceeded {
				return nil
			}
		}
		return adapter.Fail(adapter.CodeNodeUnreachable, adapter.OwnerNode, true,
			"the node of %s does not answer; nothing was changed", name(member))
	})
}

// changeOne starts the new release beside the old one's container. A drained member gets it without being started.
func changeOne(ctx context.Context, n node) (*release, error) {
	r, err := n.install(ctx)
	if err != nil {
		return nil, err
	}
	if n.member.Status == string(adapter.MemberDrained) {
		if _, err := n.do(ctx, "use", verb("use", r.Name), adapter.Within(quick)); err != nil {
			return nil, err
		}
		return r, nil
	}
	// What was used is kept first: begin forgets it when the new one is well.
	before, ok := n.previous(ctx)
	if _, err := n.run.Once("before."+n.member.ID, func() (string, error) {
		if !ok {
			return "", adapter.Fail("NOTHING_TO_START", adapter.OwnerNode, true,
				"%s has no container to go back to; recover it first", name(n.member))
		}
		return encode(before), nil
	}); err != nil {
		return nil, err
	}
	if err := n.begin(ctx, r.start, r.Name, r.profile.Health); err != nil {
		return nil, err
	}
	return r, n.run.Member(n.member.ID, adapter.MemberActive, adapter.Healthy, nil)
}

// standing returns a member's status after a change of version: a drained one stays drained.
func standing(member adapter.Member) adapter.MemberStatus {
	if member.Status == string(adapter.MemberDrained) {
		return adapter.MemberDrained
	}
	return adapter.MemberActive
}

func healthOf(member adapter.Member) adapter.Health {
	if standing(member) == adapter.MemberDrained {
		return adapter.HealthUnknown
	}
	return adapter.Healthy
}

// restore starts the old containers again, the last one first, and returns the reason.
func restore(ctx context.Context, run *adapter.Run, members []adapter.Member, reason error) error {
	clean, cancel := run.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return reason // this is not the end: the operation goes on
	}
	for _, member := range slices.Backward(members) {
		run.Progress("changing back", 10, "changing "+name(member)+" back")
		if err := restoreOne(clean, node{run, member, "back."}); err != nil {
			run.Log().Warn("member not changed back", "member", member.ID, "error", err)
			_ = run.Member(member.ID, adapter.MemberFailed, adapter.HealthUnknown, nil)
		}
	}
	return reason
}

func restoreOne(ctx context.Context, n node) error {
	kept, err := n.run.Once("before."+n.member.ID, func() (string, error) { return "", errUntouched })
	if err != nil { // it still runs what it ran
		return nil
	}
	var start adapter.StartProcess
	if err := json.Unmarshal([]byte(kept), &start); err != nil {
		return fmt.Errorf("read what it ran: %w", err)
	}
	if err := n.begin(ctx, start, releaseOf(start), nil); err != nil {
		return err
	}
	if _, err := n.do(ctx, "keep", verb("keep", releaseOf(start)), adapter.Within(time.Minute)); err != nil {
		return err
	}
	return n.run.Member(n.member.ID, adapter.MemberActive, adapter.Healthy, nil)
}

// tidyUp deletes the old releases. One that stays does not fail a change that has happened.
func tidyUp(ctx context.Context, run *adapter.Run, members []adapter.Member) error {
	run.Progress("tidying up", 95, "deleting the old releases")
	return run.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		n := node{run: run, member: member}
		start, ok := n.previous(ctx)
		if !ok {
			return context.Cause(ctx)
		}
		if _, err := run.Try(ctx, member, "keep", verb("keep", releaseOf(start)),
			adapter.Within(time.Minute)); err != nil {
			run.Log().Warn("old release not deleted", "member", member.ID, "error", err)
		}
		return context.Cause(ctx)
	})
}
