package dataset_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/migrations"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

var update = flag.Bool("update", false, "write the golden plans")

// planned is the data set of the golden plans. Every table of a golden plan is smaller than what ANALYZE samples, so
// that statistics, and with them plans, are the same in every run; and large enough that the planner has a choice, with
// its own settings.
var planned = dataset.Size{Name: "plans", Tenants: 25, Projects: 4, Instances: 4_000, Events: 7}

// grow are the tables that have no bound: no query may read one of them whole.
var grow = regexp.MustCompile(
	`Seq Scan on (instance|member|operation|operation_step|app_instance_event|node_task|allocation|compute_node)\b`)

// plannable is true of statements that PostgreSQL makes a plan for.
var plannable = regexp.MustCompile(`(?i)^\s*(SELECT|WITH|UPDATE|DELETE)\b`)

// clockSQL reads the database's time; when it is sent depends on the connection.
const clockSQL = `SELECT clock_timestamp()`

// statements sees what is sent to the database, by login role.
type statements struct {
	mu   sync.Mutex
	seen []string
}

func (s *statements) note(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, sql)
}

// take returns the statements sent since the last call, each once, and apart from them those that set parameters.
func (s *statements) take() (found, settings []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]bool{}
	for _, sql := range s.seen {
		switch {
		case known[sql] || !plannable.MatchString(sql) || sql == clockSQL:
		case strings.Contains(sql, "set_config("):
			settings = append(settings, sql)
		default:
			found = append(found, sql)
		}
		known[sql] = true
	}
	s.seen = nil
	return found, settings
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.note(data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.note(data.SQL)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// rig is a filled database with somebody who may read a project of it.
type rig struct {
	*testing.T
	dsn  string
	set  *dataset.Set
	db   *tx.DB
	sent *statements
	as   context.Context
}

func newRig(t *testing.T) *rig {
	t.Helper()
	require.NoError(t, authz.Load())
	made := pgtest.NewFrom(t, "plans-"+migrations.Hash(), func(ctx context.Context, dsn string) error {
		if err := migrations.Up(ctx, dsn); err != nil {
			return err
		}
		return dataset.Fill(ctx, dsn, planned)
	})
	r := &rig{T: t, dsn: made.AdminDSN(), sent: &statements{}}
	var err error
	r.db, err = tx.Open(t.Context(), r.dsn, tx.Options{Tracer: r.sent, Connections: 2})
	require.NoError(t, err)
	t.Cleanup(r.db.Close)
	admin, err := pgxpool.New(t.Context(), r.dsn)
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	set := &dataset.Set{DSN: r.dsn, Admin: admin, Size: planned}
	callers, err := set.Callers(t.Context(), 1)
	require.NoError(t, err)
	ring, err := token.NewKeyring("http://platform.test")
	require.NoError(t, err)
	credential, err := tx.ParseCredential(callers[0].Token, ring, r.db.Now())
	require.NoError(t, err)
	r.as = tx.WithCredential(t.Context(), credential)
	r.set = set
	return r
}

// backlog has some operations wait to be claimed, far fewer than there are, and lets statistics know.
func (r *rig) backlog() {
	r.Helper()
	_, err := r.set.Backlog(r.Context(), 500, 0, planned.ProjectsInAll())
	require.NoError(r, err)
	_, err = r.set.Admin.Exec(r.Context(), `ANALYZE`)
	require.NoError(r, err)
}

// explain is the plan that a login role's connections use for a statement once it is prepared: the one
// that does not know its parameters.
func (r *rig) explain(role, sql string, settings []string) string {
	r.Helper()
	dsn, err := migrations.RoleDSN(r.dsn, role)
	require.NoError(r, err)
	conn, err := pgx.Connect(r.Context(), dsn)
	require.NoError(r, err)
	defer func() { _ = conn.Close(context.WithoutCancel(r.Context())) }()
	most := 0
	for _, found := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(sql, -1) {
		n, err := strconv.Atoi(found[1])
		require.NoError(r, err)
		most = max(most, n)
	}
	execute := "EXPLAIN (COSTS OFF) EXECUTE planned"
	if most > 0 {
		execute += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", most), ", ") + ")"
	}
	_, err = conn.Exec(r.Context(), `SET plan_cache_mode = force_generic_plan`)
	require.NoError(r, err)
	for _, one := range settings { // as the call itself made them, for the session instead of the transaction
		_, err = conn.Exec(r.Context(), strings.ReplaceAll(one, ", true)", ", false)"))
		require.NoError(r, err)
	}
	_, err = conn.Exec(r.Context(), `PREPARE planned AS `+sql)
	require.NoError(r, err, sql)
	found, err := conn.Query(r.Context(), execute, pgx.QueryExecModeSimpleProtocol)
	require.NoError(r, err)
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(r, err, sql)
	return strings.Join(lines, "\n")
}

// TestNoQueryOfAListAClaimOrATimelineReadsATableWhole runs the real calls, and asks PostgreSQL how it
// carries out each statement that they sent. Sequential scans are not forbidden to the planner (but for
// the claim, which forbids them itself): the plans are those it likes best for this data.
func TestNoQueryOfAListAClaimOrATimelineReadsATableWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.backlog()
	var text strings.Builder
	for _, one := range r.calls() {
		r.sent.take()
		require.NoError(t, one.call(t.Context()), one.name)
		sent, settings := r.sent.take()
		require.NotEmpty(t, sent, one.name)
		for i, sql := range sent {
			if strings.Contains(sql, "platform.enter(") {
				continue
			}
			plan := r.explain(one.role, sql, settings)
			require.NotRegexp(t, grow, plan, "%s, as %s:\n%s", one.name, one.role, sql)
			fmt.Fprintf(&text, "== %s, as %s, statement %d\n%s\n\n", one.name, one.role, i+1, plan)
		}
	}
	r.golden("plans.golden", text.String())
}

