package tx_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// patience bounds every wait for a state.
const patience = 20 * time.Second

// heard collects hints.
type heard struct {
	mu     sync.Mutex
	topics []string
}

func (h *heard) Wake(topics ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics = append(h.topics, topics...)
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.topics)
}

// openAgain opens the kit's database with hints of the test's own and few connections.
func openAgain(t *testing.T, kit *platformtest.Kit, connections int) (*tx.DB, *heard) {
	t.Helper()
	hints := &heard{}
	database, err := tx.Open(t.Context(), kit.DSN, tx.Options{Connections: connections})
	require.NoError(t, err)
	database.SetHints(hints)
	t.Cleanup(database.Close)
	return database, hints
}

func TestHintsGoOutAfterTheCommitAndNeverAfterARollback(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, hints := openAgain(t, k.Kit, 2)
	ctx := k.As(k.admin)
	refusal := fault.New(fault.Conflict, "no")
	err := database.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		w.Wake("never")
		_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'lost'`)
		require.NoError(t, err)
		return refusal
	})
	require.ErrorIs(t, err, refusal)
	require.Empty(t, hints.all())
	require.Zero(t, k.Count("instance", "health_message = 'lost'"))

	require.NoError(t, database.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		w.Wake("one", "two")
		require.Empty(t, hints.all(), "before the commit")
		_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'kept'`)
		return err
	}))
	require.Equal(t, []string{"one", "two"}, hints.all())
	require.Equal(t, 1, k.Count("instance", "health_message = 'kept'"))
}

func TestAVerbThatSwallowsAFailedStatementIsNotTakenForDone(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, hints := openAgain(t, k.Kit, 2)
	err := database.Write(k.As(k.admin), func(ctx context.Context, w *tx.Tx) error {
		w.Wake("never")
		_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'lost'`)
		require.NoError(t, err)
		_, err = w.Exec(ctx, `SELECT 1/0`)
		require.Error(t, err)
		return nil
	})
	require.ErrorContains(t, err, "commit")
	require.Empty(t, hints.all())
	require.Zero(t, k.Count("instance", "health_message = 'lost'"))
}

func TestWhatIsLeftForTheCommitIsWrittenWithItOrNothingIs(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, hints := openAgain(t, k.Kit, 2)
	ctx := k.As(k.admin)
	const change = `UPDATE instance SET health_message = health_message || $1`
	leave := func(texts ...string) error {
		return database.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
			w.Wake("told")
			_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'a'`)
			for _, text := range texts {
				w.Last().Queue(change, text)
			}
			return err
		})
	}
	platformtest.Refused(t, leave("b", "\x00"), fault.InvalidArgument, "")
	require.Empty(t, hints.all())
	require.Zero(t, k.Count("instance", "health_message <> ''"))
	require.NoError(t, leave("b", "c"), "the connection is well")
	require.Equal(t, []string{"told"}, hints.all())
	require.Equal(t, 1, k.Count("instance", "health_message = 'abc'"))

	require.NoError(t, database.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		w.Last().Queue(`SAVEPOINT a`)
		w.Last().Queue(change, "\x00")
		require.Error(t, w.Flush(ctx))
		_, err := w.Exec(ctx, `ROLLBACK TO SAVEPOINT a`)
		require.NoError(t, w.Flush(ctx), "nothing is left")
		return err
	}))
	require.Equal(t, 1, k.Count("instance", "health_message = 'abc'"))

	require.NoError(t, database.AsPipelined(t.Context(), authz.System("test"), func(*pgx.Batch) {},
		func(_ context.Context, w *tx.Tx, writes *pgx.Batch) error {
			w.Last().Queue(change, "d")
			writes.Queue(change, "e")
			return nil
		}))
	require.Equal(t, 1, k.Count("instance", "health_message = 'abcde'"), "in the order in which they were left")
}

func TestANulCharacterIsTheCallersMistake(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	ctx := k.As(k.admin)
	var seen []string
	_, err := k.DB.Read(ctx, text(&seen, `SELECT id FROM instance WHERE name = $1`, "a\x00b"))
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	err = k.DB.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		_, err := w.Exec(ctx, `UPDATE instance SET config = $1`, []byte(`{"a":"\u0000"}`))
		return err
	})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
}

func TestADeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	operator := k.Operator()
	k.SQL(`ALTER DATABASE ` + databaseName(t, k.Kit) + ` SET deadlock_timeout = '100ms'`)
	database, hints := openAgain(t, k.Kit, 4)
	var both sync.WaitGroup
	both.Add(2)
	tries, results := [2]int{}, [2]error{}
	order := [2][]ids.ID{{k.ours.ID, k.other.ID}, {k.other.ID, k.ours.ID}}
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() {
			results[i] = database.Write(k.As(operator), func(ctx context.Context, w *tx.Tx) error {
				tries[i]++
				w.Wake("done")
				for n, id := range order[i] {
					if _, err := w.Exec(ctx, `UPDATE instance SET revision = revision + 1
						WHERE id = $1`, id); err != nil {
						return err
					}
					if n == 0 && tries[i] == 1 { // each holds one row before it asks for the other's
						both.Done()
						both.Wait()
					}
				}
				return nil
			})
		})
	}
	running.Wait()
	require.NoError(t, errors.Join(results[:]...))
	require.GreaterOrEqual(t, tries[0]+tries[1], 3, "at least one of the two began anew")
	require.Equal(t, []string{"done", "done"}, hints.all(), "the try that was rolled back gives no hint")
	require.Equal(t, 2, k.Count("instance", "revision = 2"))
}

