package rke2

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// voter is a member of etcd, as etcdctl lists it.
type voter struct{ id, name, peer string }

// suffix is what RKE2 puts behind a node's name for its etcd.
var suffix = regexp.MustCompile(`^-[0-9a-f]{8}$`)

// of reports whether it is, or was to be, that of a member: one that never started has no name, but an address.
func (v voter) of(member adapter.Member) bool {
	rest, ok := strings.CutPrefix(v.name, nodeName(member))
	return ok && suffix.MatchString(rest) || v.name == "" && v.peer == "https://"+member.Host()+":2380"
}

// voters are the members of etcd now, as a server lists them.
func (w work) voters(ctx context.Context, on adapter.Member) ([]voter, error) {
	text, err := w.ask(ctx, on, "voters", etcdctl(on, "member", "list"))
	if err != nil {
		return nil, err
	}
	var list []voter
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ", ")
		if len(fields) >= 4 {
			list = append(list, voter{id: fields[0], name: fields[2], peer: fields[3]})
		}
	}
	if len(list) == 0 {
		return nil, adapter.Fail("ETCD_SILENT", adapter.OwnerNode, true, "etcd on %s lists no members", nodeName(on))
	}
	return list, nil
}

// ask runs a command that only looks, and returns what it prints.
func (w work) ask(ctx context.Context, on adapter.Member, step string, command adapter.RunCommand) (string, error) {
	result, err := w.Look(ctx, on, step, command, adapter.Within(quick))
	if err == nil && result.State != adapter.TaskSucceeded {
		err = adapter.Fail(adapter.CodeNodeTask, adapter.OwnerNode, true, "%s on %s: %s %s", step, nodeName(on),
			result.Message, strings.TrimSpace(result.Stderr))
	}
	return result.Stdout, err
}

// stop stops a member's RKE2 in good order. A node that does not answer is passed over: what it runs is proved gone,
// or is not, by the teardown.
func (w work) stop(ctx context.Context, member adapter.Member, prefix string) error {
	if !w.Reaches(member) {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	_, err := w.Try(bounded, member, prefix+"stop", adapter.StopProcess{Name: process}, adapter.Within(time.Minute))
	if err != nil && context.Cause(ctx) == nil {
		w.Log().Info("member not stopped", "member", member.ID, "error", err)
	}
	return context.Cause(ctx)
}

// forget removes what the cluster remembers of a member that has stopped: its etcd, its Node, and the Node's password.
func (w work) forget(ctx context.Context, by, member adapter.Member, prefix string) error {
	name := nodeName(member)
	if member.ComponentKey == server {
		if err := w.unvote(ctx, by, member, prefix); err != nil {
			return err
		}
	}
	for _, words := range [][]string{
		{"delete", "node", name, "--ignore-not-found"},
		{"-n", "kube-system", "delete", "secret", name + ".node-password.rke2", "--ignore-not-found"},
	} {
		step := prefix + "forget." + words[len(words)-3] + "." + name
		if _, err := w.Do(ctx, by, step, kubectl(words...), adapter.Within(time.Minute)); err != nil {
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
		if !one.of(member) {
			continue
		}
		removal := etcdctl(by, "member", "remove", one.id)
		if _, err := w.Do(ctx, by, prefix+"unvote."+one.id, removal, adapter.Within(time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

// handOver moves the leadership of etcd from a server that is to stop to the one that was asked.
func (w work) handOver(ctx context.Context, by, from adapter.Member) error {
	list, err := w.voters(ctx, by)
	if err != nil {
		return err
	}
	status, err := w.ask(ctx, from, "leads", etcdctl(from, "endpoint", "status"))
	if err != nil {
		return err
	}
	if fields := strings.Split(status, ", "); len(fields) < 5 || fields[4] != "true" {
		return nil
	}
	for _, one := range list {
		if one.of(by) {
			_, err := w.Do(ctx, from, "lead."+one.id, etcdctl(from, "move-leader", one.id), adapter.Within(quick))
			return err
		}
	}
	return adapter.Fail("NO_SUCCESSOR", adapter.OwnerNode, true, "%s is no member of etcd", nodeName(by))
}

// pod is a pod that a drain has to get rid of.
type pod struct {
	Namespace, Name, UID, Since, Owner string
	Labels                             map[string]string
}

// podsTemplate prints a line for each pod: what pod has, and whether it is a static one.
const podsTemplate = `{{range .items}}{{.metadata.namespace}} {{.metadata.name}} {{.metadata.uid}} ` +
	`{{.metadata.creationTimestamp}} {{.status.phase}} |{{range .metadata.ownerReferences}}{{.kind}}{{end}}|` +
	`{{range $k, $v := .metadata.annotations}}{{if eq $k "kubernetes.io/config.mirror"}}static{{end}}{{end}}|` +
	`{{range $k, $v := .metadata.labels}}{{$k}}={{$v}} {{end}}{{"\n"}}{{end}}`

func podsOn(node string) adapter.RunCommand {
	return kubectl("get", "pods", "-A", "--field-selector=spec.nodeName="+node, "-o", "go-template="+podsTemplate)
}

// podsOf reads what podsOn prints, without those that stay with their node or have ended.
func podsOf(text string) (list []pod) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 4)
		head := strings.Fields(parts[0])
		if len(parts) < 4 || len(head) < 5 || parts[1] == "DaemonSet" || parts[1] == "Node" || parts[2] == "static" ||
			head[4] == "Succeeded" || head[4] == "Failed" {
			continue
		}
		one := pod{Namespace: head[0], Name: head[1], UID: head[2], Since: head[3], Owner: parts[1],
			Labels: map[string]string{}}
		for _, pair := range strings.Fields(parts[3]) {
			key, value, _ := strings.Cut(pair, "=")
			one.Labels[key] = value
		}
		list = append(list, one)
	}
	return list
}

// budget is a disruption budget.
type budget struct {
	Metadata struct{ Namespace, Name string }
	Spec     struct {
		Selector struct{ MatchLabels map[string]string }
	}
	Status struct{ DisruptionsAllowed int }
}

// covers reports whether it may be about a pod. Expressions are not read, so that it may cover fewer.
func (b budget) covers(p pod) bool {
	if b.Metadata.Namespace != p.Namespace {
		return false
	}
	for key, value := range b.Spec.Selector.MatchLabels {
		if p.Labels[key] != value {
			return false
		}
	}
	return true
}

// work says what a drain waits for: the pod, and the budget that keeps it where it is known.
func (p pod) work(member adapter.Member, budgets []budget) adapter.Work {
	since, _ := time.Parse(time.RFC3339, p.Since)
	message := "it has not ended yet"
	for _, b := range budgets {
		if b.covers(p) && b.Status.DisruptionsAllowed == 0 {
			message = fmt.Sprintf("the disruption budget %s/%s allows 0 disruptions now", b.Metadata.Namespace, b.Metadata.Name)
		}
	}
	return adapter.Work{Kind: "pod", ID: p.UID, Name: p.Namespace + "/" + p.Name, MemberID: member.ID, Owner: p.Owner,
		Since: since.UTC(), Message: message}
}

// budgets are all disruption budgets, as far as they can be read: they explain, and decide nothing.
func (w work) budgets(ctx context.Context, by adapter.Member) []budget {
	var list struct{ Items []budget }
	text, err := w.ask(ctx, by, "budgets", kubectl("get", "pdb", "-A", "-o", "json"))
	if err == nil && json.Unmarshal([]byte(text), &list) != nil {
		w.Log().Info("budgets not read")
	}
	return list.Items
}
