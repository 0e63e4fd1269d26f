package hello

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func create(ctx context.Context, run *adapter.Run) error {
	peers := run.Of(component)
	run.Progress("starting peers", 10, fmt.Sprintf("starting %d peers", len(peers)))
	if err := bringUp(ctx, run, peers); err != nil {
		return err
	}
	run.Progress("listening", 90, "every peer runs")
	return run.Evidence("peers", len(peers))
}

// bringUp starts peers with the instance's settings, and makes them and all the others known to each other. It reports
// each peer as active once it runs.
func bringUp(ctx context.Context, run *adapter.Run, peers []adapter.Member) error {
	with, err := settingsOf(run.Instance().Version, run.Instance().Config)
	if err != nil {
		return err
	}
	all := run.Of(component)
	if err := run.Each(ctx, peers, func(ctx context.Context, peer adapter.Member) error {
		return join(ctx, run, peer, with, linesOf(all))
	}); err != nil {
		return err
	}
	missed, err := tell(ctx, run, without(all, peers), "meet", "meet", linesOf(peers))
	if err != nil || len(missed) == 0 {
		return err
	}
	return run.Evidence("notTold", missed)
}

func join(ctx context.Context, run *adapter.Run, peer adapter.Member, with settings, roll string) error {
	if err := run.Member(peer.ID, adapter.MemberJoining, adapter.HealthUnknown, nil); err != nil {
		return err
	}
	if err := launch(ctx, run, peer, "", with); err != nil {
		return err
	}
	meet := verb("anew")
	meet.Stdin = roll
	if _, err := run.Do(ctx, peer, "anew", meet); err != nil {
		return err
	}
	return run.Member(peer.ID, adapter.MemberActive, adapter.Healthy, detailOf(peer, with))
}

func detailOf(peer adapter.Member, with settings) map[string]any {
	return map[string]any{"name": name(peer), "node": peer.Node.Name, "version": with.version}
}

// add brings new peers up. When it fails or is canceled, it removes them from the lists of the other peers; the
// platform cleans their nodes.
func add(ctx context.Context, run *adapter.Run) error {
	peers := run.Targets()
	run.Progress("starting peers", 10, "starting "+names(peers))
	if err := bringUp(ctx, run, peers); err != nil {
		return takeBack(ctx, run, peers, err)
	}
	return run.Evidence("added", len(peers))
}

// takeBack undoes a join, and returns reason: why it is undone.
func takeBack(ctx context.Context, run *adapter.Run, peers []adapter.Member, reason error) error {
	clean, cancel := run.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return reason // this is not the end: the operation goes on
	}
	run.Progress("undoing", 10, "removing "+names(peers))
	missed, err := tell(clean, run, without(run.Of(component), peers), "forget", "part", linesOf(peers))
	stopErr := stop(clean, run, peers, "forget.stop")
	for _, peer := range peers {
		err = errors.Join(err, run.Member(peer.ID, adapter.MemberFailed, adapter.HealthUnknown, nil))
	}
	if err = errors.Join(err, stopErr); err != nil || len(missed) > 0 {
		run.Log().Warn("not everything was undone", "missed", missed, "error", err)
	}
	return reason
}

// stop lets peers shut down in good order. The teardown goes on where a stop fails: the peer may never have started, or
// its node may be away.
func stop(ctx context.Context, run *adapter.Run, peers []adapter.Member, step string) error {
	return run.Each(ctx, peers, func(ctx context.Context, peer adapter.Member) error {
		if !run.Reaches(peer) {
			return nil
		}
		bounded, cancel := context.WithTimeout(ctx, 2*quick)
		defer cancel()
		if _, err := run.Try(bounded, peer, step, adapter.StopProcess{Name: process},
			adapter.Within(quick)); err != nil {
			run.Log().Info("peer not stopped", "member", peer.ID, "error", err)
		}
		return context.Cause(ctx)
	})
}

// remove empties peers, removes them from the lists of the others and tears them down.
func remove(ctx context.Context, run *adapter.Run) error {
	peers := run.Targets()
	err := empty(ctx, run, peers)
	if err == nil {
		err = run.Commit()
	}
	if err != nil {
		return reopen(ctx, run, peers, err)
	}
	return leave(ctx, run, peers)
}

