package workers_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/ent/generated/db/nodetask"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/workers"
	"github.com/gpuaas/app-platform/workers/parts"
)

// patience is how long a test waits for a state, on a machine with ten times as much to do as it has processors; the
// pace makes the waiting short. lookEvery is the pause between two looks, each of which costs the database a query.
const (
	patience  = 2 * time.Minute
	lookEvery = 50 * time.Millisecond
)

var pace = parts.Pace{Poll: 300 * time.Millisecond, Task: 100 * time.Millisecond, Round: 50 * time.Millisecond,
	Grace: 5 * time.Second}

// lab is a platform without its API: a database, workers on demand, an agent that answers tasks, and
// the two endpoints that adapters use.
type lab struct {
	testing.TB
	pg       place
	db       *tx.DB
	hub      *event.Hub
	ring     *token.Keyring
	keyDir   string
	own      *db.Client // as the owner of the tables
	platform *httptest.Server
	log      *slog.Logger
	pace     parts.Pace
	traces   *telemetry.Source // nil for none
	metrics  *metrics.Set      // nil for none

	mu     sync.Mutex
	answer func(task *db.NodeTask) (lifecycle.NodeTaskState, string) // "" leaves the task open
	asked  map[ids.ID]int
}

// place is where the database is.
type place interface {
	AdminDSN() string
	OwnerDSN() string
}

// fewConnections are the most of each login role: one more costs a test more than what it does there.
const fewConnections = 4

// newLab starts everything but workers.
func newLab(t testing.TB) *lab {
	t.Helper()
	return newLabOn(t, pgtest.New(t))
}

