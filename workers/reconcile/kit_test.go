package reconcile_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/workers"
	"github.com/gpuaas/app-platform/workers/parts"
	"github.com/gpuaas/app-platform/workers/reconcile"
)

// patience is how long a test waits for a state.
const patience = 60 * time.Second

var pace = parts.Pace{Poll: 300 * time.Millisecond, Task: 100 * time.Millisecond, Round: 100 * time.Millisecond}

// lab is a platform without its API: a database, an adapter that answers as scripted, agents that beat and answer
// tasks, and workers or a lone reconciler on demand.
type lab struct {
	*platformtest.Kit
	testing.TB
	log     *slog.Logger
	project *db.Project
	reader  *db.User
	node    *db.ComputeNode
	app     *db.App
	adapter *db.Adapter
	stored  *db.Manifest
	script  *script

	beats  sync.Mutex // guards silent; held while an agent beats
	mu     sync.Mutex
	silent map[ids.ID]bool
	answer func(task *db.NodeTask) (lifecycle.NodeTaskState, string) // "" leaves the task open
}

// script is the adapter: its answers by "METHOD path", with ids left out.
type script struct {
	mu       sync.Mutex
	server   *httptest.Server
	answers  map[string]func(r *http.Request, body []byte) (int, any)
	attempts map[string]int // of the operations that it was sent
}

// raw is an answer that is not JSON of ours.
type raw string

// newLab lays down a tenant, a project with an app, a node, and an adapter without answers but an empty feed.
func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{Kit: platformtest.New(t), TB: t, log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		silent: make(map[ids.ID]bool), answer: healthy}
	if os.Getenv("WORKERS_TEST_LOG") != "" {
		l.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	l.script = &script{attempts: make(map[string]int), answers: make(map[string]func(*http.Request, []byte) (int, any))}
	l.script.server = httptest.NewServer(l.script)
	t.Cleanup(func() {
		l.script.server.CloseClientConnections()
		l.script.server.Close()
	})
	l.feed()
	tenant := l.Tenant()
	l.project = l.Kit.Project(tenant)
	l.reader = l.User(tenant, platformtest.In(authz.ProjectViewer, l.project))
	l.app = l.App("apps")
	l.adapter = l.Adapter(l.script.server.URL, nil)
	document := platformtest.Document(l.app, "1.0.0", l.adapter, l.Artifact(lifecycle.StageActive))
	document["readiness"] = []map[string]any{{"componentKey": "worker", "name": "answers",
		"probe": map[string]any{"exec": map[string]any{"command": []string{"true"}}, "attempts": 1,
			"intervalSeconds": 1, "timeoutSeconds": 1}}}
	l.stored = l.Manifest(lifecycle.StageActive, document)
	l.Entitle(l.project, l.app)
	l.node, _ = l.Node(0)
	l.background(l.agents)
	return l
}

// ServeHTTP implements http.Handler.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	name := r.Method + " " + path(r.URL.Path)
	s.mu.Lock()
	answer := s.answers[name]
	s.mu.Unlock()
	code, out := http.StatusNotFound, any(adapter.ErrorBody{Code: "NOT_FOUND", Message: "unknown"})
	if answer != nil {
		code, out = answer(r, body)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if text, ok := out.(raw); ok {
		_, _ = io.WriteString(w, string(text))
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

// path is a URL's path with {id} for each id.
func path(of string) string {
	parts := strings.Split(of, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "op_") || strings.HasPrefix(part, "ins_") {
			parts[i] = "{id}"
		}
	}
	return strings.Join(parts, "/")
}

// on sets the adapter's answer to a route.
func (l *lab) on(name string, answer func(r *http.Request, body []byte) (int, any)) {
	l.script.mu.Lock()
	defer l.script.mu.Unlock()
	l.script.answers[name] = answer
}

// always is the same answer every time.
func always(code int, out any) func(*http.Request, []byte) (int, any) {
	return func(*http.Request, []byte) (int, any) { return code, out }
}

// feed is an empty feed that answers after a moment.
func (l *lab) feed() {
	l.on("GET /v1/operations", func(r *http.Request, _ []byte) (int, any) {
		select {
		case <-r.Context().Done():
		case <-time.After(200 * time.Millisecond):
		}
		return http.StatusOK, adapter.OperationsPage{Epoch: "e1", Cursor: "1", Operations: []adapter.Status{}}
	})
}

// status makes the adapter accept everything and report this of it at each request.
func (l *lab) status(says adapter.Status) {
	say := func(id string, attempt int) adapter.Status {
		out := says
		out.OperationID, out.Attempt = id, attempt
		return out
	}
	mu, attempts := &l.script.mu, l.script.attempts
	l.on("PUT /v1/operations/{id}", func(_ *http.Request, body []byte) (int, any) {
		var d adapter.Dispatch
		_ = json.Unmarshal(body, &d)
		mu.Lock()
		defer mu.Unlock()
		attempts[d.OperationID] = d.Attempt
		return http.StatusAccepted, say(d.OperationID, d.Attempt)
	})
	l.on("GET /v1/operations/{id}", func(r *http.Request, _ []byte) (int, any) {
		id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		mu.Lock()
		defer mu.Unlock()
		return http.StatusOK, say(id, attempts[id])
	})
}

// observes is what the adapter sees of every instance.
func (l *lab) observes(seen adapter.Observation) {
	l.on("GET /v1/instances/{id}", func(r *http.Request, _ []byte) (int, any) {
		out := seen
		out.InstanceID, out.ObservedAt = r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], time.Now()
		return http.StatusOK, out
	})
}

