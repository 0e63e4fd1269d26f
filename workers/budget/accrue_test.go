package budget_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gpuaas/app-platform/domain/spending"
)

// wholeSQL sums a month's books for a budget of a project, from the first entry to the last.
const wholeSQL = `SELECT trim_scale(coalesce(sum(e.amount), 0))::text FROM ledger_entry e
	JOIN ledger_tx x ON x.id = e.tx_id
	WHERE e.account = 'ACCRUED' AND x.of_period_id = 'bpr_1' AND e.project_id = $1`

// ledgers are transactions that book and are open, beside the looks at a budget.
type ledgers struct {
	*bench
	open []pgx.Tx
}

func (l *ledgers) begin(ctx context.Context) {
	begun, err := l.Admin.Begin(ctx)
	require.NoError(l.t, err)
	l.open = append(l.open, begun)
}

func (l *ledgers) end(ctx context.Context, n int, commit bool) {
	if commit {
		require.NoError(l.t, l.open[n].Commit(ctx))
	} else {
		require.NoError(l.t, l.open[n].Rollback(ctx))
	}
	l.open = slices.Delete(l.open, n, n+1)
}

// TestALookAtABudgetSumsWhatCameSinceAndNothingTwice books in transactions that overlap looks, end in any order, and
// are rolled back; and begins generations of the database, as a restore does.
func TestALookAtABudgetSumsWhatCameSinceAndNothingTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.set("1000000", spending.Tell)
	ctx := t.Context()
	look := func() {
		require.NoError(t, b.keeper.Once(ctx))
		var whole string
		require.NoError(t, b.Admin.QueryRow(ctx, wholeSQL, b.project.ID).Scan(&whole))
		require.Equal(t, whole, b.shown().Spent.String())
	}
	rapid.Check(t, func(r *rapid.T) {
		l := &ledgers{bench: b}
		defer func() { // where a check fails
			for _, begun := range l.open {
				_ = begun.Rollback(context.WithoutCancel(ctx))
			}
		}()
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			switch step := rapid.IntRange(0, 4).Draw(r, "step"); {
			case step == 0 && len(l.open) < 3:
				l.begin(ctx)
				l.bookIn(l.open[len(l.open)-1], "0.01")
			case step == 1 && len(l.open) > 0:
				l.bookIn(l.open[rapid.IntRange(0, len(l.open)-1).Draw(r, "which")],
					fmt.Sprintf("0.%02d", rapid.IntRange(1, 99).Draw(r, "cents")))
			case step == 2 && len(l.open) > 0:
				l.end(ctx, rapid.IntRange(0, len(l.open)-1).Draw(r, "which"), rapid.Bool().Draw(r, "commit"))
			case step == 3 && len(l.open) == 0:
				b.SQL(`INSERT INTO platform.generation_log (number, system_identifier, timeline, database)
					SELECT number + 1, system_identifier, timeline, database FROM platform.generation_log
					ORDER BY number DESC LIMIT 1`)
			default:
				look()
			}
		}
		for len(l.open) > 0 {
			l.end(ctx, 0, true)
			look()
		}
		look()
	})
}

// TestALookReadsTheEntriesSinceTheMarkAlone holds that settled entries are not read again: what an owner smuggles in
// below the mark is not seen.
func TestALookReadsTheEntriesSinceTheMarkAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.set("100", spending.Tell)
	b.book("3")
	require.Eventually(t, func() bool { // transactions of other databases of the server hold a mark back, too
		require.NoError(t, b.keeper.Once(t.Context()))
		return b.Count("budget", "settled = 3") == 1
	}, time.Minute, 10*time.Millisecond)
	b.book("4")
	b.SQL(`SET session_replication_role = replica;
		UPDATE ledger_entry SET booked_generation = 0; RESET session_replication_role`)
	require.NoError(t, b.keeper.Once(t.Context()))
	require.Equal(t, "3", b.shown().Spent.String())
	// a month begins: it is summed from its start
	b.SQL(`UPDATE budget SET period_start = period_start - interval '1 month'`)
	require.NoError(t, b.keeper.Once(t.Context()))
	require.Equal(t, "7", b.shown().Spent.String())
}

// TestAMarkNeverGoesBack has a look whose view of the database is older than what another look has settled by then:
// that one has counted an entry of a transaction that is younger than one which this look still sees open.
func TestAMarkNeverGoesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.set("100", spending.Tell)
	b.book("3")
	require.NoError(t, b.keeper.Once(t.Context()))
	open, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = open.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = open.Exec(t.Context(), `SELECT pg_current_xact_id()`)
	require.NoError(t, err)
	b.book("4")
	b.SQL(`UPDATE budget SET settled = 7, spent = 7, mark_xid = pg_snapshot_xmax(pg_current_snapshot())`)
	mark := func() (settled, xid string) {
		require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT trim_scale(settled)::text, mark_xid::text
			FROM budget`).Scan(&settled, &xid))
		return settled, xid
	}
	_, before := mark()
	require.NoError(t, b.keeper.Once(t.Context()))
	settled, after := mark()
	require.Equal(t, []string{"7", before}, []string{settled, after})
	require.NoError(t, open.Commit(t.Context()))
	for range 2 {
		require.NoError(t, b.keeper.Once(t.Context()))
		require.Equal(t, "7", b.shown().Spent.String(), "and nothing is counted twice")
	}
}
