package rke2

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/standin"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	platform "github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// TestMain makes this test's own program the stand-in of RKE2 where it is called as one.
func TestMain(m *testing.M) {
	if os.Getenv(standin.StateVar) != "" {
		os.Exit(standin.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// lab is a platform with nodes that have the stand-in of RKE2, and the controller's app behind it.
type lab struct {
	*sandbox.Nodes

	t           *testing.T
	stand       *platform.Platform
	grant       *platform.Grant
	self, state string
	base, name  string
	members     []adapter.Member
	grown       int
	// hook sees each node task before it is done.
	hook func(sandbox.Task)
	// fails says which node tasks fail without being done.
	fails func(sandbox.Task) bool
}

// Do implements the platform's nodes.
func (l *lab) Do(ctx context.Context, task sandbox.Task) sandbox.Outcome {
	task.InstanceID = "ins_1" // the token of these tests is for every instance
	if err := standin.Install(ctx, l.Nodes, task, l.self, l.state); err != nil {
		return sandbox.Outcome{State: adapter.TaskFailed, Message: err.Error()}
	}
	if l.hook != nil {
		l.hook(task)
	}
	if l.fails != nil && l.fails(task) {
		return sandbox.Outcome{State: adapter.TaskFailed, Message: "the test has it fail"}
	}
	return l.Nodes.Do(ctx, task)
}

// bareLab is a lab without a controller.
func bareLab(t *testing.T) *lab {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	plain, err := sandbox.New(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(plain.Close)
	plain.Artifacts = &sandbox.Artifacts{}
	l := &lab{Nodes: plain, t: t, self: self, state: t.TempDir(), name: "rke2"}
	l.stand, err = platform.Start("127.0.0.1:0", l)
	require.NoError(t, err)
	t.Cleanup(l.stand.Stop)
	l.grant = l.stand.Open("token")
	return l
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := bareLab(t)
	manifest, err := os.ReadFile("../../manifest.json")
	require.NoError(t, err)
	app, err := App(manifest, t.TempDir())
	require.NoError(t, err)
	kit, err := adapter.New(adapter.Config{Name: "rke2", Build: "test", Apps: []adapter.App{app}, StateDir: t.TempDir(),
		Issuer: l.stand.URL, Keys: adapter.NewKeySet(l.stand.URL+"/.well-known/jwks.json", nil)})
	require.NoError(t, err)
	require.NoError(t, kit.Start(context.Background()))
	served := httptest.NewServer(kit.Handler())
	t.Cleanup(func() { kit.Stop(); served.Close() })
	l.base = served.URL
	return l
}

// grow adds members of a component that are still to join, and returns their ids.
func (l *lab) grow(component string, count int) (ids []string) {
	for range count {
		n := l.grown
		l.grown++
		id := fmt.Sprintf("mem_%s%d", component, n)
		l.members = append(l.members, adapter.Member{ID: id, ComponentKey: component, Index: n, Status: "pending",
			Node: adapter.Node{ID: "nod_" + id, Name: "node", Address: fmt.Sprintf("127.0.8.%d", n+1),
				Shape: "baremetal", SealingKey: l.SealingKey()}})
		ids = append(ids, id)
	}
	return ids
}

func (l *lab) send(method, target string, body any, out any) (int, string) {
	l.t.Helper()
	code, raw, err := l.try(method, target, body)
	require.NoError(l.t, err)
	if out != nil && code < 300 {
		require.NoError(l.t, json.Unmarshal(raw, out), "%s", raw)
	}
	return code, string(raw)
}

// try sends a request. The error is that of a request without an answer.
func (l *lab) try(method, target string, body any) (code int, raw []byte, err error) {
	l.t.Helper()
	var sent []byte
	if body != nil {
		sent, err = json.Marshal(body)
		require.NoError(l.t, err)
	}
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.base+target, bytes.NewReader(sent))
	require.NoError(l.t, err)
	token, err := l.stand.Sign(l.name, method, req.URL.RequestURI(), sent)
	require.NoError(l.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(adapter.HeaderPlatformToken, "token")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	raw, err = io.ReadAll(resp.Body)
	return resp.StatusCode, raw, err
}

func (l *lab) dispatch(id string, kind adapter.Kind, within time.Duration, targets ...string) adapter.Dispatch {
	counts := map[string]int{}
	for _, member := range l.members {
		counts[member.ComponentKey]++
	}
	if kind == adapter.MemberRemove {
		for _, member := range l.members {
			if slices.Contains(targets, member.ID) {
				counts[member.ComponentKey]--
			}
		}
	}
	return adapter.Dispatch{OperationID: id, Kind: kind, Attempt: 1, Deadline: time.Now().Add(within),
		CorrelationID: "c",
		Instance: adapter.Instance{ID: "ins_1", Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "rke2",
			Version: "1.1.0", Config: json.RawMessage(`{}`), Components: []adapter.ComponentCount{
				{Key: machine.Server, Count: counts[machine.Server]},
				{Key: machine.Agent, Count: counts[machine.Agent]}}},
		Members: l.members, Targets: targets, Platform: l.grant.Access()}
}

// until sends a dispatch and reads its status until it is as wanted.
func (l *lab) until(id string, wanted func(adapter.Status) bool) (status adapter.Status) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		l.send(http.MethodGet, adapter.OperationPath(id), nil, &status)
		return wanted(status)
	}, time.Minute, 20*time.Millisecond, "%+v", &status)
	return status
}

func (l *lab) begin(d adapter.Dispatch) {
	l.t.Helper()
	code, body := l.send(http.MethodPut, adapter.OperationPath(d.OperationID), d, nil)
	require.Equal(l.t, http.StatusAccepted, code, body)
}

// carry carries an operation out, and sets the members' statuses to those that it reports.
func (l *lab) carry(d adapter.Dispatch, wanted adapter.State) adapter.Status {
	l.t.Helper()
	l.begin(d)
	status := l.until(d.OperationID, func(s adapter.Status) bool { return s.State.Terminal() })
	require.Equal(l.t, wanted, status.State, "%+v", status.Error)
	var left []adapter.Member
	for _, member := range l.members {
		for _, said := range status.Members {
			if said.ID == member.ID {
				member.Status = string(said.Status)
			}
		}
		if member.Status != string(adapter.MemberRemoved) {
			left = append(left, member)
		}
	}
	l.members = left
	return status
}

func (l *lab) look(node string) standin.View {
	l.t.Helper()
	view, err := standin.Look(l.state, node)
	require.NoError(l.t, err)
	return view
}

// pods puts two pods on a Node: of the first a budget allows no disruption.
func (l *lab) pods(node, kept, free string) {
	l.t.Helper()
	require.NoError(l.t, standin.Arrange(l.state, node, []standin.Pod{
		{Namespace: "shop", Name: kept, UID: kept, Node: node, Kind: "ReplicaSet",
			Labels: map[string]string{"app": kept}},
		{Namespace: "shop", Name: free, UID: free, Node: node, Kind: "ReplicaSet"},
	}, []standin.Budget{{Namespace: "shop", Name: kept, Labels: map[string]string{"app": kept}}},
		standin.Event{Namespace: "shop", Name: kept, Type: "Warning", Reason: "FailedScheduling",
			Message: "0/2 nodes are \"free\"\nnow"}))
}

// read returns what a member's shell prints.
func (l *lab) read(id, script string) string {
	l.t.Helper()
	spec, err := json.Marshal(adapter.RunCommand{Command: []string{"sh", "-c", script}})
	require.NoError(l.t, err)
	out := l.Nodes.Do(l.t.Context(), sandbox.Task{InstanceID: "ins_1", MemberID: id, Kind: adapter.TaskRun, Spec: spec,
		Timeout: time.Minute})
	raw, err := json.Marshal(out.Result)
	require.NoError(l.t, err)
	var said struct{ Stdout string }
	require.NoError(l.t, json.Unmarshal(raw, &said))
	return said.Stdout
}

func TestALeadingServerLeavesAfterItHandedOverAndNothingRemembersIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 3)
	l.grow(machine.Agent, 1)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	view := l.look("mem-server0")
	require.Equal(t, "mem-server0", view.Leader)
	require.Equal(t, []string{"mem-server0", "mem-server1", "mem-server2"}, view.Voters)
	require.Len(t, view.Nodes, 4)

	ofServer := strings.TrimSpace(l.read("mem_server0", `cat "$GPUAAS_MEMBER_ROOT/etc/rancher/rke2/token"`))
	require.Len(t, ofServer, 2*passwordSize)
	require.NotEmpty(t, l.read("mem_agent3", `cat "$GPUAAS_MEMBER_ROOT/etc/rancher/rke2/token"`))
	require.Empty(t, l.read("mem_agent3", `grep -r `+ofServer+` "$GPUAAS_MEMBER_ROOT"`),
		"an agent gets its own token only")

	status := l.carry(l.dispatch("op_2", adapter.MemberRemove, time.Minute, "mem_server0"), adapter.StateSucceeded)
	require.Contains(t, status.Evidence, "forgotten")
	require.Contains(t, status.Evidence, "residue")
	view = l.look("mem-server1")
	require.Equal(t, "mem-server1", view.Leader, "it was handed over to the server that was asked")
	require.Equal(t, []string{"mem-server1", "mem-server2"}, view.Voters)
	require.Equal(t, []string{"mem-agent3", "mem-server1", "mem-server2"}, view.Nodes)
	require.Equal(t, view.Nodes, view.Passwords)

	code, body := l.send(http.MethodPut, adapter.OperationPath("op_3"),
		l.dispatch("op_3", adapter.MemberRemove, time.Minute, "mem_server1", "mem_server2"), nil)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	status = l.carry(l.dispatch("op_4", adapter.InstanceDecommission, time.Minute), adapter.StateSucceeded)
	require.Contains(t, status.Evidence, "residue")
}

