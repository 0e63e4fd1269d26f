package machine

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Pod is a pod that a drain has to get rid of.
type Pod struct {
	Namespace, Name, UID, Since, Owner string
	Labels                             map[string]string
}

// podsTemplate prints a line for each pod: what pod has, and whether it is a static one.
const podsTemplate = `{{range .items}}{{.metadata.namespace}} {{.metadata.name}} {{.metadata.uid}} ` +
	`{{.metadata.creationTimestamp}} {{.status.phase}} |{{range .metadata.ownerReferences}}{{.kind}}{{end}}|` +
	`{{range $k, $v := .metadata.annotations}}{{if eq $k "kubernetes.io/config.mirror"}}static{{end}}{{end}}|` +
	`{{range $k, $v := .metadata.labels}}{{$k}}={{$v}} {{end}}{{"\n"}}{{end}}`

// PodsOn lists the pods of a Node that have not ended: the ended ones, of jobs, may be any number.
func PodsOn(node string) adapter.RunCommand {
	return Kubectl("get", "pods", "-A", "--field-selector=spec.nodeName="+node+
		",status.phase!=Succeeded,status.phase!=Failed", "-o", "go-template="+podsTemplate)
}

// PodsOf reads what PodsOn has printed, without those that stay with their node or have ended. More says that there are
// others, which the node has cut off.
func PodsOf(result adapter.TaskResult) (list []Pod, more bool) {
	for line := range wholeLines(result) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 4)
		head := strings.Fields(parts[0])
		if len(parts) < 4 || len(head) < 5 || parts[1] == "DaemonSet" || parts[1] == "Node" || parts[2] == "static" ||
			head[4] == "Succeeded" || head[4] == "Failed" {
			continue
		}
		one := Pod{Namespace: head[0], Name: head[1], UID: head[2], Since: head[3], Owner: parts[1],
			Labels: map[string]string{}}
		for _, pair := range strings.Fields(parts[3]) {
			key, value, _ := strings.Cut(pair, "=")
			one.Labels[key] = value
		}
		list = append(list, one)
	}
	return list, result.Truncated
}

// wholeLines are the lines that a command has printed. Of more than a node keeps it keeps the end, whose first line may
// be a part.
func wholeLines(result adapter.TaskResult) iter.Seq[string] {
	text := result.Stdout
	if result.Truncated {
		_, text, _ = strings.Cut(text, "\n")
	}
	return strings.Lines(text)
}

// Budget is a disruption budget.
type Budget struct {
	Metadata struct{ Namespace, Name string }
	Spec     struct{ Selector Selector }
	Status   struct{ DisruptionsAllowed int }
}

// Selector chooses pods by their labels; all of it holds.
type Selector struct {
	MatchLabels      map[string]string
	MatchExpressions []struct {
		Key, Operator string
		Values        []string
	}
}

// Covers reports whether it is about a pod.
func (b Budget) Covers(p Pod) bool {
	if b.Metadata.Namespace != p.Namespace {
		return false
	}
	for key, value := range b.Spec.Selector.MatchLabels {
		if p.Labels[key] != value {
			return false
		}
	}
	for _, one := range b.Spec.Selector.MatchExpressions {
		value, has := p.Labels[one.Key]
		listed := has && slices.Contains(one.Values, value)
		if held, known := map[string]bool{"In": listed, "NotIn": !listed, "Exists": has,
			"DoesNotExist": !has}[one.Operator]; !known || !held {
			return false
		}
	}
	return true
}

// Work says what a drain waits for: the pod, and the budget that keeps it where it is known.
func (p Pod) Work(member adapter.Member, budgets []Budget) adapter.Work {
	since, _ := time.Parse(time.RFC3339, p.Since)
	message := "it has not ended yet"
	for _, b := range budgets {
		if b.Covers(p) && b.Status.DisruptionsAllowed == 0 {
			message = fmt.Sprintf("the disruption budget %s/%s allows 0 disruptions now", b.Metadata.Namespace,
				b.Metadata.Name)
		}
	}
	return adapter.Work{Kind: "pod", ID: p.UID, Name: p.Namespace + "/" + p.Name, MemberID: member.ID, Owner: p.Owner,
		Since: since.UTC(), Message: message}
}

// Eviction asks the eviction API for the end of a pod; its budgets decide.
func Eviction(p Pod) adapter.RunCommand {
	ask := Kubectl("create", "--raw=/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name+"/eviction", "-f", "-")
	ask.Stdin = fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`,
		p.Name, p.Namespace)
	return ask
}
