package rke2

import (
	"encoding/json"
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

func ofRelease(release string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"release":%q,"upgradeBatch":2}`, release))
}

// moved is a dispatch of a change of the release.
func (l *lab) moved(id string, kind adapter.Kind, from, to string) adapter.Dispatch {
	l.t.Helper()
	d := l.dispatch(id, kind, time.Minute)
	d.Instance.Config = ofRelease(to)
	change, err := json.Marshal(adapter.VersionChange{
		From: adapter.VersionConfig{Version: "1.1.0", Config: ofRelease(from)},
		To:   adapter.VersionConfig{Version: "1.1.0", Config: ofRelease(to)}})
	require.NoError(l.t, err)
	d.Change = change
	return d
}

// runs are the releases of the cluster's Nodes.
func (l *lab) runs(node string) (list []string) {
	return append(list, l.look(node).Releases...)
}

func every(release string, count int) (list []string) {
	for range count {
		list = append(list, release)
	}
	return list
}

func TestAnUpgradeSavesEtcdAndGoesServerByServerAndARollbackRestores(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 3)
	l.grow(machine.Agent, 3)
	old, next, far := standin.Releases[0], standin.Releases[1], standin.Releases[2]
	create := l.dispatch("op_1", adapter.InstanceCreate, time.Minute)
	create.Instance.Config = ofRelease(old)
	l.carry(create, adapter.StateSucceeded)
	require.Equal(t, every(old, 6), l.runs("mem-server0"))

	code, body := l.send(http.MethodPut, adapter.OperationPath("op_2"),
		l.moved("op_2", adapter.InstanceUpgrade, old, far), nil)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.Contains(t, body, "go from v1.36.3+rke2r1 to v1.37 first, then to v1.38.0+rke2r1")
	other := l.moved("op_2", adapter.InstanceUpgrade, old, next)
	other.Change = json.RawMessage(strings.Replace(string(other.Change), `"upgradeBatch"`,
		`"cni":"none","upgradeBatch"`, 1))
	code, body = l.send(http.MethodPut, adapter.OperationPath("op_2"), other, nil)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.Contains(t, body, "change.to.config.cni")

	plan := l.plan(l.moved("", adapter.InstanceUpgrade, "", far))
	require.Equal(t, adapter.VerdictUnsafe, plan.Verdict, "what the nodes run counts where the configuration is silent")
	require.Equal(t, "MINOR_SKIPPED", plan.Reasons[0].Code)
	plan = l.plan(l.moved("", adapter.InstanceUpgrade, old, next))
	require.Equal(t, adapter.VerdictSafe, plan.Verdict, "%+v", plan)
	require.Contains(t, plan.Message, "3 servers restart with v1.37.1+rke2r1 one by one, then 3 agents, 2 at a time")

	status := l.carry(l.moved("op_3", adapter.InstanceUpgrade, old, next), adapter.StateSucceeded)
	require.Equal(t, every(next, 6), l.runs("mem-server0"))
	require.Contains(t, status.Evidence, "snapshot")
	require.Len(t, l.look("mem-server0").Voters, 3)
	l.awayAtOnce("op_3", "mem-server", "renew.ready.etcd.", 3, 1)
	l.awayAtOnce("op_3", "mem-agent", "renew.ready.node.", 3, 2)

	// What was written to the cluster after the upgrade is lost with the rollback, and its plan states it.
	pod := standin.Pod{Namespace: "shop", Name: "late", UID: "late", Node: "mem-agent3", Kind: "ReplicaSet"}
	require.NoError(t, standin.Arrange(l.state, "mem-server0", []standin.Pod{pod}, nil))
	plan = l.plan(l.moved("", adapter.InstanceRollback, next, old))
	require.Equal(t, adapter.VerdictSafe, plan.Verdict, "a rollback has no force, so that nothing else would let it")
	require.False(t, plan.Reversible)
	require.Equal(t, "STATE_LOST", plan.Reasons[0].Code)
	require.Equal(t, "state", plan.WorkLost[0].Kind)
	require.Contains(t, plan.Message, "is lost")
	code, body = l.send(http.MethodPut, adapter.OperationPath("op_4"),
		l.moved("op_4", adapter.InstanceUpgrade, next, old), nil)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.Contains(t, body, "roll back")

	// A server that the upgrade has broken does not stop the rollback, although it stops another change.
	stop, err := json.Marshal(adapter.StopProcess{Name: machine.Process})
	require.NoError(t, err)
	stopped := l.Nodes.Do(t.Context(), sandbox.Task{InstanceID: "ins_1", MemberID: "mem_server2",
		Kind: adapter.TaskStopProcess, Spec: stop, Timeout: time.Minute})
	require.Equal(t, adapter.TaskSucceeded, stopped.State, stopped.Message)
	again := l.carry(l.moved("op_4b", adapter.InstanceRollback, old, next), adapter.StateFailed)
	require.Equal(t, "SERVER_NOT_READY", again.Error.Code)

	status = l.carry(l.moved("op_5", adapter.InstanceRollback, next, old), adapter.StateSucceeded)
	require.Contains(t, status.Evidence, "restored")
	view := l.look("mem-server0")
	require.Equal(t, every(old, 6), l.runs("mem-server0"))
	require.Empty(t, view.Pods)
	require.Equal(t, []string{"mem-server0", "mem-server1", "mem-server2"}, view.Voters)
	require.Len(t, view.Nodes, 6)
	l.carry(l.dispatch("op_6", adapter.InstanceDecommission, time.Minute), adapter.StateSucceeded)
}

// awayAtOnce requires that so many members were restarted, and that never more of them were away at once.
func (l *lab) awayAtOnce(operation, nodes, serves string, count, most int) {
	l.t.Helper()
	stopped, ready := 0, 0
	for _, entry := range l.stand.Since(0) {
		of := machine.Name(adapter.Member{ID: entry.Member})
		switch {
		case !strings.HasPrefix(entry.Key, operation+"."):
		case strings.HasSuffix(entry.Key, ".renew.stop") && strings.HasPrefix(of, nodes):
			stopped++
			require.LessOrEqual(l.t, stopped-ready, most, "%s was stopped while others were away", of)
		case strings.Contains(entry.Key, "."+serves+nodes):
			require.Equal(l.t, adapter.TaskSucceeded, entry.State)
			ready++
		}
	}
	require.Equal(l.t, count, stopped)
	require.Equal(l.t, count, ready)
}

func (l *lab) plan(d adapter.Dispatch) (answer adapter.PlanAnswer) {
	l.t.Helper()
	code, body := l.send(http.MethodPost, adapter.PlansPath, adapter.PlanRequest{Kind: d.Kind, Instance: d.Instance,
		Members: d.Members, Targets: d.Targets, Change: d.Change, CorrelationID: "c", Platform: d.Platform}, &answer)
	require.Equal(l.t, http.StatusOK, code, body)
	return answer
}

func TestAReleaseThatANodeLacksStopsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	create := l.dispatch("op_1", adapter.InstanceCreate, time.Minute)
	create.Instance.Config = ofRelease(standin.Releases[0])
	l.carry(create, adapter.StateSucceeded)
	status := l.carry(l.moved("op_2", adapter.InstanceUpgrade, standin.Releases[0], "v1.37.9+rke2r1"),
		adapter.StateFailed)
	require.Equal(t, "RELEASE_MISSING", status.Error.Code)
	for _, entry := range l.stand.Since(0) {
		require.False(t, strings.HasPrefix(entry.Key, "op_2.") && entry.Kind == adapter.TaskStopProcess, entry.Key)
	}
	// The manifest may bring it: the program is fetched, and its images where RKE2 imports them from.
	d := l.moved("op_3", adapter.InstanceUpgrade, standin.Releases[0], "v1.37.9+rke2r1")
	d.Instance.Artifacts = []adapter.Artifact{
		{Name: "rke2", Digest: l.Artifacts.Put([]byte(standin.Script(l.self, l.state, "v1.37.9+rke2r1")))},
		{Name: "rke2-images", Digest: l.Artifacts.Put([]byte("images")), MediaType: "application/vnd.oci.tar+zstd"}}
	l.carry(d, adapter.StateSucceeded)
	require.Equal(t, []string{"v1.37.9+rke2r1"}, l.runs("mem-server0"))
	require.Equal(t, "images", l.read("mem_server0",
		`cat "$GPUAAS_MEMBER_ROOT"/var/lib/rancher/rke2/agent/images/*.tar.zst`))
}

// act carries an action out.
func (l *lab) act(name, key, input string, out any) {
	l.t.Helper()
	code, body := l.action(name, key, input)
	require.Equal(l.t, http.StatusOK, code, body)
	var result adapter.ActionResult
	require.NoError(l.t, json.Unmarshal([]byte(body), &result))
	require.NoError(l.t, json.Unmarshal(result.Output, out))
}

func (l *lab) action(name, key, input string) (code int, body string) {
	l.t.Helper()
	d := l.dispatch("", adapter.InstanceCreate, time.Minute)
	return l.send(http.MethodPost, adapter.ActionPath("ins_1", name),
		adapter.ActionRequest{Input: json.RawMessage(input),
			IdempotencyKey: key, Requester: adapter.Requester{ID: "usr_1", Kind: "user"}, Instance: d.Instance,
			Members: d.Members, Platform: d.Platform}, nil)
}

func (l *lab) observe() (seen adapter.Observation) {
	l.t.Helper()
	code, body := l.send(http.MethodGet, adapter.InstancePath("ins_1"), nil, &seen)
	require.Equal(l.t, http.StatusOK, code, body)
	return seen
}
