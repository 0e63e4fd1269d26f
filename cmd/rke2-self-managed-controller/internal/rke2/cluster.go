package rke2

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// voters are the members of etcd now, as a server lists them.
func (w work) voters(ctx context.Context, on adapter.Member) ([]machine.Voter, error) {
	text, err := w.ask(ctx, on, "voters", machine.Etcdctl(on, "member", "list"))
	if err != nil {
		return nil, err
	}
	list := machine.VotersOf(text)
	if len(list) == 0 {
		return nil, adapter.Fail("ETCD_SILENT", adapter.OwnerNode, true, "etcd on %s lists no members",
			machine.Name(on))
	}
	return list, nil
}

// ask runs a command that only looks, and returns what it prints.
func (w work) ask(ctx context.Context, on adapter.Member, step string, command adapter.RunCommand) (string, error) {
	result, err := w.look(ctx, on, step, command)
	return result.Stdout, err
}

// look runs a command that only looks.
func (w work) look(ctx context.Context, on adapter.Member, step string,
	command adapter.RunCommand) (adapter.TaskResult, error) {
	result, err := w.Look(ctx, on, step, command, adapter.Within(machine.Quick))
	if err == nil && result.State != adapter.TaskSucceeded {
		err = adapter.Fail(adapter.CodeNodeTask, adapter.OwnerNode, true, "%s on %s: %s %s", step, machine.Name(on),
			result.Message, strings.TrimSpace(result.Stderr))
	}
	return result, err
}

// pods are those that a drain of a member has to get rid of. More says that there are others.
func (w work) pods(ctx context.Context, by, member adapter.Member) (list []machine.Pod, more bool, err error) {
	result, err := w.look(ctx, by, "pods", machine.PodsOn(machine.Name(member)))
	list, more = machine.PodsOf(result)
	return list, more, err
}

// stop stops a member's RKE2 in good order. A node that does not answer is passed over: the teardown proves that what
// it runs has ended, or fails.
func (w work) stop(ctx context.Context, member adapter.Member, prefix string) error {
	if !w.Reaches(member) {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	_, err := w.Try(bounded, member, prefix+"stop", adapter.StopProcess{Name: machine.Process},
		adapter.Within(time.Minute))
	if err != nil && context.Cause(ctx) == nil {
		w.Log().Info("member not stopped", "member", member.ID, "error", err)
	}
	return context.Cause(ctx)
}

// end stops a member's RKE2 and then all that it leaves running: its pods, those of etcd and the API server too.
func (w work) end(ctx context.Context, member adapter.Member, prefix string) error {
	if err := w.stop(ctx, member, prefix); err != nil || !w.Reaches(member) {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	_, err := w.Try(bounded, member, prefix+"killall", machine.KillAll(), adapter.Within(time.Minute))
	if err != nil && context.Cause(ctx) == nil {
		w.Log().Info("pods not ended", "member", member.ID, "error", err)
	}
	return context.Cause(ctx)
}

// forget removes what the cluster remembers of a member that has stopped: its etcd, its Node, and the Node's password.
func (w work) forget(ctx context.Context, by, member adapter.Member, prefix string) error {
	name := machine.Name(member)
	if member.ComponentKey == machine.Server {
		if err := w.unvote(ctx, by, member, prefix); err != nil {
			return err
		}
	}
	return w.forgetNode(ctx, by, name, prefix)
}

// forgetNode deletes a Node and its password.
func (w work) forgetNode(ctx context.Context, by adapter.Member, name, prefix string) error {
	for _, words := range [][]string{
		{"delete", "node", name, "--ignore-not-found"},
		{"-n", "kube-system", "delete", "secret", name + ".node-password.rke2", "--ignore-not-found"},
	} {
		step := prefix + "forget." + words[len(words)-3] + "." + name
		if _, err := w.Do(ctx, by, step, machine.Kubectl(words...), adapter.Within(time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

// unvote removes a server from etcd where it still is a member.
func (w work) unvote(ctx context.Context, by, member adapter.Member, prefix string) error {
	list, err := w.voters(ctx, by)
	if err != nil {
		return err
	}
	for _, one := range list {
		if !one.Of(member) {
			continue
		}
		removal := machine.Etcdctl(by, "member", "remove", one.ID)
		if _, err := w.Do(ctx, by, prefix+"unvote."+one.ID, removal, adapter.Within(time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

// handOver moves the leadership of etcd from a server that is to stop to by, the server that it calls.
func (w work) handOver(ctx context.Context, by, from adapter.Member) error {
	list, err := w.voters(ctx, by)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(one machine.Voter) bool { return one.Of(from) }) {
		return nil // it has left: an earlier attempt came further, and a task would make its sandbox anew
	}
	status, err := w.ask(ctx, from, "leads", machine.Etcdctl(from, "endpoint", "status"))
	if err != nil {
		return err
	}
	if fields := strings.Split(status, ", "); len(fields) < 5 || fields[4] != "true" {
		return nil
	}
	for _, one := range list {
		if one.Of(by) {
			_, err := w.Do(ctx, from, "lead."+one.ID, machine.Etcdctl(from, "move-leader", one.ID),
				adapter.Within(machine.Quick))
			return err
		}
	}
	return adapter.Fail("NO_SUCCESSOR", adapter.OwnerNode, true, "%s is not a member of etcd", machine.Name(by))
}

// budgets are all disruption budgets, as far as they can be read: they explain, and decide nothing.
func (w work) budgets(ctx context.Context, by adapter.Member) []machine.Budget {
	var list struct{ Items []machine.Budget }
	text, err := w.ask(ctx, by, "budgets", machine.Kubectl("get", "pdb", "-A", "-o", "json"))
	if err == nil && json.Unmarshal([]byte(text), &list) != nil {
		w.Log().Info("budgets not read")
	}
	return list.Items
}
