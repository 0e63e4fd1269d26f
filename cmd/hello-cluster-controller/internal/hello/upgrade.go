package hello

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// change brings every peer to another version and config, one at a time in the order of their numbers: the first shows
// whether it works before any other is touched. Work goes on meanwhile, because it runs outside the peer's process.
// When the change fails or is canceled, the changed peers are changed back; nothing is torn down.
func change(ctx context.Context, run *adapter.Run) error {
	var by adapter.VersionChange
	if err := run.Change(&by); err != nil {
		return err
	}
	from, err := settingsOf(by.From.Version, by.From.Config)
	if err != nil {
		return err
	}
	to, err := settingsOf(run.Instance().Version, run.Instance().Config)
	if err != nil {
		return err
	}
	peers := serving(run.Of(component))
	if err := answering(ctx, run, peers); err != nil {
		return err
	}
	for i, peer := range peers {
		run.Progress("changing "+name(peer), 10+80*i/len(peers),
			fmt.Sprintf("changing %s, %d of %d", name(peer), i+1, len(peers)))
		if err := changeOne(ctx, run, peer, "", to); err != nil {
			return restore(ctx, run, peers[:i+1], from, err)
		}
	}
	return versions(ctx, run, peers)
}

// serving leaves out peers that failed: they get the new settings when they are recovered.
func serving(peers []adapter.Member) []adapter.Member {
	return slices.DeleteFunc(slices.Clone(peers), func(m adapter.Member) bool {
		return m.Status == string(adapter.MemberFailed)
	})
}

// answering refuses a change before it begins if it would stop half way at a node that is away.
func answering(ctx context.Context, run *adapter.Run, peers []adapter.Member) error {
	run.Progress("checking the nodes", 5, fmt.Sprintf("checking the nodes of %d peers", len(peers)))
	return run.Each(ctx, peers, func(ctx context.Context, peer adapter.Member) error {
		if !peer.Node.IsReachable() || health(ctx, run, peer) == adapter.HealthUnknown {
			return adapter.Fail(adapter.CodeNodeUnreachable, adapter.OwnerNode, true,
				"the node of %s does not answer; nothing was changed", name(peer))
		}
		return nil
	})
}

func changeOne(ctx context.Context, run *adapter.Run, peer adapter.Member, prefix string, with settings) error {
	if err := launch(ctx, run, peer, prefix, with); err != nil {
		return err
	}
	status := adapter.MemberActive
	if peer.Status == string(adapter.MemberDrained) {
		status = adapter.MemberDrained
	}
	return run.Member(peer.ID, status, adapter.Healthy, detailOf(peer, with))
}

// restore changes peers back, the last one first, and returns reason: why the change ended.
func restore(ctx context.Context, run *adapter.Run, peers []adapter.Member, from settings, reason error) error {
	clean, cancel := run.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return reason // this is not the end: the operation goes on
	}
	for _, peer := range slices.Backward(peers) {
		run.Progress("changing back", 10, "changing "+name(peer)+" back")
		if err := changeOne(clean, run, peer, "back.", from); err != nil {
			run.Log().Warn("peer not changed back", "member", peer.ID, "error", err)
			_ = run.Member(peer.ID, adapter.MemberFailed, health(clean, run, peer), nil)
		}
	}
	if err := versions(clean, run, serving(run.Of(component))); err != nil {
		run.Log().Warn("versions not read", "error", err)
	}
	return reason
}

// versions reads from each peer which version it runs, and keeps the answers as evidence.
func versions(ctx context.Context, run *adapter.Run, peers []adapter.Member) error {
	found := make(map[string]string, len(peers))
	for _, peer := range peers {
		read := adapter.RunCommand{Command: shell(`sed -n 's/^version //p' "$GPUAAS_MEMBER_ROOT/srv/hello/running"`)}
		result, err := run.Look(ctx, peer, "version", read, adapter.Within(quick))
		if err != nil {
			return err
		}
		found[name(peer)] = "unknown"
		if result.State == adapter.TaskSucceeded {
			found[name(peer)] = strings.TrimSpace(result.Stdout)
		}
	}
	return run.Evidence("versions", found)
}
