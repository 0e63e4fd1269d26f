package oci

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func create(ctx context.Context, run *adapter.Run) error {
	members := run.Of(component)
	run.Progress("launching", 10, fmt.Sprintf("launching %d containers", len(members)))
	if err := launch(ctx, run, members); err != nil {
		return err
	}
	run.Progress("running", 90, "every container is healthy")
	return run.Evidence("replicas", len(members))
}

// launch brings members to the instance's release, whatever they ran before. Each is active once it is well.
func launch(ctx context.Context, run *adapter.Run, members []adapter.Member) error {
	return run.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		if err := run.Member(member.ID, adapter.MemberJoining, adapter.HealthUnknown, nil); err != nil {
			return err
		}
		n := node{run: run, member: member}
		r, err := n.install(ctx)
		if err != nil {
			return err
		}
		if err := n.begin(ctx, r.start, r.Name, r.profile.Health); err != nil {
			return err
		}
		if _, err := n.do(ctx, "keep", verb("keep", r.Name), adapter.Within(time.Minute)); err != nil {
			return err
		}
		return run.Member(member.ID, adapter.MemberActive, adapter.Healthy, n.detail(ctx, r))
	})
}

// add launches new members. When it fails or is canceled their nodes are the platform's to clean.
func add(ctx context.Context, run *adapter.Run) error {
	members := run.Targets()
	run.Progress("launching", 10, "launching "+names(members))
	if err := launch(ctx, run, members); err != nil {
		return takeBack(ctx, run, members, err)
	}
	return run.Evidence("added", len(members))
}

// takeBack stops what was launched for nothing, and returns the reason.
func takeBack(ctx context.Context, run *adapter.Run, members []adapter.Member, reason error) error {
	clean, cancel := run.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return reason // this is not the end: the operation goes on
	}
	err := empty(clean, run, members, "back.")
	for _, member := range members {
		err = errors.Join(err, run.Member(member.ID, adapter.MemberFailed, adapter.HealthUnknown, nil))
	}
	if err != nil {
		run.Log().Warn("not everything was undone", "error", err)
	}
	return reason
}

// empty stops and deletes containers and their limits. It goes on where a node does not do it: the teardown that
// follows ends everything, and is proved.
func empty(ctx context.Context, run *adapter.Run, members []adapter.Member, prefix string) error {
	return run.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		if !run.Reaches(member) {
			return nil
		}
		for _, step := range []struct {
			name string
			task adapter.NodeTask
		}{{"stop", adapter.StopProcess{Name: process}}, {"clean", tidy("clean")}} {
			bounded, cancel := context.WithTimeout(ctx, stopTime+quick)
			result, err := run.Try(bounded, member, prefix+step.name, step.task, adapter.Within(stopTime))
			cancel()
			if err != nil || result.State != adapter.TaskSucceeded {
				run.Log().Info("container not stopped", "member", member.ID, "step", step.name, "state",
					result.State, "message", result.Message, "error", err)
			}
		}
		return context.Cause(ctx)
	})
}

// halt stops containers, each as its image wants, and leaves them where they are.
func halt(ctx context.Context, run *adapter.Run, members []adapter.Member) error {
	return run.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		if err := run.Member(member.ID, adapter.MemberDraining, adapter.HealthUnknown, nil); err != nil {
			return err
		}
		_, err := run.Try(ctx, member, "halt", adapter.StopProcess{Name: process}, adapter.Within(stopTime))
		if run.Force() && adapter.IsUnreachable(err) {
			return nil
		}
		return err
	})
}

// drain takes members out of service: their containers get their stop signal and the time to finish what they do. When
// it is canceled or fails they run again.
func drain(ctx context.Context, run *adapter.Run) error {
	members := run.Targets()
	run.Progress("stopping", 20, "stopping "+names(members))
	if err := halt(ctx, run, members); err != nil {
		return resume(ctx, run, members, err)
	}
	for _, member := range members {
		if err := run.Member(member.ID, adapter.MemberDrained, adapter.HealthUnknown, nil); err != nil {
			return err
		}
	}
	return run.Evidence("drained", map[string]any{"containers": len(members), "seenAt": time.Now().UTC()})
}

