package billing_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/billing"
	books "github.com/gpuaas/app-platform/workers/billing"
)

// TestMain is a billing worker of its own when a test starts it as one.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("BILLING_TEST_CHILD"); dsn != "" {
		if err := child(dsn); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// standard is how the tests' tenants are billed.
var standard = billing.Standard{Currency: "EUR", Grace: time.Hour}

// child books until it is killed.
func child(dsn string) error {
	db, err := tx.Open(context.Background(), dsn, tx.Options{Connections: 4})
	if err != nil {
		return err
	}
	worker := &books.Worker{DB: db, Log: slog.New(slog.DiscardHandler), Every: 20 * time.Millisecond,
		Standard: standard}
	return worker.Run(context.Background())
}

// house is a tenant with a project, a price, and usage.
type house struct {
	*platformtest.Kit
	t               *testing.T
	tenant, project string
	used            int
}

func newHouse(t *testing.T) *house {
	k := platformtest.New(t)
	tenant := k.Tenant()
	h := &house{Kit: k, t: t, tenant: string(tenant.ID), project: string(k.Project(tenant).ID)}
	k.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason, created_by)
		VALUES ('prc_1', 'prc_1', 'tokens', '', '', 'EUR', 'PLATFORM', '2020-01-01', 1,
		'{"measure":"QUANTITY","per":"1","tiers":[{"price":"1"}],"minimum":"0","roundUpTo":"0"}', '', '', '')`)
	_, err := h.worker().Once(t.Context())
	require.NoError(t, err)
	return h
}

func (h *house) worker() *books.Worker {
	return &books.Worker{DB: h.DB, Log: slog.New(slog.DiscardHandler), Every: time.Hour, Standard: standard}
}

// use writes a record of one token, of one of a few sources.
func (h *house) use() {
	h.t.Helper()
	h.used++
	h.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id, session,
		unit, quantity, from_at, to_at, digest)
		VALUES ($1, 'tokens', $2, 'APP', $3, $4, $1, $1, 'token', 1, now(), now(),
		'')`, fmt.Sprint("ins_", h.used%3), fmt.Sprint("u", h.used), h.tenant, h.project)
}

// spawn starts a worker as a real process, which is killed at the end of the test at the latest.
func (h *house) spawn() *exec.Cmd {
	h.t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), "BILLING_TEST_CHILD="+h.DSN)
	command.Stderr = os.Stderr
	require.NoError(h.t, command.Start())
	h.t.Cleanup(func() { kill(command) })
	return command
}

func kill(command *exec.Cmd) {
	_ = command.Process.Kill() // SIGKILL
	_, _ = command.Process.Wait()
}

// accrued is what is on the books of what was used.
func (h *house) accrued() (sum int) {
	h.t.Helper()
	require.NoError(h.t, h.Admin.QueryRow(h.t.Context(), `SELECT coalesce(sum(amount), 0)::bigint FROM ledger_entry
		WHERE account = 'ACCRUED'`).Scan(&sum))
	return sum
}

// judged waits until all usage is booked, and checks that it is booked once and can be computed again.
func (h *house) judged() {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.accrued() >= h.used }, time.Minute, 20*time.Millisecond)
	require.Equal(h.t, h.used, h.accrued(), "nothing twice")
	require.Zero(h.t, h.Count("(SELECT FROM ledger_entry GROUP BY tx_id, currency HAVING sum(amount) <> 0) x", ""))
	require.Zero(h.t, h.Count("(SELECT FROM ledger_tx GROUP BY run_id, line_key HAVING count(*) > 1) x", ""))
	service, operator := &billing.Service{DB: h.DB}, h.As(h.Operator())
	var runs []string
	require.NoError(h.t, h.Admin.QueryRow(h.t.Context(), `SELECT array_agg(id ORDER BY seq)
		FROM billing_run`).Scan(&runs))
	for _, id := range runs {
		verified, err := service.Verify(operator, ids.ID(id))
		require.NoError(h.t, err)
		require.True(h.t, verified.Same, "%s: %s", id, verified.Differs)
	}
}

// Each table that a run writes, and the commit, is a point at which a worker dies. A trigger keeps it there until it is
// killed; what becomes of its transaction afterwards is the database's.
func TestAWorkerThatIsKilledAtAnyPointBooksOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.SQL(`CREATE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
		PERFORM pg_advisory_xact_lock_shared(15); RETURN NEW; END $$`)
	for _, table := range []string{"billing_run", "billing_line", "ledger_tx", "ledger_entry"} {
		h.halt(table, `CREATE TRIGGER halt BEFORE INSERT ON `+table+` FOR EACH ROW EXECUTE FUNCTION halt()`)
	}
	h.halt("ledger_entry", `CREATE CONSTRAINT TRIGGER halt AFTER INSERT ON ledger_entry DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION halt()`)
	h.halt("billing_look", `CREATE TRIGGER halt BEFORE INSERT OR UPDATE ON billing_look FOR EACH ROW EXECUTE FUNCTION
		halt()`)
	h.judged()
}

// halt kills a worker that has come to a point, and has others do what it did not.
func (h *house) halt(table, trigger string) {
	h.t.Helper()
	h.SQL(trigger)
	holder, err := h.Admin.Acquire(h.t.Context())
	require.NoError(h.t, err)
	defer holder.Release()
	_, err = holder.Exec(h.t.Context(), `SELECT pg_advisory_lock(15)`)
	require.NoError(h.t, err)
	h.use()
	dying := h.spawn()
	require.Eventually(h.t, func() bool {
		return h.Count("pg_locks", "locktype = 'advisory' AND NOT granted AND objid = 15 AND database = (SELECT oid "+
			"FROM pg_database WHERE datname = current_database())") > 0
	}, time.Minute, 10*time.Millisecond, trigger)
	kill(dying)
	_, err = holder.Exec(h.t.Context(), `SELECT pg_advisory_unlock(15)`)
	require.NoError(h.t, err)
	require.Eventually(h.t, func() bool {
		_, err := h.worker().Once(h.t.Context())
		return err == nil && h.accrued() == h.used
	}, time.Minute, 20*time.Millisecond, trigger)
	h.SQL(`DROP TRIGGER halt ON ` + table)
}

func TestWorkersThatAreKilledAtRandomBookEverythingOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	random := rand.New(rand.NewPCG(15, 2)) // #nosec G404 -- a test
	workers := []*exec.Cmd{h.spawn(), h.spawn(), h.spawn()}
	for range 12 {
		for range random.IntN(4) + 1 {
			h.use()
		}
		// the moment of the kill is what is tried
		pause := time.NewTimer(time.Duration(random.IntN(120)) * time.Millisecond)
		<-pause.C
		victim := random.IntN(len(workers))
		kill(workers[victim])
		workers[victim] = h.spawn()
	}
	h.judged()
	require.NoError(t, h.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		look, err := billing.Begin(ctx, t)
		require.NoError(h.t, err)
		for _, due := range look.Due {
			run, err := billing.Step(ctx, t, due)
			if err != billing.ErrBusy {
				require.NoError(h.t, err)
			}
			require.Nil(h.t, run, "nothing is left to book")
		}
		return nil
	}))
}
