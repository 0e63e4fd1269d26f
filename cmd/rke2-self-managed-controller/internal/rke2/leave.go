package rke2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// retry is the pause between two rounds of evictions.
	retry = time.Second
	// maxRetry bounds it as rounds go by.
	maxRetry = 15 * time.Second
)

// drain empties members and reports them drained. When it fails or is canceled, it puts them back in service.
func drain(ctx context.Context, w work) error {
	targets := w.Targets()
	if err := w.empty(ctx, targets, targets); err != nil {
		return w.reopen(ctx, targets, err)
	}
	for _, member := range targets {
		if err := w.Member(member.ID, adapter.MemberDrained, adapter.HealthUnknown, nil); err != nil {
			return err
		}
	}
	return nil
}

// empty cordons members and evicts their pods until none is left. Budgets are honoured for as long as the operation
// has; with force the pods are deleted instead. It calls the members in out only where no other can answer.
func (w work) empty(ctx context.Context, targets, out []adapter.Member) error {
	by, err := w.witness(out)
	if err != nil {
		if by, err = w.witness(nil); err != nil {
			return err
		}
	}
	w.Progress("cordoning", 20, machine.Names(targets)+" takes no new pods")
	for _, member := range targets {
		if err := w.Member(member.ID, adapter.MemberDraining, adapter.HealthUnknown, nil); err != nil {
			return err
		}
		result, err := w.Try(ctx, by, "cordon."+machine.Name(member), machine.Kubectl("cordon", machine.Name(member)))
		if err != nil {
			return err
		}
		if result.State != adapter.TaskSucceeded && !strings.Contains(result.Stderr, "NotFound") {
			return adapter.Fail(adapter.CodeNodeTask, adapter.OwnerNode, true, "%s was not cordoned: %s",
				machine.Name(member), strings.TrimSpace(result.Stderr))
		}
	}
	lost := 0
	for _, member := range targets {
		ended, err := w.evict(ctx, by, member)
		if err != nil {
			return err
		}
		lost += ended
	}
	w.WaitsFor(nil)
	return w.Evidence("drained", map[string]any{"podsLeft": 0, "podsGone": lost, "force": w.Force(),
		"nodes": len(targets), "seenAt": time.Now().UTC()})
}

// evict gets rid of a member's pods and returns how many there were.
func (w work) evict(ctx context.Context, by, member adapter.Member) (seen int, err error) {
	wait := retry
	for round := 1; ; round++ {
		pods, more, err := w.pods(ctx, by, member)
		if err != nil {
			return seen, err
		}
		seen = max(seen, len(pods))
		if len(pods) == 0 && !more {
			return seen, nil
		}
		for _, one := range pods {
			if _, err := w.Try(ctx, by, fmt.Sprintf("evict.%s.%d", one.UID, round), w.eviction(one)); err != nil {
				return seen, err
			}
		}
		if err := w.await(ctx, by, member); err != nil {
			return seen, err
		}
		if err := machine.Pause(ctx, wait); err != nil {
			return seen, err
		}
		wait = min(wait*3/2, maxRetry)
	}
}

// await says what is waited for.
func (w work) await(ctx context.Context, by, member adapter.Member) error {
	pods, _, err := w.pods(ctx, by, member)
	if err != nil {
		return err
	}
	budgets, list := w.budgets(ctx, by), []adapter.Work{}
	for _, one := range pods {
		list = append(list, one.Work(member, budgets))
	}
	w.WaitsFor(list)
	if len(list) > 0 {
		w.Progress("evicting", 40, fmt.Sprintf("%d pods are left on %s; %s: %s", len(list), machine.Name(member),
			list[0].Name, list[0].Message))
	}
	return nil
}

// eviction requests the end of a pod: by the eviction API, which heeds budgets, or with force by a deletion.
func (w work) eviction(p machine.Pod) adapter.RunCommand {
	if w.Force() {
		return machine.Kubectl("-n", p.Namespace, "delete", "pod", p.Name, "--force", "--grace-period=0",
			"--ignore-not-found")
	}
	return machine.Eviction(p)
}