// leave takes empty peers out of the cluster and off their nodes. From here on the operation cannot be undone.
func leave(ctx context.Context, run *adapter.Run, peers []adapter.Member) error {
	run.Progress("leaving", 70, names(peers)+" leaves")
	missed, err := tell(ctx, run, without(run.Of(component), peers), "part", "part", linesOf(peers))
	if err != nil {
		return err
	}
	if len(missed) > 0 {
		if err := run.Evidence("notTold", missed); err != nil {
			return err
		}
	}
	if err := stop(ctx, run, peers, "leave.stop"); err != nil {
		return err
	}
	run.Progress("tearing down", 80, "deleting what "+names(peers)+" left")
	return run.Teardown(ctx, peers)
}

// replace starts the new peer before the old one leaves.
func replace(ctx context.Context, run *adapter.Run) error {
	var by adapter.ReplaceChange
	if err := run.Change(&by); err != nil {
		return err
	}
	old := run.Targets()
	fresh := only(run.Of(component), by.ReplacementID)
	run.Progress("starting the new peer", 10, "starting "+names(fresh))
	if err := bringUp(ctx, run, fresh); err != nil {
		return takeBack(ctx, run, fresh, err)
	}
	err := empty(ctx, run, old)
	if err == nil {
		err = run.Commit()
	}
	if err != nil {
		return takeBack(ctx, run, fresh, reopen(ctx, run, old, err))
	}
	return leave(ctx, run, old)
}

func only(peers []adapter.Member, id string) []adapter.Member {
	for _, peer := range peers {
		if peer.ID == id {
			return []adapter.Member{peer}
		}
	}
	return nil
}

// recoverMembers starts failed peers again, from the first step.
func recoverMembers(ctx context.Context, run *adapter.Run) error {
	peers := run.Targets()
	run.Progress("starting peers", 10, "starting "+names(peers)+" again")
	err := bringUp(ctx, run, peers)
	if err == nil {
		return run.Evidence("recovered", len(peers))
	}
	if clean, cancel := run.Cleanup(ctx); clean.Err() == nil {
		defer cancel()
		for _, peer := range peers {
			err = errors.Join(err, run.Member(peer.ID, adapter.MemberFailed, health(clean, run, peer), nil))
		}
	}
	return err
}

func cordon(ctx context.Context, run *adapter.Run) error {
	return doors(ctx, run, "cordoned", "shut", "cordon")
}

// uncordon opens a peer for work again, for whatever reason it was shut: a cordon or a drain.
func uncordon(ctx context.Context, run *adapter.Run) error {
	return doors(ctx, run, "uncordoned", "unbolt")
}

func doors(ctx context.Context, run *adapter.Run, evidence string, args ...string) error {
	var done []string
	for _, peer := range run.Targets() {
		if _, err := run.Do(ctx, peer, "doors", verb(args...)); err != nil {
			return err
		}
		if args[0] == "unbolt" && peer.Status == string(adapter.MemberDrained) {
			if err := run.Member(peer.ID, adapter.MemberActive, health(ctx, run, peer), nil); err != nil {
				return err
			}
		}
		done = append(done, name(peer))
	}
	return run.Evidence(evidence, done)
}

// label writes the labels to a file that the peer's own programs can read, and reads it back.
func label(ctx context.Context, run *adapter.Run) error {
	var change adapter.LabelChange
	if err := run.Change(&change); err != nil {
		return err
	}
	content, err := json.Marshal(change.Labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	for _, peer := range run.Targets() {
		if _, err := run.Do(ctx, peer, "label", adapter.WriteFile{Path: labelsPath, Content: string(content),
			MakeDirs: true}); err != nil {
			return err
		}
		result, err := run.Do(ctx, peer, "labels",
			adapter.RunCommand{Command: shell(`cat "$GPUAAS_MEMBER_ROOT` + labelsPath +
				`"`)})
		if err != nil {
			return err
		}
		if result.Stdout != string(content) {
			return adapter.Fail("LABELS_DIFFER", adapter.OwnerNode, true, "%s has other labels than were written",
				name(peer))
		}
	}
	return run.Evidence("labels", change.Labels)
}

// decommission stops the peers in good order, and then has each node prove that nothing is left. It does not wait for
// work: the evidence lists what was lost.
func decommission(ctx context.Context, run *adapter.Run) error {
	peers := run.Of(component)
	run.Progress("stopping peers", 10, fmt.Sprintf("stopping %d peers", len(peers)))
	if err := abort(ctx, run, peers); err != nil {
		return err
	}
	if err := stop(ctx, run, peers, "stop"); err != nil {
		return err
	}
	run.Progress("tearing down", 50, "deleting what the peers left")
	return run.Teardown(ctx, peers)
}
