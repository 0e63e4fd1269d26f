package standin

import (
	"encoding/json"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

// occupy keeps a pod with a budget that allows no disruption on the node of a data folder, until it is stopped: work
// that a drain waits for. Its arguments are the node's name and the name of the pod.
func occupy(s store, args []string) error {
	pod := Pod{Namespace: "default", Name: args[1], UID: args[1], Node: args[0], Kind: "ReplicaSet",
		Labels: map[string]string{"app": args[1]}, Held: true}
	key := s.clusterOf(args[0])
	live, err := os.OpenFile(s.livePath(key, "pod."+pod.UID), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer live.Close()
	if err := syscall.Flock(int(live.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	err = s.change(key, func(c *cluster) error {
		c.Pods = append(c.Pods, pod)
		c.Budgets = append(c.Budgets, Budget{Namespace: pod.Namespace, Name: "keep-" + pod.Name, Labels: pod.Labels})
		return nil
	})
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	return nil
}

// clusterOf returns the cluster that has a node of this name.
func (s store) clusterOf(node string) string {
	paths, _ := filepath.Glob(s.path("c*"))
	for _, path := range paths {
		var c cluster
		if raw, err := os.ReadFile(path); err == nil && json.Unmarshal(raw, &c) == nil && c.Nodes[node] != nil {
			base := filepath.Base(path)
			return base[:len(base)-len(".json")]
		}
	}
	return ""
}

// View is what a test looks at in a cluster.
type View struct {
	// Leader is the Node whose etcd leads, and Voters are the Nodes of all members of etcd, started or not.
	Leader string
	Voters []string
	// Nodes and Passwords are the names of the Nodes, and of those whose password is kept.
	Nodes, Passwords []string
	// Releases are those of the Nodes, in the order of their names.
	Releases []string
	// Requests is how many certificate requests are left, and Bindings are the groups with their roles.
	Requests int
	Bindings []string
	// Applied are the kinds and names of what lists have brought.
	Applied []string
	// Pods are all pods, and Budgets all budgets.
	Pods    []Pod
	Budgets []Budget
}

// Look returns the cluster in a folder that has a Node of this name.
func Look(dir, node string) (View, error) {
	s := store{dir: dir}
	c, err := s.read(s.clusterOf(node))
	if err != nil {
		return View{}, err
	}
	view := View{Leader: c.Leader, Nodes: slices.Sorted(maps.Keys(c.Nodes)),
		Passwords: slices.Sorted(maps.Keys(c.Passwords)), Requests: len(c.Requests),
		Bindings: slices.Sorted(maps.Keys(c.Bindings)), Applied: slices.Sorted(maps.Keys(c.Applied)), Pods: c.Pods,
		Budgets: c.Budgets}
	for _, name := range view.Nodes {
		view.Releases = append(view.Releases, c.Nodes[name].Release)
	}
	for _, m := range c.Etcd {
		view.Voters = append(view.Voters, m.Node)
	}
	slices.Sort(view.Voters)
	return view, nil
}

// Arrange gives the cluster in a folder that has a Node of this name these pods, budgets and events.
func Arrange(dir, node string, pods []Pod, budgets []Budget, events ...Event) error {
	s := store{dir: dir}
	return s.change(s.clusterOf(node), func(c *cluster) error {
		c.Pods, c.Budgets, c.Events = pods, budgets, events
		return nil
	})
}

// RefuseApprovals has no certificate request approved.
func RefuseApprovals(dir string) error {
	return os.WriteFile(filepath.Join(dir, refusesApprovals), nil, 0o600)
}

// refusesApprovals is the file whose presence refuses approvals.
const refusesApprovals = "fail.approvals"

// FailJoins has every start of a Node fail after etcd has its unstarted member.
func FailJoins(dir, node string) error {
	return os.WriteFile(filepath.Join(dir, "fail."+node), nil, 0o600)
}