func TestAJoinThatFailsLeavesNoMemberOfEtcd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	ids := l.grow(machine.Server, 2)
	require.NoError(t, standin.FailJoins(l.state, "mem-server1"))
	d := l.dispatch("op_2", adapter.MembersAdd, 8*time.Second, ids...)
	d.Change = json.RawMessage(`{"components":[{"key":"server","count":2}]}`)
	l.begin(d)
	require.Eventually(t, func() bool {
		return len(l.look("mem-server0").Voters) == 2
	}, time.Minute, 10*time.Millisecond,
		"the member that never started is in etcd meanwhile")
	status := l.until("op_2", func(s adapter.Status) bool { return s.State.Terminal() })
	require.Equal(t, adapter.StateFailed, status.State)
	view := l.look("mem-server0")
	require.Equal(t, []string{"mem-server0"}, view.Voters)
	require.Equal(t, []string{"mem-server0"}, view.Nodes)
	require.Equal(t, []string{"mem-server0"}, view.Passwords)

	l.members[1].Status, l.members[2].Status = string(adapter.MemberFailed), string(adapter.MemberFailed)
	l.carry(l.dispatch("op_3", adapter.MemberRemove, time.Minute, ids...), adapter.StateSucceeded)
	require.Equal(t, []string{"mem-server0"}, l.look("mem-server0").Nodes)
}