// newLabOn is newLab on a migrated database.
func newLabOn(t testing.TB, pg place) *lab {
	t.Helper()
	l := &lab{TB: t, pace: pace, pg: pg, asked: make(map[ids.ID]int), answer: healthy, keyDir: t.TempDir()}
	l.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	if os.Getenv("WORKERS_TEST_LOG") != "" {
		l.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	ctx := t.Context()
	mux := http.NewServeMux()
	l.platform = httptest.NewServer(mux)
	t.Cleanup(l.platform.Close)
	var err error
	l.ring, err = token.LoadKeyring(l.keyDir, l.platform.URL)
	require.NoError(t, err)
	l.db, err = tx.Open(ctx, l.pg.AdminDSN(), tx.Options{Connections: fewConnections})
	require.NoError(t, err)
	t.Cleanup(l.db.Close)
	l.hub = event.NewHub(l.db.Worker(), l.log)
	l.db.SetHints(l.hub)
	l.background(l.hub.Run)
	owner, err := sql.Open("pgx", l.pg.OwnerDSN())
	require.NoError(t, err)
	t.Cleanup(func() { _ = owner.Close() })
	l.own = db.NewClient(db.Driver(entsql.OpenDB(dialect.Postgres, owner)))
	mux.HandleFunc("POST /graphql", l.graphql)
	mux.HandleFunc("GET /.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		set, _ := l.ring.Public()
		_, _ = w.Write(set)
	})
	l.background(l.agent)
	return l
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
func (l *lab) work() (stop func()) { return l.background(l.workers) }

func (l *lab) workers(ctx context.Context) error {
	return workers.Run(ctx, workers.Config{
		DB: l.db, Hub: l.hub, Keys: l.ring, Dial: dial.Loopback(), PlatformURL: l.platform.URL + "/graphql", Log: l.log,
		Pace: l.pace, Traces: l.traces, Metrics: l.metrics,
	})
}

// graphql is the part of the public API that an adapter uses to report.
func (l *lab) graphql(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Variables struct {
			Input struct {
				OperationID    ids.ID
				Attempt        int
				Phase, Message *string
				Percent        *int
			}
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	in := body.Variables.Input
	_, err := operation.Report(l.caller(r.Header.Get("Authorization")), l.db, operation.ReportInput{
		OperationID: in.OperationID, Attempt: in.Attempt, Phase: in.Phase, Message: in.Message, Percent: in.Percent})
	if err != nil {
		_, _ = fmt.Fprintf(w, `{"errors":[{"message":%q,"extensions":{"code":"FAILED"}}]}`, err)
		return
	}
	_, _ = fmt.Fprintf(w, `{"data":{"reportOperation":{"id":%q}}}`, in.OperationID)
}

// caller is a context with a bearer token as the API reads it.
func (l *lab) caller(authorization string) context.Context {
	credential, err := tx.ParseCredential(authorization[len("Bearer "):], l.ring, time.Now())
	if err != nil {
		return context.Background()
	}
	return tx.WithCredential(context.Background(), credential)
}

// healthy is an agent on which every probe passes and nothing is left.
func healthy(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
	if task.Kind == lifecycle.TaskProbe {
		return lifecycle.TaskSucceeded, `{"ok":true,"attempts":1,"detail":"fine"}`
	}
	return lifecycle.TaskSucceeded,
		`{"residue":{"sandbox":false,"processes":[],"mounts":[],"files":0,"bytes":0,"names":[]}}`
}

// answering changes what the agent says.
func (l *lab) answering(answer func(task *db.NodeTask) (lifecycle.NodeTaskState, string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
}

// agent answers node tasks as an agent's reports would: the row, the operation's wake-up, the hint.
func (l *lab) agent(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		tasks, err := l.own.NodeTask.Query().Where(nodetask.EndedAtIsNil()).All(ctx)
		if err != nil {
			continue
		}
		for _, task := range tasks {
			l.do(ctx, task)
		}
	}
}

func (l *lab) do(ctx context.Context, task *db.NodeTask) {
	l.mu.Lock()
	state, result := l.answer(task)
	l.mu.Unlock()
	if state == "" {
		return
	}
	now := time.Now()
	_, _ = l.db.Worker().Exec(ctx,
		`UPDATE node_task SET state = $2, result = $3, started_at = $4, ended_at = $4 WHERE id = $1`, task.ID, state,
		[]byte(result), now)
	_, _ = l.db.Worker().Exec(ctx, `SELECT platform.wake_operation($1)`, task.OperationID)
	l.hub.Wake(event.QueueTopic)
}

// demo is a manifest with one component and one probe.
const demo = `{"schema":"gpuaas.app/manifest/v1","app":"demo","version":"1.0.0","displayName":"Demo","summary":"An app for tests.",
	"artifactKind":"controller","adapter":"demo","permissionFamily":"apps","configSchema":{"type":"object"},
	"artifacts":[{"name":"demo","mediaType":"application/vnd.oci.image.manifest.v1+json",
	"ref":"registry.test/demo@sha256:0000000000000000000000000000000000000000000000000000000000000000",
	"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}],
	"compatibility":{"requires_capacity_shape":["baremetal"],"min_gpu_count":0,"requires_exclusive_node":false,"network_span":"multi_allocation"},
	"components":[{"key":"peer","displayName":"Peer","min":1,"max":8,"default":2}],
	"readiness":[{"componentKey":"peer","name":"answers","probe":{"exec":{"command":["true"]},"attempts":1,"intervalSeconds":1,"timeoutSeconds":1}}]}`

// world is what a launch rests on.
type world struct {
	tenant, project, manifest, node, allocation ids.ID
	adapter                                     string
}

// world lays down a tenant with an allocation on a node, and an adapter at url.
func (l *lab) world(name, url string) world {
	l.Helper()
	ctx := l.Context()
	w := world{tenant: ids.New(ids.Tenant), project: ids.New(ids.Project), manifest: ids.New(ids.Manifest),
		node: ids.New(ids.Node), allocation: ids.New(ids.Allocation), adapter: name}
	app := ids.New(ids.App)
	slug := "demo-" + name
	l.own.Tenant.Create().SetID(w.tenant).SetDisplayName(name).SetSlug(name).SaveX(ctx)
	l.own.Project.Create().SetID(w.project).SetTenantID(w.tenant).SetDisplayName(name).SetSlug(name).SaveX(ctx)
	l.own.App.Create().SetID(app).SetSlug(slug).SetPermissionFamily("apps").SaveX(ctx)
	l.own.Adapter.Create().SetID(ids.New(ids.Adapter)).SetName(name).SetURL(url).SaveX(ctx)
	l.own.Manifest.Create().SetID(w.manifest).SetAppID(app).SetAppSlug(slug).SetVersion("1.0.0").
		SetStage(lifecycle.StageActive).
		SetDigest("sha256:0").SetDocument([]byte(demo)).SetAdapterName(name).SaveX(ctx)
	l.own.ComputeNode.Create().SetID(w.node).SetName("node-" +
		name).SetAddress("10.0.0.1").SetStatus(lifecycle.NodeOnline).SetCpus(4).
		SetMemoryMib(1000).SetGpus(0).SetIsolation("PROCESS").SetSealingKey("a2V5").
		SetLastSeenAt(time.Now().Add(time.Hour)).SaveX(ctx)
	l.own.Allocation.Create().SetID(w.allocation).SetTenantID(w.tenant).SetProjectID(w.project).
		SetShape(lifecycle.ShapeBaremetal).
		SetGpuCount(0).SetStatus(lifecycle.AllocationReady).SetNodeID(w.node).SaveX(ctx)
	l.own.Entitlement.Create().SetID(ids.New(ids.Entitlement)).SetTenantID(w.tenant).SetProjectID(w.project).
		SetAppSlug(slug).SaveX(ctx)
	return w
}

// launched is an instance with its create operation, as the launch verb writes them.
type launched struct {
	world
	instance, create ids.ID
	members          []ids.ID
}

// launch writes a launch of two members with a deadline.
func (l *lab) launch(w world, deadline time.Duration) launched {
	l.Helper()
	ctx := l.Context()
	out := launched{world: w, instance: ids.New(ids.Instance), create: ids.New(ids.Operation)}
	l.own.Instance.Create().SetID(out.instance).SetTenantID(w.tenant).SetProjectID(w.project).SetName("it-" +
		string(out.instance[len(out.instance)-8:])).
		SetAppSlug("demo").SetAppVersion("1.0.0").SetPermissionFamily("apps").SetManifestID(w.manifest).
		SetStatus(lifecycle.InstanceCreated).
		SetBoundCapacityShape(lifecycle.ShapeBaremetal).SetRuntimeBackend(w.adapter).SetCorrelationID("corr").
		SetRoles(json.RawMessage(
			`[{"componentKey":"peer","displayName":"Peer","desired":2,"current":0,"healthy":0,"summary":""}]`)).
		SetConfig(json.RawMessage(`{"b": 1, "a": 2}`)).SaveX(ctx)
	l.own.Allocation.UpdateOneID(w.allocation).SetInstanceID(out.instance).ExecX(ctx)
	for i := range 2 {
		id := ids.New(ids.Member)
		out.members = append(out.members, id)
		l.own.Member.Create().SetID(id).SetTenantID(w.tenant).SetProjectID(w.project).SetInstanceID(out.instance).
			SetComponentKey("peer").
			SetOrdinal(i).SetStatus(lifecycle.MemberPending).SetAllocationID(w.allocation).SetNodeID(w.node).SaveX(ctx)
	}
	l.operate(out, out.create, lifecycle.InstanceCreate, deadline, `{}`)
	l.hub.Wake(event.QueueTopic)
	return out
}

func (l *lab) operate(on launched, id ids.ID, kind lifecycle.OperationKind, deadline time.Duration, change string) {
	l.own.Operation.Create().SetID(id).SetTenantID(on.tenant).SetProjectID(on.project).SetInstanceID(on.instance).
		SetKind(kind).
		SetState(lifecycle.OperationPending).SetAdapterName(on.adapter).SetRequesterKind("USER").
		SetRequesterID("usr_1").SetCorrelationID("corr").
		SetDesiredChange(json.RawMessage(change)).SetDeadline(time.Now().Add(deadline)).SaveX(l.Context())
}

// expire has the deadline of an operation pass.
func (l *lab) expire(op ids.ID) {
	l.own.Operation.UpdateOneID(op).SetDeadline(time.Now()).SetNextRunAt(time.Now()).ExecX(l.Context())
	l.hub.Wake(event.QueueTopic)
}

// decommission writes a decommission, as its verb does.
func (l *lab) decommission(on launched, deadline time.Duration) ids.ID {
	l.Helper()
	id := ids.New(ids.Operation)
	if l.own.Instance.GetX(l.Context(), on.instance).Status == lifecycle.InstanceRunning {
		l.own.Instance.UpdateOneID(on.instance).SetStatus(lifecycle.InstanceStopping).ExecX(l.Context())
	}
	l.operate(on, id, lifecycle.InstanceDecommission, deadline, `{}`)
	l.hub.Wake(event.QueueTopic)
	return id
}

// pool is the workers' own connections, for rows that are easier written by hand.
func (l *lab) pool() *pgxpool.Pool { return l.db.Worker() }

func (l *lab) op(id ids.ID) *db.Operation { return l.own.Operation.GetX(l.Context(), id) }

// ended waits for an operation's end and answers it.
func (l *lab) ended(id ids.ID) *db.Operation {
	l.Helper()
	l.until("operation "+string(id)+" ends", func() bool { return l.op(id).EndedAt != nil })
	return l.op(id)
}

// until waits for a state with a deadline.
func (l *lab) until(what string, is func() bool) {
	l.Helper()
	require.Eventually(l.TB, is, patience, lookEvery, what)
}