// resume starts containers again that were stopped for nothing, and returns the reason.
func resume(ctx context.Context, run *adapter.Run, members []adapter.Member, reason error) error {
	clean, cancel := run.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return reason // this is not the end: the operation goes on
	}
	for _, member := range members {
		if member.Status == string(adapter.MemberDrained) || member.Status == string(adapter.MemberFailed) {
			// it was out of service before
			_ = run.Member(member.ID, adapter.MemberStatus(member.Status), adapter.HealthUnknown, nil)
			continue
		}
		if err := back(clean, node{run, member, "resume."}); err != nil {
			run.Log().Warn("container not started again", "member", member.ID, "error", err)
		}
	}
	return reason
}

// back starts the release in use and says how the member is then.
func back(ctx context.Context, n node) error {
	start, ok := n.previous(ctx)
	if !ok {
		_ = n.run.Member(n.member.ID, adapter.MemberFailed, adapter.HealthUnknown, nil)
		return adapter.Fail("NOTHING_TO_START", adapter.OwnerNode, true, "%s has no container to start", name(n.member))
	}
	if err := n.begin(ctx, start, releaseOf(start), nil); err != nil {
		_ = n.run.Member(n.member.ID, adapter.MemberFailed, adapter.Unhealthy, nil)
		return err
	}
	return n.run.Member(n.member.ID, adapter.MemberActive, adapter.Healthy, nil)
}

// uncordon brings drained members back into service.
func uncordon(ctx context.Context, run *adapter.Run) error {
	var done []string
	for _, member := range run.Targets() {
		if member.Status == string(adapter.MemberDrained) {
			if err := back(ctx, node{run, member, ""}); err != nil {
				return err
			}
		}
		done = append(done, name(member))
	}
	return run.Evidence("uncordoned", done)
}

// remove stops members and tears them down.
func remove(ctx context.Context, run *adapter.Run) error {
	members := run.Targets()
	run.Progress("stopping", 20, "stopping "+names(members))
	err := halt(ctx, run, members)
	if err == nil {
		err = run.Commit()
	}
	if err != nil {
		return resume(ctx, run, members, err)
	}
	return leave(ctx, run, members)
}

// leave deletes everything of members. From here on the operation cannot be undone.
func leave(ctx context.Context, run *adapter.Run, members []adapter.Member) error {
	run.Progress("tearing down", 70, "deleting what "+names(members)+" left")
	if err := empty(ctx, run, members, "leave."); err != nil {
		return err
	}
	return run.Teardown(ctx, members)
}

// replace brings the new member in before the old one goes out.
func replace(ctx context.Context, run *adapter.Run) error {
	var by adapter.ReplaceChange
	if err := run.Change(&by); err != nil {
		return err
	}
	old, fresh := run.Targets(), []adapter.Member{}
	for _, member := range run.Of(component) {
		if member.ID == by.ReplacementID {
			fresh = append(fresh, member)
		}
	}
	run.Progress("launching the new container", 10, "launching "+names(fresh))
	if err := launch(ctx, run, fresh); err != nil {
		return takeBack(ctx, run, fresh, err)
	}
	if err := run.Commit(); err != nil {
		return takeBack(ctx, run, fresh, err)
	}
	return leave(ctx, run, old)
}

// recoverMembers launches members again that did not come up, from the beginning.
func recoverMembers(ctx context.Context, run *adapter.Run) error {
	members := run.Targets()
	run.Progress("launching", 10, "launching "+names(members)+" again")
	if err := launch(ctx, run, members); err != nil {
		clean, cancel := run.Cleanup(ctx)
		defer cancel()
		for _, member := range members {
			if clean.Err() == nil {
				err = errors.Join(err, run.Member(member.ID, adapter.MemberFailed, adapter.HealthUnknown, nil))
			}
		}
		return err
	}
	return run.Evidence("recovered", len(members))
}

// decommission stops the containers in good order and then has each node prove that nothing is left.
func decommission(ctx context.Context, run *adapter.Run) error {
	members := run.Of(component)
	run.Progress("stopping", 10, fmt.Sprintf("stopping %d containers", len(members)))
	return leave(ctx, run, members)
}
