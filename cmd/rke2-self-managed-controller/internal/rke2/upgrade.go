package rke2

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/release"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// upgrade brings the members to the version and configuration of the dispatch: the release is staged everywhere, etcd
// is saved, then the servers restart one by one, then the agents in batches. Pods run on. It can be canceled until
// the first server stops.
func upgrade(ctx context.Context, w work) error {
	move, err := w.prepare(ctx)
	if err != nil {
		return err
	}
	if move.step == release.Back {
		return adapter.Fail("DOWNGRADE", adapter.OwnerUser, false,
			"the cluster runs %s, which does not go back to %s by an upgrade: roll back, which restores a snapshot",
			move.from, move.to)
	}
	return w.change(ctx, move)
}

// rollback goes back to the version and configuration before the last upgrade. Where no server runs the newer release,
// that is another restart; where one does, etcd is restored from the snapshot of before that upgrade, since nothing
// that a newer release has written is read by an older one.
func rollback(ctx context.Context, w work) error {
	move, err := w.prepare(ctx)
	if err != nil {
		return err
	}
	if move.step != release.Back {
		return w.change(ctx, move)
	}
	// All servers stop for it, and start again: one that the upgrade has broken does not prevent it.
	list, err := w.snapshots(ctx)
	if err != nil {
		return err
	}
	from, ok := machine.Newest(list, machine.UpgradeName(move.to.String()))
	if !ok {
		return machine.NoSnapshot(move.to)
	}
	if err := w.Commit(); err != nil {
		return err
	}
	if err := w.restore(ctx, from); err != nil {
		return err
	}
	return w.agents(ctx, move, from.Server)
}

// move is a change of the release. A node that names none is as good as the target.
type move struct {
	config   machine.Config
	by       adapter.Member
	from, to release.Release
	step     release.Step
}

// decided is what is kept of a move: once something has stopped, nothing that runs reports it any more, and an attempt
// after a crash goes on with what the first one found.
type decided struct {
	By   string          `json:"by"`
	From release.Release `json:"from"`
	To   release.Release `json:"to"`
	Step release.Step    `json:"step"`
}

// prepare decides once for the operation where the change leads; see decide.
func (w work) prepare(ctx context.Context) (move, error) {
	var to move
	if err := w.Config(&to.config); err != nil {
		return to, err
	}
	saved, err := w.Once("move", func() (string, error) {
		found, err := w.decide(ctx, to.config)
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(found)
		return string(raw), err
	})
	if err != nil {
		return to, err
	}
	var kept decided
	if err := json.Unmarshal([]byte(saved), &kept); err != nil {
		return to, fmt.Errorf("read what was decided: %w", err)
	}
	to.from, to.to, to.step = kept.From, kept.To, kept.Step
	for _, member := range w.Of(machine.Server) {
		if member.ID == kept.By {
			to.by = member
			return to, nil
		}
	}
	return to, fmt.Errorf("the server %s that answered is not in the dispatch", kept.By)
}

// decide looks at what runs, finds where the change leads, refuses a skipped minor version and a cluster that is not
// whole, and stages the release on every node. Nothing that runs is touched.
func (w work) decide(ctx context.Context, config machine.Config) (found decided, err error) {
	by, err := w.witness(nil)
	if err != nil {
		return found, err
	}
	found.By = by.ID
	w.Progress("staging", 5, "installing the release on every node")
	err = w.Each(ctx, w.partakers(), func(ctx context.Context, member adapter.Member) error {
		return w.place(ctx, member, config)
	})
	if err != nil {
		return found, err
	}
	said, err := w.ask(ctx, by, "release", machine.VersionOf(config))
	if err != nil {
		return found, err
	}
	seen, err := w.nodes(ctx, by)
	if err != nil {
		return found, err
	}
	var known bool
	if found.To, known = release.Find(said); !known {
		return found, adapter.Fail("RELEASE_UNKNOWN", adapter.OwnerNode, true, "%s does not report its release: %.100q",
			machine.Name(by), said)
	}
	if found.From, found.Step, err = machine.StepOf(seen, found.To); err != nil || found.Step == release.Back {
		return found, err // on the way back all servers stop: one that the upgrade has broken is no obstacle
	}
	return found, w.whole(seen)
}

// whole refuses to change a cluster of which a server is not Ready, unless forced: the next one that stops could cost
// the quorum.
func (w work) whole(seen map[string]machine.State) error {
	if w.Force() {
		return nil
	}
	for _, member := range w.Of(machine.Server) {
		node, ok := seen[machine.Name(member)]
		if !ok || node.Ready != "True" {
			return adapter.Fail("SERVER_NOT_READY", adapter.OwnerNode, true,
				"%s is not Ready (%s): recover it first, or a restart could lose the quorum",
				machine.Name(member), node.Reason)
		}
	}
	return nil
}

