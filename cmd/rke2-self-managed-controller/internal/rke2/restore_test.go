package rke2

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/standin"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

func TestARestoreLeavesTheOtherServersToBeRecovered(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 3)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	var saved struct{ Name, Node string }
	l.act("snapshot.save", "k1", `{"name":"night"}`, &saved)
	require.Equal(t, "mem-server0", saved.Node)
	require.True(t, strings.HasPrefix(saved.Name, "night-mem-server0-"), saved.Name)
	late := standin.Pod{Namespace: "shop", Name: "late", UID: "late", Node: "mem-server1", Kind: "ReplicaSet"}
	require.NoError(t, standin.Arrange(l.state, "mem-server0", []standin.Pod{late}, nil))

	var restored struct{ Recover []string }
	l.act("snapshot.restore", "k2", `{"snapshot":"`+saved.Name+`"}`, &restored)
	require.Equal(t, []string{"mem_server1", "mem_server2"}, restored.Recover)
	require.Equal(t, []string{"mem-server0"}, l.look("mem-server0").Voters)
	require.Empty(t, l.look("mem-server0").Pods)
	seen := l.observe()
	for i, want := range []adapter.MemberStatus{"", adapter.MemberFailed, adapter.MemberFailed} {
		require.Equal(t, want, seen.Members[i].Status)
	}
	l.members[1].Status, l.members[2].Status = "failed", "failed"
	l.carry(l.dispatch("op_2", adapter.MemberRecover, time.Minute, restored.Recover...), adapter.StateSucceeded)
	require.Len(t, l.look("mem-server0").Voters, 3)
}

func TestARestorePassesOverAServerWhoseNodeIsAway(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 3)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	var saved struct{ Name string }
	l.act("snapshot.save", "k1", `{"name":"night"}`, &saved)
	away := false
	l.members[2].Node.Reachable = &away
	var restored struct{ Recover []string }
	l.act("snapshot.restore", "k2", `{"snapshot":"`+saved.Name+`"}`, &restored)
	require.Equal(t, []string{"mem_server1", "mem_server2"}, restored.Recover)
	for _, entry := range l.stand.Since(0) {
		require.False(t, entry.Member == "mem_server2" && entry.Kind == adapter.TaskStopProcess, "%+v", entry)
	}
}

// saved begins a cluster of three servers, saves its etcd on a server, and then gives it a pod.
func (l *lab) saved(on int) (snapshot string) {
	l.t.Helper()
	l.grow(machine.Server, 3)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	var saved struct{ Name, Node string }
	for i := range on {
		l.members[i].Status = string(adapter.MemberFailed)
	}
	l.act("snapshot.save", "save", `{"name":"night"}`, &saved)
	for i := range on {
		l.members[i].Status = string(adapter.MemberActive)
	}
	require.Equal(l.t, machine.Name(l.members[on]), saved.Node)
	late := standin.Pod{Namespace: "shop", Name: "late", UID: "late", Node: "mem-server1", Kind: "ReplicaSet"}
	require.NoError(l.t, standin.Arrange(l.state, "mem-server0", []standin.Pod{late}, nil))
	return saved.Name
}

// ready waits until so many Nodes are there and Ready, by the word of a server.
func (l *lab) ready(key string, count int) {
	l.t.Helper()
	round := 0
	require.Eventually(l.t, func() bool {
		round++
		var list struct{ Nodes []struct{ Ready bool } }
		l.act("nodes.list", fmt.Sprint(key, round), `{}`, &list)
		ready := 0
		for _, node := range list.Nodes {
			if node.Ready {
				ready++
			}
		}
		return ready == count
	}, time.Minute, 20*time.Millisecond)
}

// unchanged requires that all three servers serve what they did.
func (l *lab) unchanged(key string) {
	l.t.Helper()
	l.ready(key, 3)
	view := l.look("mem-server0")
	require.Equal(l.t, []string{"mem-server0", "mem-server1", "mem-server2"}, view.Voters)
	require.Len(l.t, view.Pods, 1)
}

func TestARestoreThatDoesNotHappenLeavesTheServersServing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	snapshot := l.saved(0)
	input := `{"snapshot":"` + snapshot + `"}`
	file := `"$GPUAAS_MEMBER_ROOT` + machine.SnapshotsPath + "/" + snapshot + `"`
	l.read("mem_server0", "cp "+file+" "+file+".good; echo broken > "+file)
	code, body := l.action("snapshot.restore", "k1", input)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	for _, part := range []string{"RESTORE_FAILED", "started again on: mem-server1, mem-server2, mem-server0",
		"is incomplete"} {
		require.Contains(t, body, part)
	}
	l.unchanged("a")
	_, again := l.action("snapshot.restore", "k1", input)
	require.Equal(t, body, again, "a repeat is the same call")
	l.read("mem_server0", "mv "+file+".good "+file)

	refused := false
	l.fails = func(task sandbox.Task) bool {
		refused = refused || task.Kind == adapter.TaskStopProcess && task.MemberID == "mem_server2"
		return task.Kind == adapter.TaskStopProcess && task.MemberID == "mem_server2"
	}
	code, body = l.action("snapshot.restore", "k2", input)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.True(t, refused)
	require.Contains(t, body, "started again on: mem-server1, mem-server2; ")
	l.unchanged("b")

	l.fails = nil
	var restored struct{ Recover []string }
	l.act("snapshot.restore", "k3", input, &restored)
	require.Empty(t, l.look("mem-server0").Pods)
}

