package audit_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// The bounds of every wait for a state.
const (
	patience = 60 * time.Second
	tick     = 10 * time.Millisecond
)

// quiet is a logger for writers whose database is away on purpose.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func refusal(object string) tx.Denial {
	return tx.Denial{
		Actor:  &authz.Actor{Subject: authz.Subject{Kind: authz.KindUser, ID: "usr_one", Name: "One"}},
		Action: "launchInstance", Key: "apps.instance.create", Code: "FORBIDDEN", ObjectID: object, At: time.Now(),
		Request: authz.RequestInfo{CorrelationID: "c", Origin: "192.0.2.1"},
	}
}

// writer runs a writer of refusals; stop ends it and waits for its last write.
func writer(denials *audit.Denials, pool *pgxpool.Pool) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- denials.Run(ctx, pool, quiet()) }()
	return sync.OnceValue(func() error { cancel(); return <-ended })
}

func TestTheSameRefusalAgainAndAgainIsOneRowWithACount(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	denials := audit.NewDenials()
	for range 1_000 {
		denials.Denied(refusal("prj_one"))
	}
	denials.Denied(refusal("prj_two"))
	other := refusal("prj_one")
	other.Actor = nil
	denials.Denied(other)
	require.NoError(t, denials.Flush(t.Context(), kit.DB.Worker()))
	require.Equal(t, 3, kit.Count("audit_entry", "NOT allowed"))
	require.Equal(t, 1, kit.Count("audit_entry",
		"repeats = 1000 AND object_id = 'prj_one' AND actor_id = 'usr_one' AND code = 'FORBIDDEN'"))
	require.Equal(t, 1, kit.Count("audit_entry", "repeats = 1 AND actor_kind = 'ANONYMOUS'"))
	require.NoError(t, denials.Flush(t.Context(), kit.DB.Worker()))
	require.Equal(t, 3, kit.Count("audit_entry", ""))
}

func TestAFloodOfDifferentRefusalsIsBounded(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	denials := audit.NewDenials()
	for n := range 10_000 {
		denials.Denied(refusal(fmt.Sprint("prj_", n)))
	}
	denials.Denied(refusal("prj_0")) // known ones are still counted
	require.NoError(t, denials.Flush(t.Context(), kit.DB.Worker()))
	require.Equal(t, 4_097, kit.Count("audit_entry", ""))
	require.Equal(t, 1, kit.Count("audit_entry", "repeats = 2"))
	require.Equal(t, 1, kit.Count("audit_entry",
		"repeats = 10000 - 4096 AND object_id = '' AND actor_id = 'usr_one' AND action = 'launchInstance' AND after = "+
			"'{\"summary\": true}'"),
		"what is beyond the bound is counted in the audit itself")
}

// A caller with a right to nothing floods the batch with refusals of its own; the refusal of another caller, which
// comes last, is still written with its object, and every refusal of the flood is counted.
func TestAFloodDoesNotHideWhatOthersAreRefused(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	denials := audit.NewDenials()
	for n := range 10_000 {
		denials.Denied(refusal(fmt.Sprint("prj_", n)))
	}
	for n := range 100 {
		quiet := refusal(fmt.Sprint("ins_", n))
		quiet.Actor = &authz.Actor{Subject: authz.Subject{Kind: authz.KindUser, ID: "usr_two", Name: "Two"}}
		denials.Denied(quiet)
	}
	stranger := refusal("")
	stranger.Actor, stranger.Action, stranger.Request.Origin = nil, "authenticate", "192.0.2.9"
	denials.Denied(stranger)
	require.NoError(t, denials.Flush(t.Context(), kit.DB.Worker()))
	require.Equal(t, 100, kit.Count("audit_entry", "actor_id = 'usr_two' AND object_id LIKE 'ins_%' AND repeats = 1"))
	require.Equal(t, 1, kit.Count("audit_entry", "actor_kind = 'ANONYMOUS' AND origin = '192.0.2.9'"))
	counted := 0
	require.NoError(t, kit.Admin.QueryRow(t.Context(),
		`SELECT sum(repeats) FROM audit_entry WHERE actor_id = 'usr_one'`).Scan(&counted))
	require.Equal(t, 10_000, counted)
}

