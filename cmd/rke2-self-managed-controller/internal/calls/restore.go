package calls

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// restoring is a restore under way: the server that has the snapshot, and the others.
type restoring struct {
	call   *adapter.Call
	config machine.Config
	from   machine.Snapshot
	others []adapter.Member
	// stopped are those that it has stopped, or has begun to.
	stopped []adapter.Member
}

// restoreSnapshot brings etcd back to a snapshot on the server that has it. All other servers stop for it and forget
// what they held: they show as failed, and a recovery has each join again. An action is short, so that is left to the
// operation that can be watched. Where etcd stays what it was, the servers that served are started again.
func restoreSnapshot(ctx context.Context, call *adapter.Call) (any, error) {
	var input struct{ Snapshot string }
	r := restoring{call: call}
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, err
	}
	err := decode(call.Instance.Config, &r.config)
	if err != nil {
		return nil, err
	}
	if r.from, err = findSnapshot(ctx, call, input.Snapshot); err != nil {
		return nil, err
	}
	r.others = machine.Without(call.Of(machine.Server), []adapter.Member{r.from.Server})
	if err := r.stop(ctx); err != nil {
		return nil, r.takeBack(ctx, err)
	}
	if err := r.reset(ctx); err != nil {
		return nil, err
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	again := []string{}
	for _, member := range r.others {
		again = append(again, member.ID)
	}
	return map[string]any{"restored": r.from.Name, "node": machine.Name(r.from.Server), "recover": again}, nil
}

// stop ends all servers, the one that has the snapshot last. One whose node is away is passed over, as is one by a
// rollback with force: it may be why a restore is needed, and its recovery ends and wipes it.
func (r *restoring) stop(ctx context.Context) error {
	for _, member := range append(r.others[:len(r.others):len(r.others)], r.from.Server) {
		if !member.Node.IsReachable() {
			continue
		}
		r.stopped = append(r.stopped, member)
		stop := adapter.StopProcess{Name: machine.Process}
		if _, err := r.call.Do(ctx, member, "stop", stop, adapter.Within(time.Minute)); err != nil {
			return err
		}
		// What RKE2 has started outlives it, etcd among it.
		if _, err := r.call.Do(ctx, member, "end", machine.KillAll(), adapter.Within(time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

// reset resets etcd, or leaves it what it was.
func (r *restoring) reset(ctx context.Context) error {
	on := r.from.Server
	task := machine.Reset(on, r.config, r.from.Name)
	result, err := r.call.Do(ctx, on, "reset", task, adapter.Within(machine.ResetTime))
	switch {
	case err == nil || context.Cause(ctx) != nil:
		return err
	case result.ExitCode != nil && *result.ExitCode == machine.EtcdKept:
		return r.takeBack(ctx, err)
	}
	return adapter.Fail("RESTORE_UNKNOWN", adapter.OwnerNode, true,
		"%s does not report whether its etcd was reset, so all servers stay stopped: restore again when its node "+
			"answers; %v", machine.Name(on), err)
}

// takeBack starts the servers again that served before a restore which has changed nothing, and returns the reason. A
// call that ran out of time goes on when it is repeated with its key.
func (r *restoring) takeBack(ctx context.Context, reason error) error {
	var up, down []adapter.Member
	for _, member := range r.stopped {
		if context.Cause(ctx) != nil {
			return reason
		}
		if !serves(member) {
			continue
		}
		start := machine.Start(member, r.config)
		if _, err := r.call.Do(ctx, member, "again", start, adapter.Within(machine.Quick)); err != nil {
			down = append(down, member)
			r.call.Log.Warn("server not started again", "member", member.ID, "error", err)
			continue
		}
		up = append(up, member)
	}
	said := "etcd is unchanged, and was started again on: " + machine.Names(up)
	if len(down) > 0 {
		said += "; not started again, and to be recovered: " + machine.Names(down)
	}
	return adapter.Fail("RESTORE_FAILED", adapter.OwnerNode, true, "%s; %v", said, reason)
}

// start has the others forget what they held, and the one whose etcd was reset serve. Another that cannot be wiped
// stays stopped: its recovery wipes it too.
func (r *restoring) start(ctx context.Context) error {
	for _, member := range r.others {
		if !member.Node.IsReachable() {
			continue
		}
		_, err := r.call.Try(ctx, member, "wipe", machine.ForgetEtcd(), adapter.Within(machine.Quick))
		if err != nil && context.Cause(ctx) != nil {
			return err
		}
	}
	first := r.from.Server
	_, err := r.call.Do(ctx, first, "start", machine.Start(first, r.config), adapter.Within(machine.Quick))
	if err == nil {
		wait := adapter.Probe{Exec: &adapter.ExecProbe{Command: machine.Shell(machine.KubectlHead + machine.Plain +
			` get --raw=/readyz > /dev/null`)},
			Attempts: 1000, IntervalSeconds: 0.3, TimeoutSeconds: 15}
		_, err = r.call.Do(ctx, first, "ready", wait, adapter.Within(machine.JoinTime))
	}
	if err != nil && context.Cause(ctx) == nil {
		err = adapter.Fail("RESTORE_UNFINISHED", adapter.OwnerNode, true,
			"etcd of %s was reset to %s, and does not serve it yet: restore it again; %v", machine.Name(first),
			r.from.Name, err)
	}
	return err
}

// findSnapshot finds a snapshot by its name. It is looked for once for an action: a repeat finds what the first found.
func findSnapshot(ctx context.Context, call *adapter.Call, name string) (machine.Snapshot, error) {
	list, ok := allSnapshots(ctx, call)
	if !ok {
		return machine.Snapshot{}, adapter.Fail("NO_SERVER", adapter.OwnerNode, true,
			"not every server reports its snapshots")
	}
	for _, one := range list {
		if one.Name == name {
			return one, nil
		}
	}
	return machine.Snapshot{}, adapter.Reject("NO_SUCH_SNAPSHOT", "input.snapshot",
		"no server that answers has the snapshot %.100q: list snapshots by snapshots.list", name)
}
