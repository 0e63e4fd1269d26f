package chores_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/workers/chores"
)

// shape lists everything that a schema holds, without its name.
const shape = `
	SELECT 'column ' || table_name || ' ' || column_name || ' ' || udt_name || ' ' || is_nullable || ' '
	|| coalesce(column_default, '') FROM information_schema.columns WHERE table_schema = $1
	UNION ALL SELECT 'index ' || tablename || ' ' || indexdef FROM pg_indexes WHERE schemaname = $1
	UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
	FROM pg_constraint WHERE connamespace = $1::regnamespace AND contype <> 'n'
	UNION ALL SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::regnamespace
	UNION ALL SELECT 'word ' || t.typname || ' ' || string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder) FROM pg_enum e
	JOIN pg_type t ON t.oid = e.enumtypid WHERE t.typnamespace = $1::regnamespace GROUP BY t.typname
	UNION ALL SELECT 'table ' || relname || ' ' || relpersistence::text FROM pg_class
	WHERE relnamespace = $1::regnamespace AND relkind = 'r'`

func shapeOf(t *testing.T, kit *platformtest.Kit, schema string) []string {
	t.Helper()
	found, err := kit.Admin.Query(t.Context(), shape, schema)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	for i := range lines {
		// its first table of migrations had the name
		plain := strings.NewReplacer(schema+".", "", "pkey1", "pkey").Replace(lines[i])
		lines[i] = strings.Join(strings.Fields(strings.ToLower(plain)), " ")
	}
	return lines
}

func TestTheSchemaIsWhatTheLibrarysOwnMigrationsMake(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	driver := riverpgxv5.New(kit.Admin)
	ours, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: chores.Schema})
	require.NoError(t, err)
	valid, err := ours.Validate(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, valid.OK, valid.Messages)

	kit.SQL(`CREATE SCHEMA theirs`)
	theirs, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: "theirs"})
	require.NoError(t, err)
	_, err = theirs.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, shapeOf(t, kit, "theirs"), shapeOf(t, kit, chores.Schema))
}

func TestOnlyTheWorkersSeeTheJobs(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	_, err := kit.DB.API().Exec(t.Context(), `SELECT FROM river.river_job`)
	require.ErrorContains(t, err, "permission denied")
	_, err = kit.DB.Worker().Exec(t.Context(), `SELECT FROM river.river_job`)
	require.NoError(t, err)
}

// note is a job that sends its id once it has run.
type note struct {
	ID ids.ID `json:"id"`
}

func (note) Kind() string { return "note" }

type noted struct {
	river.WorkerDefaults[note]
	seen chan ids.ID
	fail int
}

func (n *noted) Work(_ context.Context, job *river.Job[note]) error {
	if job.Attempt <= n.fail {
		return errors.New("not yet")
	}
	n.seen <- job.Args.ID
	return nil
}

// begin runs jobs of kind note until the test ends.
func begin(t *testing.T, kit *platformtest.Kit, worker *noted) *chores.Client {
	t.Helper()
	kinds := river.NewWorkers()
	river.AddWorker(kinds, worker)
	client, err := chores.New(chores.Config{DB: kit.DB, Hub: kit.Hub,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), ID: ids.New(ids.Worker),
		Workers: kinds, Queues: map[string]int{"notes": 2, river.QueueDefault: 1}, Timeout: 5 * time.Second,
		Rescue: 6 * time.Second})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	t.Cleanup(sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	}))
	return client
}

func insert(t *testing.T, kit *platformtest.Kit, client *chores.Client, id ids.ID, queue string, then error) {
	t.Helper()
	err := kit.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		if _, err := client.InsertTx(ctx, chores.Tx(t), note{ID: id}, &river.InsertOpts{Queue: queue}); err != nil {
			return err
		}
		t.Wake(chores.Topic)
		return then
	})
	require.ErrorIs(t, err, then)
}

func TestAJobStandsWithItsTransactionAndRunsWhenThatWakesIt(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	worker := &noted{seen: make(chan ids.ID, 4)}
	client := begin(t, kit, worker)
	insert(t, kit, client, "evt_undone", "notes", errors.New("refused after all"))
	insert(t, kit, client, "evt_one", "notes", nil)
	require.EqualValues(t, "evt_one", <-worker.seen)
	insert(t, kit, client, "evt_two", river.QueueDefault, nil)
	require.EqualValues(t, "evt_two", <-worker.seen)
	require.Equal(t, 2, kit.Count("river.river_job", ""))
	require.Zero(t, kit.Count("river.river_notification", ""))
	joined := chores.Tx(&tx.Tx{})
	require.Error(t, joined.Commit(t.Context()), "whose transaction it is ends it")
	require.Error(t, joined.Rollback(t.Context()))
}

func TestAJobThatFailsComesAgain(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	worker := &noted{seen: make(chan ids.ID, 1), fail: 1}
	client := begin(t, kit, worker)
	insert(t, kit, client, "evt_one", "notes", nil)
	require.EqualValues(t, "evt_one", <-worker.seen)
}
