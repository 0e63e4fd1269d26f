package instance_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/instance"
)

// statements is a tracer that keeps what is sent to the database, a batch as one.
type statements struct {
	mu   sync.Mutex
	sent []string
}

func (s *statements) add(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, sql)
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.add(data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	s.add("batch")
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// during returns how many statements the database receives from do, and how many of them read prices.
func (s *statements) during(do func()) (all, prices int) {
	s.sent = nil
	do()
	for _, sql := range s.sent {
		if strings.Contains(sql, "platform.prices_now") {
			prices++
		}
	}
	return len(s.sent), prices
}

// A person waits for a plan: its price is one more statement, whatever the app is metered in.
func TestAPriceIsOneStatementOfAPlan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	metered := b.document("1.0.1")
	metered["usageDimensions"] = []map[string]any{{"name": "tokens", "unit": "token"}, {"name": "jobs", "unit": "job"}}
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED' WHERE id = $1`, b.stored.ID)
	b.Manifest(lifecycle.StageActive, metered)
	b.ListPrice(b.one.Sku, "EUR", "1.25")
	seen := &statements{}
	db, err := tx.Open(t.Context(), b.DSN, tx.Options{Connections: 2, Tracer: seen})
	require.NoError(t, err)
	defer db.Close()
	verbs := &instance.Service{DB: db, Calls: b.standIn.Calls}

	all, prices := seen.during(func() {
		plan, err := verbs.PlanLaunch(b.ctx, b.launch())
		require.NoError(t, err)
		require.Len(t, plan.Cost.Usage, 2)
		require.NotEmpty(t, plan.Cost.Totals)
	})
	require.Equal(t, 1, prices, "of a launch, for capacity and dimensions together")
	require.LessOrEqual(t, all, 20, "a launch: %q", seen.sent)

	started := b.launched()
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	all, prices = seen.during(func() {
		plan, err := verbs.PlanDecommission(b.ctx, b.teardown(started.Instance.ID, ""))
		require.NoError(t, err)
		require.NotEmpty(t, plan.Cost.Totals)
	})
	require.Equal(t, 1, prices, "of a teardown")
	require.LessOrEqual(t, all, 12, "a teardown: %q", seen.sent)
}

// A launch holds its allocations' rows for as long as it talks to the database, and each round trip is a wait.
func TestALaunchIsFewRoundTrips(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seen := &statements{}
	db, err := tx.Open(t.Context(), b.DSN, tx.Options{Connections: 2, Tracer: seen})
	require.NoError(t, err)
	defer db.Close()
	verbs := &instance.Service{DB: db, Calls: b.standIn.Calls}
	all, _ := seen.during(func() {
		_, err := verbs.Launch(b.ctx, b.launch())
		require.NoError(t, err)
	})
	require.LessOrEqual(t, all, 16, "%q", seen.sent)
	require.Equal(t, "batch", seen.sent[all-1], "its last statements go out with COMMIT")
}
