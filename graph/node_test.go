package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/task"
	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/httpapi"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

// newNodeBench is the public API of nodes, allocations and tasks, with its sockets.
func newNodeBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	resolver := &graph.Resolver{
		DB: kit.DB, Instances: &instance.Service{DB: kit.DB}, Catalog: &catalog.Service{DB: kit.DB},
		Trust: &trust.Service{DB: kit.DB}, Entitlements: &entitlement.Service{DB: kit.DB},
		Allocations: &allocation.Service{DB: kit.DB}, Nodes: &node.Service{DB: kit.DB},
		Tasks: &task.Service{DB: kit.DB, Hub: kit.Hub},
	}
	engine, err := transport.NewEngine(transport.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: resolver}), Present: denial.Present,
		Log:        slog.New(slog.DiscardHandler),
		Extensions: []graphql.HandlerExtension{graph.Extension{Resolver: resolver}},
	})
	require.NoError(t, err)
	authenticate := func(ctx context.Context, shown transport.Credential, _ *http.Request) (context.Context, error) {
		credential, err := tx.ParseCredential(shown.Raw, kit.Ring, time.Now())
		return tx.WithCredential(authz.WithRequest(ctx, authz.RequestInfo{CorrelationID: "graph-test"}),
			credential), err
	}
	sockets, err := wsapi.New(wsapi.Options{Engine: engine, Authenticate: authenticate})
	require.NoError(t, err)
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sockets.Run(running)
	}()
	handler, err := httpapi.New(httpapi.Options{Engine: engine, BodyBytes: 1 << 20, WebSocket: sockets,
		Authenticate: authenticate})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(func() { stop(); <-ended; server.Close() })
	return &bench{Kit: kit, url: server.URL, t: t}
}

// socket is an agent's socket.
type socket struct {
	t    *testing.T
	conn *websocket.Conn
}

type frame struct {
	ID, Type string
	Payload  json.RawMessage
}

// subscribe opens a socket as the holder of the token and subscribes to its node's tasks.
func (b *bench) subscribe(token, selection string) *socket {
	b.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{wsapi.Protocol}, HandshakeTimeout: 10 * time.Second}
	conn, response, err := dialer.Dial("ws"+strings.TrimPrefix(b.url, "http"),
		http.Header{"Authorization": {"Bearer " + token}})
	require.NoError(b.t, err)
	_ = response.Body.Close()
	b.t.Cleanup(func() { _ = conn.Close() })
	s := &socket{t: b.t, conn: conn}
	require.NoError(b.t, conn.WriteJSON(map[string]any{"type": "connection_init"}))
	require.Equal(b.t, "connection_ack", s.read().Type)
	document := "subscription { nodeTasks { " + selection + " } }"
	require.NoError(b.t, conn.WriteJSON(map[string]any{"id": "1", "type": "subscribe",
		"payload": map[string]any{"query": document}}))
	return s
}