// reopen puts members back in service after a drain that did not come to its end, and returns the reason.
func (w work) reopen(ctx context.Context, targets []adapter.Member, reason error) error {
	clean, cancel := w.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return reason // this is not the end: the operation goes on
	}
	w.WaitsFor(nil)
	for _, member := range targets {
		status := adapter.MemberActive
		if member.Status == string(adapter.MemberDrained) || member.Status == string(adapter.MemberFailed) {
			status = adapter.MemberStatus(member.Status) // it was out of service before
		}
		by, err := w.witness(nil)
		if err == nil && !member.Cordoned && status == adapter.MemberActive {
			_, err = w.Try(clean, by, "reopen."+machine.Name(member), machine.Kubectl("uncordon", machine.Name(member)),
				adapter.Within(machine.Quick))
		}
		if err = errors.Join(err, w.Member(member.ID, status, adapter.HealthUnknown, nil)); err != nil {
			w.Log().Warn("member not put back in service", "member", member.ID, "error", err)
		}
	}
	return reason
}

// remove empties members, takes them out of the cluster one by one, and tears them down.
func remove(ctx context.Context, w work) error {
	targets := w.Targets()
	err := w.empty(ctx, targets, targets)
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		return w.reopen(ctx, targets, err)
	}
	return w.leave(ctx, targets)
}

// leave takes empty members out: a server hands over what it leads, stops, and only then leaves etcd. From here on the
// operation cannot be undone.
func (w work) leave(ctx context.Context, targets []adapter.Member) error {
	by, err := w.witness(targets)
	if err != nil {
		return err
	}
	for i, member := range targets {
		w.Progress("leaving", 60+20*i/len(targets), machine.Name(member)+" leaves the cluster")
		if member.ComponentKey == machine.Server && w.Reaches(member) && member.Status != string(adapter.MemberFailed) {
			if err := w.handOverOnce(ctx, by, member); err != nil {
				return err
			}
		}
		if err := w.end(ctx, member, "leave."); err != nil {
			return err
		}
		if err := w.forget(ctx, by, member, "leave."); err != nil {
			return err
		}
	}
	if err := w.proveGone(ctx, by, targets); err != nil {
		return err
	}
	w.Progress("tearing down", 80, "deleting what "+machine.Names(targets)+" left")
	return w.Teardown(ctx, targets)
}

// handOverOnce hands over what a server leads. One that does not answer any more, because an earlier attempt has
// stopped it or its node is away, leads nothing: etcd has chosen another.
func (w work) handOverOnce(ctx context.Context, by, member adapter.Member) error {
	err := w.handOver(ctx, by, member)
	if err == nil || context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	list, lookErr := w.voters(ctx, by)
	if lookErr != nil {
		return lookErr
	}
	w.Log().Info("leadership of etcd not handed over", "member", member.ID, "voters", len(list), "error", err)
	return nil
}

// proveGone keeps as evidence that neither etcd nor the API knows the members.
func (w work) proveGone(ctx context.Context, by adapter.Member, targets []adapter.Member) error {
	list, err := w.voters(ctx, by)
	if err != nil {
		return err
	}
	for _, one := range list {
		for _, member := range targets {
			if one.Of(member) {
				return adapter.Fail("ETCD_MEMBER_LEFT", adapter.OwnerAdapter, true,
					"etcd still has the member %s", one.Name)
			}
		}
	}
	return w.Evidence("forgotten", map[string]any{"nodes": len(targets), "etcdMembers": len(list),
		"seenBy": machine.Name(by)})
}