func TestRefusalsOfMoreCallersThanHaveSummariesAreOneRow(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	denials := audit.NewDenials()
	for n := range 8_000 {
		flood := refusal("prj_one")
		flood.Actor = nil
		flood.Request.Origin = fmt.Sprint("address ", n)
		flood.Action = fmt.Sprint("field", n)
		denials.Denied(flood)
	}
	require.NoError(t, denials.Flush(t.Context(), kit.DB.Worker()))
	require.Equal(t, 1, kit.Count("audit_entry", "actor_kind = 'SYSTEM' AND action = 'REFUSALS'"))
	counted := 0
	require.NoError(t, kit.Admin.QueryRow(t.Context(), `SELECT sum(repeats) FROM audit_entry`).Scan(&counted))
	require.Equal(t, 8_000, counted)
}

func TestWhatIsPendingIsWrittenSoonAndAtTheEnd(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	denials := audit.NewDenials()
	stop := writer(denials, kit.DB.Worker())
	defer func() { _ = stop() }()
	denials.Denied(refusal("prj_soon"))
	require.Eventually(t, func() bool {
		return kit.Count("audit_entry", "object_id = 'prj_soon'") == 1
	}, patience, tick)
	denials.Denied(refusal("prj_last"))
	require.NoError(t, stop())
	require.Equal(t, 1, kit.Count("audit_entry", "object_id = 'prj_last'"))
}

func TestRefusalsOutlastADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	denials, pool := audit.NewDenials(), kit.DB.Worker()
	database := ""
	require.NoError(t, kit.Admin.QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&database))
	kit.SQL(`REVOKE CONNECT ON DATABASE ` + database + ` FROM PUBLIC, app_worker`)
	kit.SQL(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
		AND usename = 'app_worker'`)
	require.Eventually(t, func() bool { return pool.Ping(t.Context()) != nil }, patience, tick)
	denials.Denied(refusal("prj_kept"))
	require.Error(t, denials.Flush(t.Context(), pool))
	denials.Denied(refusal("prj_kept"))

	stop := writer(denials, pool)
	defer func() { _ = stop() }()
	require.Never(t, func() bool {
		return kit.Count("audit_entry", "") > 0
	}, 500*time.Millisecond, 100*time.Millisecond)
	kit.SQL(`GRANT CONNECT ON DATABASE ` + database + ` TO app_worker`)
	require.Eventually(t, func() bool { // although no other refusal comes to wake the writer
		return kit.Count("audit_entry", "object_id = 'prj_kept' AND repeats = 2") == 1
	}, patience, tick)
	require.NoError(t, stop())
	require.Equal(t, 1, kit.Count("audit_entry", ""))
}

func TestOneMalformedRefusalDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	denials := audit.NewDenials()
	for _, object := range []string{"prj_a", "prj_\x00", "prj_b"} {
		denials.Denied(refusal(object))
	}
	require.NoError(t, denials.Flush(t.Context(), kit.DB.Worker()))
	require.Equal(t, 2, kit.Count("audit_entry", "object_id = ANY ($1)", []ids.ID{"prj_a", "prj_b"}))
	require.NoError(t, denials.Flush(t.Context(), kit.DB.Worker()))
	require.Equal(t, 2, kit.Count("audit_entry", ""))
}

func TestARefusedVerbIsAuditedAndWritesNothingElse(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	viewer := kit.As(kit.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	for range 2 {
		require.Error(t, kit.DB.Write(viewer, func(_ context.Context, w *tx.Tx) error {
			return audit.Require(w, "launchInstance", authz.AppsInstanceCreate, where, project.ID)
		}))
	}
	require.Error(t, kit.DB.Write(viewer, func(_ context.Context, w *tx.Tx) error {
		return audit.Missing(w, "decommissionInstance", authz.AppsInstanceDelete, "ins_other")
	}))
	entries := kit.Audit()
	require.Len(t, entries, 2)
	require.Equal(t, []any{"launchInstance", "FORBIDDEN", 2, false},
		[]any{entries[0].Action, entries[0].Code, entries[0].Repeats, entries[0].Allowed})
	require.Equal(t, []any{"decommissionInstance", "NOT_FOUND", 1},
		[]any{entries[1].Action, entries[1].Code, entries[1].Repeats})
	require.Equal(t, "192.0.2.1", entries[0].Origin)
}