func (s *socket) read() frame {
	s.t.Helper()
	require.NoError(s.t, s.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	got := frame{Type: "ping"}
	for got.Type == "ping" { // the server asks at its own times whether we are there
		got = frame{}
		require.NoError(s.t, s.conn.ReadJSON(&got))
	}
	return got
}

// task is the next task that comes.
func (s *socket) task() db.NodeTask {
	s.t.Helper()
	got := s.read()
	require.Equal(s.t, "next", got.Type, string(got.Payload))
	var content struct {
		Data struct{ NodeTasks db.NodeTask }
	}
	require.NoError(s.t, json.Unmarshal(got.Payload, &content), string(got.Payload))
	return content.Data.NodeTasks
}

func TestATaskGoesFromTheAdapterToTheAgentAndBack(t *testing.T) {
	t.Parallel()
	b := newNodeBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	admin := b.Session(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	credential := b.enrol("gpu-1")

	var rented struct {
		RequestAllocation struct {
			Allocations []struct {
				ID, Status string
				Node       struct{ ID, Name, Isolation string }
				Instance   *struct{ ID string }
			}
		}
	}
	b.ask(admin, `mutation($p: ID!) { requestAllocation(input: {projectId: $p, shape: BAREMETAL, idempotencyKey: "k"}) {
		allocations { id status node { id name isolation } instance { id } } } }`,
		map[string]any{"p": project.ID}, &rented)
	require.Len(t, rented.RequestAllocation.Allocations, 1)
	held := rented.RequestAllocation.Allocations[0]
	require.Equal(t, "READY", held.Status)
	require.Equal(t, "gpu-1", held.Node.Name)
	require.Equal(t, "PROCESS", held.Node.Isolation)
	require.Nil(t, held.Instance)

	_, stored := b.Launchable(project, "apps")
	row, err := b.Ent.Allocation.Query().Only(t.Context())
	require.NoError(t, err)
	made := b.Instance(project, stored, lifecycle.InstanceRunning, row)
	member, err := b.Ent.Member.Query().Only(t.Context())
	require.NoError(t, err)
	operation := b.Operation(made, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	adapter := b.OperationToken(operation, authz.TaskRun, authz.TaskRead)

	agent := b.subscribe(credential, "id fence kind state spec timeoutSeconds memberId instanceId cancelRequested")
	var ran struct{ RunNodeTask struct{ ID, State string } }
	b.ask(adapter,
		`mutation($m: ID!, $s: JSON!) { runNodeTask(input: {memberId: $m, kind: RUN, spec: $s, idempotencyKey: "k"}) { id state } }`,
		map[string]any{"m": member.ID, "s": map[string]any{"command": []string{"hostname"}}}, &ran)
	require.Equal(t, "PENDING", ran.RunNodeTask.State)
	taken := agent.task()
	require.Equal(t, ran.RunNodeTask.ID, string(taken.ID))
	require.JSONEq(t, `{"command":["hostname"]}`, string(taken.Spec))

	var next struct{ AppendNodeTaskOutput int }
	b.ask(credential,
		`mutation($t: ID!) { appendNodeTaskOutput(input: {taskId: $t, fence: 1, stream: STDOUT, offset: 0, data: "gpu-1\n"}) }`,
		map[string]any{"t": taken.ID}, &next)
	require.Equal(t, 6, next.AppendNodeTaskOutput)
	var reported struct{ ReportNodeTask struct{ State string } }
	b.ask(credential,
		`mutation($t: ID!, $r: JSON) { reportNodeTask(input: {taskId: $t, fence: 1, state: SUCCEEDED, exitCode: 0, result: $r}) { state } }`,
		map[string]any{"t": taken.ID, "r": map[string]any{"exitCode": 0}}, &reported)
	var seen struct {
		NodeTask struct {
			State, Stdout string
			ExitCode      int
			Result        json.RawMessage
		}
		Node struct{ ID string }
	}
	b.ask(adapter,
		`query($t: ID!) { nodeTask(id: $t, waitSeconds: 5) { state stdout exitCode result } node(id: $t) { id } }`,
		map[string]any{"t": taken.ID}, &seen)
	require.Equal(t, "SUCCEEDED", seen.NodeTask.State)
	require.Equal(t, "gpu-1\n", seen.NodeTask.Stdout)
	require.JSONEq(t, `{"exitCode":0}`, string(seen.NodeTask.Result))
	require.Equal(t, string(taken.ID), seen.Node.ID)

	var released struct {
		ReleaseAllocation struct {
			Allocation struct {
				Status           string
				ReleaseOperation struct{ Kind string }
			}
			Operation struct{ Kind string }
		}
	}
	b.ask(admin, `mutation($a: ID!) { releaseAllocation(input: {allocationId: $a, idempotencyKey: "k"}) {
		allocation { status releaseOperation { kind } } operation { kind } } }`,
		map[string]any{"a": held.ID}, &released)
	require.Equal(t, "RELEASING", released.ReleaseAllocation.Allocation.Status)
	require.Equal(t, "ALLOCATION_RELEASE", released.ReleaseAllocation.Allocation.ReleaseOperation.Kind)
}

// enrol makes a node through the API and lets it beat once.
func (b *bench) enrol(name string) (credential string) {
	b.t.Helper()
	var invited struct{ CreateNodeEnrolment struct{ Token string } }
	b.ask(b.Session(b.Operator()), `mutation { createNodeEnrolment(input: {ttlMinutes: 5}) { token expiresAt } }`, nil,
		&invited)
	var enrolled struct{ EnrolNode struct{ Credential string } }
	b.ask(invited.CreateNodeEnrolment.Token, `mutation($n: String!, $k: String!) { enrolNode(input: {name: $n, address: "192.0.2.7", sealingKey: $k,
		agentVersion: "1", bootId: "b", inventory: {cpus: 2, memoryMiB: 1024, gpus: 1, gpusSimulated: true, isolation: PROCESS}}) { credential } }`,
		map[string]any{"n": name, "k": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}, &enrolled)
	var alive struct{ NodeHeartbeat struct{ Status string } }
	b.ask(enrolled.EnrolNode.Credential,
		`mutation { nodeHeartbeat(input: {agentVersion: "1", bootId: "b"}) { status } }`, nil, &alive)
	require.Equal(b.t, "ONLINE", alive.NodeHeartbeat.Status)
	return enrolled.EnrolNode.Credential
}

// member is an instance's member on a fresh node, with the node's credential and the adapter's token.
func (b *bench) member() (member *db.Member, credential, adapter string) {
	b.t.Helper()
	project := b.Project(b.Tenant())
	_, stored := b.Launchable(project, "apps")
	node, credential := b.Node(1)
	made := b.Instance(project, stored, lifecycle.InstanceRunning, b.Allocation(project, node))
	member, err := b.Ent.Member.Query().Only(b.t.Context())
	require.NoError(b.t, err)
	operation := b.Operation(made, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	return member, credential, b.OperationToken(operation, authz.TaskRun, authz.TaskRead)
}

func TestABacklogLargerThanASocketsQueueArrivesWhole(t *testing.T) {
	t.Parallel()
	b := newNodeBench(t)
	member, credential, adapter := b.member()
	var ran struct{ RunNodeTask struct{ ID string } }
	var wanted []string
	for i := range 20 { // 5 MB, five times what a socket's queue holds
		b.ask(adapter,
			`mutation($m: ID!, $s: JSON!, $k: String!) { runNodeTask(input: {memberId: $m, kind: WRITE_FILE, spec: $s, idempotencyKey: $k}) { id } }`,
			map[string]any{"m": member.ID, "k": fmt.Sprint("k", i),
				"s": map[string]any{"path": "/x", "content": strings.Repeat("x", 250<<10)}}, &ran)
		wanted = append(wanted, ran.RunNodeTask.ID)
	}
	b.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec, spec_digest,
		state, timeout_seconds, idempotency_key, created_at)
		SELECT 'tsk_7' || lpad(n::text, 25, '0'), tenant_id, project_id, instance_id, id, node_id, 'RESIDUE', '{}', '',
		'PENDING', 60, 'bulk-' || n, now()
		FROM member, generate_series(1, 1000) n`)
	agent := b.subscribe(credential, "id spec")
	for _, id := range wanted {
		require.Equal(t, id, string(agent.task().ID))
	}
	for n := range 1_000 {
		require.Equal(t, fmt.Sprintf("tsk_7%025d", n+1), string(agent.task().ID))
	}
}

func TestARevokedNodesSubscriptionEndsWithItsCode(t *testing.T) {
	t.Parallel()
	b := newNodeBench(t)
	_, credential, _ := b.member()
	agent := b.subscribe(credential, "id")
	b.SQL(`UPDATE node_credential SET revoked_at = now()`)
	got := agent.read()
	require.Equal(t, "error", got.Type)
	require.Contains(t, string(got.Payload), `"code":"UNAUTHENTICATED"`)
}

func TestOthersSubscriptionToNodeTasksIsRefused(t *testing.T) {
	t.Parallel()
	b := newNodeBench(t)
	got := b.subscribe(b.Session(b.Operator()), "id").read()
	require.Equal(t, "error", got.Type)
	require.Contains(t, string(got.Payload), `"code":"FORBIDDEN"`)
}