func TestADrainNamesThePodAndTheBudgetThatItWaitsFor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 1)
	l.grow(machine.Agent, 1)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	pods := []standin.Pod{
		{Namespace: "shop", Name: "web-1", UID: "u1", Node: "mem-agent1", Kind: "ReplicaSet",
			Labels: map[string]string{"app": "web"}},
		{Namespace: "shop", Name: "free-1", UID: "u2", Node: "mem-agent1", Kind: "ReplicaSet"},
		{Namespace: "kube-system", Name: "canal-x", UID: "u3", Node: "mem-agent1", Kind: "DaemonSet"},
	}
	keep := standin.Budget{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}
	require.NoError(t, standin.Arrange(l.state, "mem-agent1", pods, []standin.Budget{keep}))
	l.begin(l.dispatch("op_2", adapter.MemberDrain, time.Minute, "mem_agent1"))
	status := l.until("op_2", func(s adapter.Status) bool { return s.State.Terminal() || len(s.WaitsFor) == 1 })
	require.Equal(t, adapter.StateRunning, status.State)
	require.Equal(t, "shop/web-1", status.WaitsFor[0].Name)
	require.Contains(t, status.WaitsFor[0].Message, "shop/web allows 0")

	left := l.look("mem-agent1").Pods
	require.Len(t, left, 2, "the pod without a budget was evicted, that of the daemon set stays")
	keep.Allowed = 1
	require.NoError(t, standin.Arrange(l.state, "mem-agent1", left, []standin.Budget{keep}))
	status = l.until("op_2", func(s adapter.Status) bool { return s.State.Terminal() })
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.Len(t, l.look("mem-agent1").Pods, 1)
}