func TestADeadlockWithoutEndIsGivenUp(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	tries := 0
	err := k.DB.Write(k.As(k.admin), func(context.Context, *tx.Tx) error {
		tries++
		return &pgconn.PgError{Code: "40P01"}
	})
	require.Error(t, err)
	require.Equal(t, 3, tries)
}

func TestALockThatCannotBeHadIsTriedOnceMoreAndThenAnsweredAsUnavailable(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	tries := 0
	wait := func(context.Context, *tx.Tx) error {
		tries++
		return &pgconn.PgError{Code: "55P03"}
	}
	err := k.DB.Write(k.As(k.admin), wait)
	require.True(t, fault.Is(err, fault.Unavailable), "%v", err)
	require.Equal(t, 2, tries)
	err = k.DB.Write(k.As(k.admin), func(ctx context.Context, w *tx.Tx) error {
		if tries++; tries == 3 {
			return wait(ctx, w)
		}
		return nil
	})
	require.NoError(t, err, "the second try has the lock")
}

func databaseName(t *testing.T, kit *platformtest.Kit) (name string) {
	t.Helper()
	require.NoError(t, kit.Admin.QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&name))
	return name
}

// settled waits until no connection of the login roles is inside a transaction.
func settled(t *testing.T, kit *platformtest.Kit) {
	t.Helper()
	require.Eventually(t, func() bool {
		return kit.Count("pg_stat_activity",
			`datname = current_database() AND usename LIKE 'app\_%' AND xact_start IS NOT NULL`) == 0
	}, patience, 20*time.Millisecond)
}

func TestACallerThatGoesAwayLeavesNoTransactionAndAUsablePool(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, hints := openAgain(t, k.Kit, 1)
	for range 3 {
		ctx, cancel := context.WithCancel(k.As(k.admin))
		err := database.Write(ctx, func(ctx context.Context, w *tx.Tx) error { // between two statements
			w.Wake("never")
			_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'lost'`)
			cancel()
			return err
		})
		require.Error(t, err)
		ctx, cancel = context.WithTimeout(k.As(k.admin), 100*time.Millisecond)
		err = database.Write(ctx, func(ctx context.Context, w *tx.Tx) error { // inside a statement
			_, err := w.Exec(ctx, `SELECT pg_sleep(60)`)
			return err
		})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx, cancel = context.WithTimeout(k.As(k.admin), 100*time.Millisecond)
		_, err = database.Read(ctx, text(new([]string), `SELECT pg_sleep(60)::text`))
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	settled(t, k.Kit)
	require.Empty(t, hints.all())
	require.Zero(t, k.Count("instance", "health_message = 'lost'"))
	ctx, cancel := context.WithTimeout(k.As(k.admin), patience)
	defer cancel()
	require.NoError(t, database.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		return w.QueryRow(ctx, `SELECT 1`).Scan(new(int))
	}))
}

func TestAPanicLeavesNoTransaction(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	database, _ := openAgain(t, k.Kit, 1)
	require.Panics(t, func() {
		_ = database.Write(k.As(k.admin), func(ctx context.Context, w *tx.Tx) error {
			_, err := w.Exec(ctx, `UPDATE instance SET health_message = 'lost'`)
			require.NoError(t, err)
			panic("a bug")
		})
	})
	settled(t, k.Kit)
	ctx, cancel := context.WithTimeout(k.As(k.admin), patience)
	defer cancel()
	require.NoError(t, database.Write(ctx, func(context.Context, *tx.Tx) error { return nil }))
	require.Zero(t, k.Count("instance", "health_message = 'lost'"))
}

func TestEntAndPlainSQLShareOneTransaction(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	err := k.DB.Write(k.As(k.admin), func(ctx context.Context, w *tx.Tx) error {
		require.NoError(t, w.Instance.UpdateOneID(k.ours.ID).SetHealthMessage("by ent").Exec(ctx))
		var seen string
		require.NoError(t, w.QueryRow(ctx, `SELECT health_message FROM instance WHERE id = $1`, k.ours.ID).Scan(&seen))
		require.Equal(t, "by ent", seen)
		return errors.New("rolled back")
	})
	require.ErrorContains(t, err, "rolled back")
	require.Zero(t, k.Count("instance", "health_message = 'by ent'"))
}

func TestALeaseIsKeptWhileEveryWorkersConnectionIsTaken(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	for range kit.DB.Worker().Config().MaxConns {
		taken, err := kit.DB.Worker().Acquire(t.Context())
		require.NoError(t, err)
		defer taken.Release()
	}
	bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var role string
	require.NoError(t, kit.DB.Lease().QueryRow(bounded, `SELECT current_user`).Scan(&role))
	require.Equal(t, "app_worker", role)
}
