package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/people"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Actions returns the app's own verbs.
func Actions() map[string]adapter.ActionFunc {
	actions := people.Actions()
	maps.Copy(actions, map[string]adapter.ActionFunc{
		"nodes.list": listNodes, "pods.list": listPods, "events.list": listEvents,
		"node.drain": drainNode, "node.uncordon": uncordonNode,
		"snapshots.list": listAllSnapshots, "snapshot.save": saveSnapshot, "snapshot.restore": restoreSnapshot,
		"image.bring": bringImage,
	})
	return actions
}

const (
	// maxEvents and maxPods bound what actions list.
	maxEvents = 100
	maxPods   = 500
)

// eventsTemplate prints a line for each event, its fields apart by tabs.
const eventsTemplate = `{{range .items}}{{.lastTimestamp}}{{"\t"}}{{.type}}{{"\t"}}{{.reason}}{{"\t"}}` +
	`{{.involvedObject.kind}}{{"\t"}}{{.involvedObject.namespace}}{{"\t"}}{{.involvedObject.name}}{{"\t"}}` +
	`{{printf "%.300q" .message}}{{"\n"}}{{end}}`

// eventsCommand prints the newest events.
func eventsCommand() adapter.RunCommand {
	return adapter.RunCommand{Command: machine.Shell(machine.KubectlHead+machine.Plain+
		` get events -A --sort-by=.lastTimestamp -o "go-template=$1" | tail -n `+fmt.Sprint(maxEvents), eventsTemplate)}
}

// listEvents lists the newest events of all namespaces, the newest first.
func listEvents(ctx context.Context, call *adapter.Call) (any, error) {
	on, err := machine.Asked(call)
	if err != nil {
		return nil, err
	}
	result, err := call.Do(ctx, on, "events", eventsCommand(), adapter.Within(machine.Quick))
	if err != nil {
		return nil, err
	}
	list := []map[string]any{}
	for line := range strings.Lines(result.Stdout) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 7 {
			continue
		}
		var message string
		if json.Unmarshal([]byte(fields[6]), &message) != nil {
			message = fields[6] // quoted as Go does, where JSON has no such escape
		}
		list = append([]map[string]any{{"at": known(fields[0]), "type": known(fields[1]), "reason": known(fields[2]),
			"object":  strings.ToLower(fields[3]) + " " + strings.TrimPrefix(known(fields[4])+"/"+fields[5], "/"),
			"message": message}}, list...)
	}
	return map[string]any{"events": list}, nil
}

// known is a field of a template, which prints what is not there as such.
func known(field string) string { return strings.ReplaceAll(field, "<no value>", "") }

// place is which member an action is about.
type place struct {
	Component string `json:"component"`
	Index     int    `json:"index"`
}

// member finds the member of an action.
func (p place) member(call *adapter.Call) (adapter.Member, error) {
	for _, member := range call.Of(p.Component) {
		if member.Index == p.Index {
			return member, nil
		}
	}
	return adapter.Member{}, adapter.Reject("NO_SUCH_MEMBER", "input.index", "there is no %s of number %d", p.Component,
		p.Index)
}

// subject returns the member of an action, and the server to read about it from.
func subject(call *adapter.Call) (member, by adapter.Member, err error) {
	var at place
	if err = json.Unmarshal(call.Input, &at); err != nil {
		return member, by, err
	}
	if member, err = at.member(call); err == nil {
		by, err = machine.Asked(call)
	}
	return member, by, err
}

// drainNode cordons a Node and asks once for the eviction of each of its pods; budgets decide. It waits for none: who
// wants that has the platform's own drain.
func drainNode(ctx context.Context, call *adapter.Call) (any, error) {
	member, by, err := subject(call)
	if err != nil {
		return nil, err
	}
	name := machine.Name(member)
	if _, err := call.Do(ctx, by, "cordon", machine.Kubectl("cordon", name),
		adapter.Within(machine.Quick)); err != nil {
		return nil, err
	}
	result, err := call.Do(ctx, by, "pods", machine.PodsOn(name), adapter.Within(machine.Quick))
	if err != nil {
		return nil, err
	}
	evicted, left := 0, []map[string]any{}
	pods, more := machine.PodsOf(result)
	for _, one := range pods {
		said, err := call.Try(ctx, by, "evict."+one.UID, machine.Eviction(one), adapter.Within(machine.Quick))
		switch {
		case err != nil:
			return nil, err
		case said.State == adapter.TaskSucceeded:
			evicted++
		case !strings.Contains(said.Stderr, "NotFound"):
			left = append(left, map[string]any{"namespace": one.Namespace, "name": one.Name,
				"reason": brief(said.Stderr)})
		}
	}
	return map[string]any{"node": name, "evicted": evicted, "left": left, "more": more}, nil
}

// brief is the first line of what a program complained of, at most 300 bytes.
func brief(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 300)], "?")
}

func uncordonNode(ctx context.Context, call *adapter.Call) (any, error) {
	member, by, err := subject(call)
	if err != nil {
		return nil, err
	}
	_, err = call.Do(ctx, by, "uncordon", machine.Kubectl("uncordon", machine.Name(member)),
		adapter.Within(machine.Quick))
	return map[string]any{"node": machine.Name(member)}, err
}

// listAllSnapshots lists the snapshots of every server that can be reached, the newest first.
func listAllSnapshots(ctx context.Context, call *adapter.Call) (any, error) {
	held, ok := allSnapshots(ctx, call)
	if !ok {
		return nil, adapter.Fail("NO_SERVER", adapter.OwnerNode, true, "not every server reports its snapshots")
	}
	list := []map[string]any{}
	for _, one := range held {
		list = append([]map[string]any{one.View()}, list...)
	}
	return map[string]any{"snapshots": list}, nil
}

// saveSnapshot makes a snapshot now, on the first server that serves.
func saveSnapshot(ctx context.Context, call *adapter.Call) (any, error) {
	input := struct{ Name string }{Name: "manual"}
	var config machine.Config
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, err
	}
	if err := decode(call.Instance.Config, &config); err != nil {
		return nil, err
	}
	on, err := machine.Asked(call)
	if err != nil {
		return nil, err
	}
	if _, err := call.Do(ctx, on, "save", machine.Save(config, input.Name),
		adapter.Within(machine.SaveTime)); err != nil {
		return nil, err
	}
	result, err := call.Do(ctx, on, "saved", machine.ListSnapshots(), adapter.Within(machine.Quick))
	if err != nil {
		return nil, err
	}
	made, ok := machine.Newest(machine.SnapshotsOf(on, result.Stdout), input.Name+"-")
	if !ok {
		return nil, adapter.Fail("SNAPSHOT_MISSING", adapter.OwnerNode, true, "%s does not list its new snapshot",
			machine.Name(on))
	}
	return made.View(), nil
}