// replace brings the new member in before the old one goes out.
func replace(ctx context.Context, w work) error {
	var by adapter.ReplaceChange
	if err := w.Change(&by); err != nil {
		return err
	}
	old, fresh := w.Targets(), []adapter.Member{}
	for _, member := range w.Dispatch().Members {
		if member.ID == by.ReplacementID {
			fresh = append(fresh, member)
		}
	}
	sponsor, err := w.witness(fresh)
	if err == nil {
		err = w.joinAll(ctx, fresh, sponsor)
	}
	if err != nil {
		return w.takeBack(ctx, fresh, err)
	}
	// From here on the new one answers calls about the cluster: it may be the only other server.
	for i := range fresh {
		fresh[i].Status = string(adapter.MemberActive)
	}
	w.joined = fresh
	if err = w.empty(ctx, old, old); err == nil {
		err = w.Commit()
	}
	if err != nil {
		return w.takeBack(ctx, fresh, w.reopen(ctx, old, err))
	}
	return w.leave(ctx, old)
}

// decommission stops the agents, then the servers, and has each node prove that nothing is left.
func decommission(ctx context.Context, w work) error {
	w.meter.Settle(ctx, w.Run)
	servers, agents := w.Of(machine.Server), w.Of(machine.Agent)
	for i, members := range [][]adapter.Member{agents, servers} {
		w.Progress("stopping", 10+20*i, fmt.Sprintf("stopping %d members", len(members)))
		err := w.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
			return w.end(ctx, member, "")
		})
		if err != nil {
			return err
		}
	}
	w.Progress("tearing down", 50, "deleting what the members left")
	return w.Teardown(ctx, append(agents, servers...))
}

func cordon(ctx context.Context, w work) error { return w.doors(ctx, "cordon") }

// uncordon lets pods in again whatever kept them out, also a drain.
func uncordon(ctx context.Context, w work) error { return w.doors(ctx, "uncordon") }

func (w work) doors(ctx context.Context, verb string) error {
	by, err := w.witness(nil)
	if err != nil {
		return err
	}
	for _, member := range w.Targets() {
		if _, err := w.Do(ctx, by, verb+"."+machine.Name(member),
			machine.Kubectl(verb, machine.Name(member))); err != nil {
			return err
		}
		if verb == "uncordon" && member.Status == string(adapter.MemberDrained) {
			if err := w.Member(member.ID, adapter.MemberActive, adapter.Healthy, nil); err != nil {
				return err
			}
		}
	}
	return w.Evidence(verb+"ed", machine.Names(w.Targets()))
}

// labelPrefix begins the labels that come from the platform, and no others.
const labelPrefix = "member.gpuaas.app/"

// labelsTemplate prints a line for each Node: its name and the keys of its labels.
const labelsTemplate = `{{range .items}}{{.metadata.name}}` +
	`{{range $k, $v := .metadata.labels}} {{$k}}{{end}}{{"\n"}}{{end}}`

// label gives the targets' Nodes the whole new set of labels, and takes from them those that the platform gave
// before.
func label(ctx context.Context, w work) error {
	var change adapter.LabelChange
	if err := w.Change(&change); err != nil {
		return err
	}
	by, err := w.witness(nil)
	if err != nil {
		return err
	}
	text, err := w.ask(ctx, by, "labels", machine.Kubectl("get", "nodes", "-o", "go-template="+labelsTemplate))
	if err != nil {
		return err
	}
	for _, member := range w.Targets() {
		words := []string{"--overwrite", "label", "node", machine.Name(member)}
		for line := range strings.Lines(text) {
			keys := strings.Fields(line)
			for _, key := range keys[1:] {
				short, ours := strings.CutPrefix(key, labelPrefix)
				if _, kept := change.Labels[short]; keys[0] == machine.Name(member) && ours && !kept {
					words = append(words, key+"-")
				}
			}
		}
		for key, value := range change.Labels {
			words = append(words, labelPrefix+key+"="+value)
		}
		slices.Sort(words[4:])
		if _, err := w.Do(ctx, by, "label."+machine.Name(member), machine.Kubectl(words...)); err != nil {
			return err
		}
	}
	return w.Evidence("labels", change.Labels)
}