// TestARestoreGoesOnWhereEtcdWasReset resets etcd of a server that once joined another, and has it not start: nothing
// serves, and the restore is requested again.
func TestARestoreGoesOnWhereEtcdWasReset(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	snapshot := l.saved(1)
	starts := false
	l.fails = func(task sandbox.Task) bool { return !starts && task.Kind == adapter.TaskStartProcess }
	code, body := l.action("snapshot.restore", "k1", `{"snapshot":"`+snapshot+`"}`)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.Contains(t, body, "RESTORE_UNFINISHED")
	for i := range l.members {
		l.members[i].Status = string(adapter.MemberFailed) // as they are observed meanwhile
	}
	starts = true
	var restored struct {
		Node    string
		Recover []string
	}
	l.act("snapshot.restore", "k2", `{"snapshot":"`+snapshot+`"}`, &restored)
	require.Equal(t, "mem-server1", restored.Node)
	require.Equal(t, []string{"mem-server1"}, l.look("mem-server1").Voters)
	l.members[1].Status = string(adapter.MemberActive)
	l.carry(l.dispatch("op_2", adapter.MemberRecover, time.Minute, restored.Recover...), adapter.StateSucceeded)
	require.Len(t, l.look("mem-server1").Voters, 3)
	require.Empty(t, l.look("mem-server1").Pods)
}

// TestAClusterWithoutAnAPIAfterAnUpgradeIsRescued has the only server not come up with the new release.
func TestAClusterWithoutAnAPIAfterAnUpgradeIsRescued(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	l.grow(machine.Agent, 1)
	old, next := standin.Releases[0], standin.Releases[1]
	create := l.dispatch("op_1", adapter.InstanceCreate, time.Minute)
	create.Instance.Config = ofRelease(old)
	l.carry(create, adapter.StateSucceeded)
	before := standin.Pod{Namespace: "shop", Name: "early", UID: "early", Node: "mem-agent1", Kind: "ReplicaSet"}
	require.NoError(t, standin.Arrange(l.state, "mem-server0", []standin.Pod{before}, nil))
	l.fails = func(task sandbox.Task) bool {
		return task.Kind == adapter.TaskStartProcess && bytes.Contains(task.Spec, []byte(next))
	}
	l.carry(l.moved("op_2", adapter.InstanceUpgrade, old, next), adapter.StateFailed)
	require.Equal(t, adapter.MemberFailed, l.observe().Members[0].Status)
	l.members[0].Status = string(adapter.MemberFailed)
	back := l.carry(l.moved("op_3", adapter.InstanceRollback, next, old), adapter.StateFailed)
	require.Equal(t, "NO_SERVER", back.Error.Code)

	var list struct{ Snapshots []struct{ Name string } }
	l.act("snapshots.list", "k1", `{}`, &list)
	require.Len(t, list.Snapshots, 1)
	require.True(t, strings.HasPrefix(list.Snapshots[0].Name, machine.UpgradeName(old)), list.Snapshots[0].Name)
	var restored struct{ Recover []string }
	l.act("snapshot.restore", "k2", `{"snapshot":"`+list.Snapshots[0].Name+`"}`, &restored)
	require.Empty(t, restored.Recover)
	l.members[0].Status = string(adapter.MemberActive)
	require.Equal(t, every(old, 2), l.runs("mem-server0"))
	require.Len(t, l.look("mem-server0").Pods, 1)
	l.ready("n", 2)
}

// TestARollbackPassesOverAServerWhoseNodeIsAway goes back past a release while a server's and an agent's node are away:
// neither gets a task, and a recovery has the server join again.
func TestARollbackPassesOverAServerWhoseNodeIsAway(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 3)
	l.grow(machine.Agent, 2)
	old, next := standin.Releases[0], standin.Releases[1]
	create := l.dispatch("op_1", adapter.InstanceCreate, time.Minute)
	create.Instance.Config = ofRelease(old)
	l.carry(create, adapter.StateSucceeded)
	l.carry(l.moved("op_2", adapter.InstanceUpgrade, old, next), adapter.StateSucceeded)
	away := false
	l.members[2].Node.Reachable, l.members[4].Node.Reachable = &away, &away
	require.Contains(t, l.plan(l.moved("", adapter.InstanceRollback, next, old)).Message, "do not answer: mem-server2")
	status := l.carry(l.moved("op_3", adapter.InstanceRollback, next, old), adapter.StateSucceeded)
	require.Contains(t, string(status.Evidence["restored"]), `"recover":["mem_server2"]`)
	require.Equal(t, string(adapter.MemberFailed), l.members[2].Status)
	require.Equal(t, []string{"mem-server0", "mem-server1"}, l.look("mem-server0").Voters)
	for _, entry := range l.stand.Since(0) {
		require.False(t, strings.HasPrefix(entry.Key, "op_3.") &&
			(entry.Member == "mem_server2" || entry.Member == "mem_agent4"), entry.Key)
	}
	l.members[2].Node.Reachable = nil
	recovery := l.dispatch("op_4", adapter.MemberRecover, time.Minute, "mem_server2")
	recovery.Instance.Config = ofRelease(old)
	l.carry(recovery, adapter.StateSucceeded)
	require.Len(t, l.look("mem-server0").Voters, 3)
}