// TestStatementsOnOneOperationFindItByItsIDThoughNothingElseIsOpen reads the plans that connections make, and keep,
// while nothing is open, when every index on what is open looks like the shortest way.
func TestStatementsOnOneOperationFindItByItsIDThoughNothingElseIsOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	held := &queue.Held{Operation: &db.Operation{ID: "op_1", ClaimEpoch: 1}, Worker: "wrk_1"}
	require.NoError(t, r.db.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		batch := &pgx.Batch{}
		held.QueueLock(batch)
		queue.Open(batch, []string{"op_1"}, dataset.AdapterName, func(*db.Operation) {})
		batch.Queue(queue.ReleaseSQL, held.ID, held.ClaimEpoch, held.Worker, t.Now, 0, held.Reported())
		return errors.Join(t.SendBatch(ctx, batch).Close(), queue.Wake(ctx, t, "op_1"))
	}))
	require.ErrorIs(t, held.Refresh(t.Context(), r.db.Worker()), queue.ErrFenced)
	sent, _ := r.sent.take()
	require.Len(t, sent, 5)
	for _, sql := range sent {
		plan := r.explain("app_worker", sql, nil)
		require.Regexp(t, `using operation_(pkey|id_tenant_id) `, plan, sql)
		require.NotRegexp(t, `operation_(due|open|claimed)|Seq Scan`, plan, sql)
	}
}

// TestAClaimIsPlannedForABacklogThoughThereIsNone reads the plan that connections make, and keep, while nothing waits.
func TestAClaimIsPlannedForABacklogThoughThereIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	explained := func() string {
		_, _, err := queue.Claim(t.Context(), r.db.Worker(), ids.New(ids.Worker), queue.Want{Limit: 16})
		require.NoError(t, err)
		sent, settings := r.sent.take()
		require.Len(t, sent, 2)
		return r.explain("app_worker", sent[0], settings) + "\n" + r.explain("app_worker", sent[1], settings)
	}
	idle := explained()
	r.backlog()
	require.Equal(t, explained(), idle)
}

// call is something that the product does, under the login role that it does it with.
type call struct {
	name, role string
	call       func(ctx context.Context) error
}

func (r *rig) calls() []call {
	instances := &instance.Service{DB: r.db}
	project, first := dataset.Project(0), page.Args{First: 50}
	later := page.Args{First: 50, After: page.Cursor("instances", dataset.Instance(1_000))}
	feeds, err := event.NewFeeds(r.Context(), r.db.Worker())
	require.NoError(r, err)
	list := func(filter instance.Filter, args page.Args) func(context.Context) error {
		return func(context.Context) error {
			_, err := instances.List(r.as, project, filter, args)
			return err
		}
	}
	operations := func(filter operation.Filter) func(context.Context) error {
		return func(context.Context) error {
			_, err := operation.List(r.as, r.db, filter, first)
			return err
		}
	}
	return []call{
		{"claim and next due", "app_worker", func(ctx context.Context) error {
			_, _, err := queue.Claim(ctx, r.db.Worker(), ids.New(ids.Worker), queue.Want{Limit: 16})
			return err
		}},
		{"instances of a project with their last operations", "app_api",
			list(instance.Filter{LastOperations: true}, first)},
		{"a later page of them", "app_api", list(instance.Filter{}, later)},
		{"operations of a project", "app_api", operations(operation.Filter{ProjectID: project})},
		{"operations of a project that are open", "app_api", operations(operation.Filter{ProjectID: project,
			States: []lifecycle.OperationState{lifecycle.OperationPending, lifecycle.OperationRunning}})},
		{"allocations of a project that it holds", "app_api", func(context.Context) error {
			_, err := (&allocation.Service{DB: r.db}).List(r.as, project,
				[]lifecycle.AllocationStatus{lifecycle.AllocationReady}, first)
			return err
		}},
		{"operations of an instance", "app_api", operations(operation.Filter{InstanceID: dataset.Instance(0)})},
		{"an instance's timeline", "app_api", func(context.Context) error {
			_, err := instances.Events(r.as, dataset.Instance(0), first)
			return err
		}},
		{"an instance's timeline, live", "app_worker", func(ctx context.Context) error {
			_, err := feeds.Instance(ctx, dataset.Instance(0), event.Position{Order: 5}, 100)
			return err
		}},
		{"a project's feed", "app_api", func(context.Context) error {
			var found []*event.Event
			_, err := r.db.Read(r.as, feeds.ProjectQueries(&found, project, []string{"apps"}, event.Position{}, 100)...)
			return err
		}},
		{"a project's feed, live", "app_worker", func(ctx context.Context) error {
			_, err := feeds.Project(ctx, project, []string{"apps"}, event.Position{}, 100)
			return err
		}},
	}
}

// golden compares the text with a file of testdata, or writes it with -update.
func (r *rig) golden(name, text string) {
	r.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(r, os.MkdirAll("testdata", 0o755))
		require.NoError(r, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(r, err)
	require.Equal(r, string(want), text,
		"plans differ: read the difference, then run go test ./rig/bench/dataset -update")
}