// takesPart reports whether a member is one of those that a change of the release is for. One whose node is away fails
// an upgrade, unless forced; on the way back, which has no force, it is passed over.
func (w work) takesPart(member adapter.Member) bool {
	if w.Dispatch().Kind == adapter.InstanceRollback {
		return member.Node.IsReachable()
	}
	return w.Reaches(member)
}

// partakers are the members that a change of the release is for.
func (w work) partakers() (list []adapter.Member) {
	for _, member := range w.Dispatch().Members {
		if w.takesPart(member) {
			list = append(list, member)
		}
	}
	return list
}

// change saves etcd and restarts the members in order.
func (w work) change(ctx context.Context, to move) error {
	name := machine.UpgradeName(to.from.String()) +
		strings.ReplaceAll(strings.ToLower(w.Dispatch().OperationID), "_", "-")
	made, err := w.snapshot(ctx, to.by, to.config, name)
	if err != nil {
		return err
	}
	if err := w.Evidence("snapshot", map[string]any{"name": made.Name, "server": machine.Name(to.by),
		"bytes": made.Bytes, "savedAt": made.At}); err != nil {
		return err
	}
	if _, err := w.Try(ctx, to.by, "prune", machine.Prune(), adapter.Within(machine.Quick)); err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	servers := w.Of(machine.Server)
	for i, member := range servers {
		if !w.takesPart(member) {
			continue
		}
		w.Progress("restarting servers", 20+40*i/len(servers),
			fmt.Sprintf("%s restarts with %s, %d of %d", machine.Name(member), to.to, i+1, len(servers)))
		by := to.by
		if others := machine.Reached(servers, []adapter.Member{member}); len(others) > 0 {
			by = others[0]
			if err := w.handOverOnce(ctx, by, member); err != nil {
				return err
			}
		}
		if err := w.renew(ctx, member, by, to); err != nil {
			return err
		}
	}
	return w.agents(ctx, to, to.by)
}

// agents restarts the agents, so many at a time.
func (w work) agents(ctx context.Context, to move, by adapter.Member) error {
	all, batch := w.Of(machine.Agent), max(to.config.UpgradeBatch, 1)
	passed := []string{}
	for i := 0; i < len(all); i += batch {
		some := []adapter.Member{}
		for _, member := range all[i:min(i+batch, len(all))] {
			if w.takesPart(member) {
				some = append(some, member)
			} else {
				passed = append(passed, member.ID)
			}
		}
		w.Progress("restarting agents", 60+35*i/len(all), machine.Names(some)+" restart with "+to.to.String())
		err := w.Each(ctx, some, func(ctx context.Context, member adapter.Member) error {
			return w.renew(ctx, member, by, to)
		})
		if err != nil {
			return err
		}
	}
	if err := w.devices(ctx, by); err != nil {
		return err
	}
	seen, err := w.nodes(ctx, by)
	if err != nil {
		return err
	}
	runs := map[string]string{}
	for _, member := range w.Dispatch().Members {
		runs[machine.Name(member)] = seen[machine.Name(member)].Version
	}
	if err := w.Evidence("passedOver", passed); err != nil {
		return err
	}
	return w.Evidence("runs", map[string]any{"versions": runs, "seenBy": machine.Name(by), "seenAt": time.Now().UTC()})
}

// renew restarts a member with the files and the release of the dispatch, and waits until it serves with it. Its place
// in service is what it was.
func (w work) renew(ctx context.Context, member, by adapter.Member, to move) error {
	if err := w.stop(ctx, member, "renew."); err != nil {
		return err
	}
	var join *adapter.Member
	if by.ID != member.ID {
		join = &by
	}
	if err := w.bring(ctx, member, join, "renew."); err != nil {
		return err
	}
	if err := w.serves(ctx, member, join, "renew.", to.to.String()); err != nil {
		return err
	}
	status := adapter.MemberActive
	if member.Status == string(adapter.MemberDrained) {
		status = adapter.MemberDrained
	}
	return w.Member(member.ID, status, adapter.Healthy, map[string]any{"node": machine.Name(member),
		"release": to.to.String()})
}

// nodes asks a server for all Nodes.
func (w work) nodes(ctx context.Context, on adapter.Member) (map[string]machine.State, error) {
	text, err := w.ask(ctx, on, "nodes", machine.NodesCommand())
	return machine.NodesOf(text), err
}