// background runs something until the test ends, and waits for it.
func (l *lab) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil {
			l.log.Error("background", "error", err)
		}
	}()
	stop = func() { cancel(); <-done }
	l.Cleanup(stop)
	return stop
}

// work starts a worker process in this one.
func (l *lab) work() (stop func()) {
	return l.background(func(ctx context.Context) error {
		return workers.Run(ctx, workers.Config{DB: l.DB, Hub: l.Hub, Keys: l.Ring, Dial: dial.Loopback(),
			PlatformURL: "http://127.0.0.1:1/graphql", Log: l.log, Pace: pace})
	})
}

// reconcile starts a reconciler without any worker.
func (l *lab) reconcile() (*reconcile.Reconciler, func()) { return l.damped(time.Millisecond) }

// damped starts a reconciler that looks again at what got worse after confirm.
func (l *lab) damped(confirm time.Duration) (*reconcile.Reconciler, func()) {
	client := adapterclient.New(l.Ring, dial.Loopback())
	l.Cleanup(client.Close)
	r := reconcile.New(reconcile.Config{DB: l.DB, Hub: l.Hub, Client: client, Keys: l.Ring, Log: l.log,
		Confirm: confirm, NodeGrace: time.Hour})
	return r, l.background(r.Run)
}

// agents beat for every node that is not silenced, and answer tasks as agents' reports would.
func (l *lab) agents(ctx context.Context) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		nodes, err := l.Ent.ComputeNode.Query().All(ctx)
		if err != nil {
			continue
		}
		for _, node := range nodes {
			l.beats.Lock()
			if !l.silent[node.ID] && node.Status != lifecycle.NodeRetired {
				l.beat(ctx, node.ID)
			}
			l.beats.Unlock()
		}
	}
}

func (l *lab) beat(ctx context.Context, node ids.ID) {
	_, _ = l.Admin.Exec(ctx, `UPDATE compute_node SET last_seen_at = now(), status = 'ONLINE' WHERE id = $1
		AND (last_seen_at < now() - interval '1 second' OR status <> 'ONLINE')`, node)
	tasks, err := l.Ent.NodeTask.Query().All(ctx)
	if err != nil {
		return
	}
	for _, task := range tasks {
		if task.NodeID != node || task.EndedAt != nil {
			continue
		}
		l.mu.Lock()
		state, result := l.answer(task)
		l.mu.Unlock()
		if state == "" {
			continue
		}
		_, _ = l.Admin.Exec(ctx,
			`UPDATE node_task SET state = $2, result = $3, started_at = now(), ended_at = now() WHERE id = $1
				AND ended_at IS NULL`,
			task.ID, state, []byte(result))
		_, _ = l.Admin.Exec(ctx, `SELECT platform.wake_operation($1)`, task.OperationID)
		l.Hub.Wake(event.QueueTopic)
	}
}

// silence has a node's agent fall silent, some time ago. A beat under way has ended when it returns: one that ended
// later would undo what is written here.
func (l *lab) silence(node ids.ID, ago time.Duration) {
	l.beats.Lock()
	l.silent[node] = true
	l.beats.Unlock()
	l.until("the last beat has passed", func() bool {
		l.SQL(`UPDATE compute_node SET last_seen_at = $2 WHERE id = $1`, node, time.Now().Add(-ago))
		seen := l.Ent.ComputeNode.GetX(l.Context(), node).LastSeenAt
		return time.Since(*seen) >= ago
	})
}

// speak has a silenced agent beat again.
func (l *lab) speak(node ids.ID) {
	l.beats.Lock()
	defer l.beats.Unlock()
	delete(l.silent, node)
}

// answering changes what the agents say.
func (l *lab) answering(answer func(task *db.NodeTask) (lifecycle.NodeTaskState, string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
}
