package rke2

import (
	"context"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// snapshots returns the snapshots of all servers that can be reached.
func (w work) snapshots(ctx context.Context) (list []machine.Snapshot, err error) {
	for _, on := range w.Of(machine.Server) {
		if !on.Node.IsReachable() {
			continue
		}
		text, err := w.ask(ctx, on, "snapshots", machine.ListSnapshots())
		if err != nil {
			return nil, err
		}
		list = append(list, machine.SnapshotsOf(on, text)...)
	}
	return list, nil
}

// snapshot makes one on a server and returns it.
func (w work) snapshot(ctx context.Context, on adapter.Member, config machine.Config, name string) (machine.Snapshot,
	error) {
	w.Progress("saving a snapshot", 10, "etcd is saved on "+machine.Name(on))
	if _, err := w.Do(ctx, on, "snapshot", machine.Save(config, name), adapter.Within(machine.SaveTime)); err != nil {
		return machine.Snapshot{}, err
	}
	text, err := w.ask(ctx, on, "snapshots", machine.ListSnapshots())
	if err != nil {
		return machine.Snapshot{}, err
	}
	made, ok := machine.Newest(machine.SnapshotsOf(on, text), name)
	if !ok {
		return made, adapter.Fail("SNAPSHOT_MISSING", adapter.OwnerNode, true, "%s does not list its new snapshot",
			machine.Name(on))
	}
	return made, nil
}

// restore brings the whole cluster back to a snapshot: every server stops, the one that has the snapshot starts again
// from it, and the others join it as they did at first. Nodes that the snapshot knows and the instance does not are
// deleted. A server whose node is away is passed over, and is to be recovered, which wipes what it has.
func (w work) restore(ctx context.Context, from machine.Snapshot) error {
	var config machine.Config
	if err := w.Config(&config); err != nil {
		return err
	}
	servers, first := w.Of(machine.Server), from.Server
	w.Progress("restoring", 20, "all servers stop")
	for _, member := range servers {
		if !w.takesPart(member) {
			continue
		}
		if err := w.end(ctx, member, "restore."); err != nil {
			return err
		}
	}
	files, err := w.files(ctx, config, first, nil)
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := w.Do(ctx, first, "restore.write"+strings.ReplaceAll(file.Path, "/", "."), file); err != nil {
			return err
		}
	}
	w.Progress("restoring", 30, machine.Name(first)+" goes back to "+from.Name)
	if _, err := w.Do(ctx, first, "reset", machine.Reset(first, config, from.Name),
		adapter.Within(machine.ResetTime)); err != nil {
		return err
	}
	if err := w.revive(ctx, first, nil); err != nil {
		return err
	}
	if err := w.forgetStrangers(ctx, first); err != nil {
		return err
	}
	passed := []string{}
	for _, member := range machine.Without(servers, []adapter.Member{first}) {
		if !w.takesPart(member) {
			passed = append(passed, member.ID)
			if err := w.Member(member.ID, adapter.MemberFailed, adapter.HealthUnknown, nil); err != nil {
				return err
			}
			continue
		}
		if _, err := w.Do(ctx, member, "restore.wipe", machine.ForgetEtcd(), adapter.Within(time.Minute)); err != nil {
			return err
		}
		if err := w.revive(ctx, member, &first); err != nil {
			return err
		}
	}
	return w.Evidence("restored", map[string]any{"snapshot": from.Name, "server": machine.Name(first),
		"savedAt": from.At, "recover": passed})
}

// revive starts a member of which etcd was deleted or reset, and waits until it serves.
func (w work) revive(ctx context.Context, member adapter.Member, by *adapter.Member) error {
	if err := w.bring(ctx, member, by, "restore."); err != nil {
		return err
	}
	if err := w.serves(ctx, member, by, "restore.", ""); err != nil {
		return err
	}
	return w.Member(member.ID, adapter.MemberActive, adapter.Healthy, map[string]any{"node": machine.Name(member)})
}

// forgetStrangers deletes Nodes that are not members of the instance any more: those that left after the snapshot.
func (w work) forgetStrangers(ctx context.Context, by adapter.Member) error {
	known := map[string]bool{}
	for _, member := range w.Dispatch().Members {
		known[machine.Name(member)] = true
	}
	list, err := w.nodes(ctx, by)
	if err != nil {
		return err
	}
	for name := range list {
		if known[name] {
			continue
		}
		if err := w.forgetNode(ctx, by, name, "restore."); err != nil {
			return err
		}
	}
	return nil
}
