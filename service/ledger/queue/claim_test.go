package queue_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// fill lays n operations of a project down that became due one after the other, the first so long ago.
func fill(kit *platformtest.Kit, of *db.Project, n int, ago time.Duration) {
	kit.SQL(`INSERT INTO operation (id, tenant_id, project_id, kind, state, requester_kind, requester_id,
		correlation_id,
		next_run_at, deadline, created_at)
		SELECT 'op_' || right($2, 12) || '_' || n, $1, $2, 'ALLOCATION_RELEASE', 'PENDING', 'USER', 'u', 'c', now() -
		$4::interval * (($3 - n + 1)::float8 / $3),
			now() + interval '1 hour', now() FROM generate_series(1, $3::int) n`, of.TenantID, of.ID, n, ago)
}

// claimed is how many of each project's operations one claim takes.
func claimed(t *testing.T, kit *platformtest.Kit, want queue.Want) map[ids.ID]int {
	t.Helper()
	held, _, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), want)
	require.NoError(t, err)
	counts := map[ids.ID]int{}
	for _, one := range held {
		counts[one.ProjectID]++
	}
	return counts
}

func TestALoneOperationIsClaimedAtOnceBesideTenThousandOfAnotherTenant(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	crowd, lone := kit.Project(kit.Tenant()), kit.Project(kit.Tenant())
	fill(kit, crowd, 10_000, time.Hour)
	fill(kit, lone, 1, time.Second)
	require.Equal(t, map[ids.ID]int{crowd.ID: 4}, claimed(t, kit, queue.Want{Limit: 4, Narrow: true}),
		"a narrow claim sees the longest waiting alone")
	require.Equal(t, map[ids.ID]int{crowd.ID: 3, lone.ID: 1}, claimed(t, kit, queue.Want{Limit: 4}))
	require.Equal(t, map[ids.ID]int{crowd.ID: 4}, claimed(t, kit, queue.Want{Limit: 4}), "and nothing is claimed twice")
}

func TestProjectsOfATenantTakeTurnsBehindABacklog(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	crowd, second, third := kit.Project(tenant), kit.Project(tenant), kit.Project(tenant)
	fill(kit, crowd, 500, time.Hour)
	fill(kit, second, 2, time.Second)
	fill(kit, third, 2, time.Second)
	require.Equal(t, map[ids.ID]int{crowd.ID: 2, second.ID: 2, third.ID: 2}, claimed(t, kit, queue.Want{Limit: 6}))
}

func TestATenantThatHasItsMostIsPassedOver(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	crowd, lone := kit.Project(kit.Tenant()), kit.Project(kit.Tenant())
	fill(kit, crowd, 200, time.Hour)
	fill(kit, lone, 1, time.Second)
	full := []string{string(crowd.TenantID)}
	require.Equal(t, map[ids.ID]int{lone.ID: 1}, claimed(t, kit, queue.Want{Limit: 4, Full: full}))
	_, next, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), queue.Want{Limit: 4, Full: full})
	require.NoError(t, err)
	require.Greater(t, next, time.Hour, "what is passed over is nothing to look again for")
}

func TestAnAdapterThatHasItsMostIsPassedOver(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project, other := kit.Project(kit.Tenant()), kit.Project(kit.Tenant())
	fill(kit, project, 200, time.Hour)
	fill(kit, other, 1, time.Second)
	kit.SQL(`UPDATE operation SET adapter_name = 'slow'`)
	kit.SQL(`UPDATE operation SET adapter_name = 'well' WHERE id LIKE '%\_100' OR project_id = $1`, other.ID)
	want := queue.Want{Limit: 4, Crowded: []string{"slow"}}
	require.Equal(t, map[ids.ID]int{project.ID: 1, other.ID: 1}, claimed(t, kit, want),
		"what its tenant has on other adapters is claimed")
	_, next, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), want)
	require.NoError(t, err)
	require.Greater(t, next, time.Hour, "what is passed over is nothing to look again for")
	require.Equal(t, map[ids.ID]int{project.ID: 4}, claimed(t, kit, queue.Want{Limit: 4}))
}

func TestOperationsThatAreNotDueAreLeftAndTheirMomentIsTold(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	fill(kit, project, 1, -time.Minute)
	held, next, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), queue.Want{Limit: 4})
	require.NoError(t, err)
	require.Empty(t, held)
	require.InDelta(t, time.Minute, next, float64(10*time.Second))
}

func TestAWorkerThatStopsLetsGoAndItsClaimIsReadAgainAsGone(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	fill(kit, kit.Project(kit.Tenant()), 1, time.Second)
	worker := ids.New(ids.Worker)
	held, _, err := queue.Claim(t.Context(), kit.DB.Worker(), worker, queue.Want{Limit: 4})
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.NoError(t, held[0].Refresh(t.Context(), kit.DB.Worker()))
	require.NoError(t, queue.HandOver(t.Context(), kit.DB.Worker(), worker))
	require.ErrorIs(t, held[0].Refresh(t.Context(), kit.DB.Worker()), queue.ErrFenced)
	again, _, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), queue.Want{Limit: 4})
	require.NoError(t, err)
	require.Equal(t, held[0].ClaimEpoch+1, again[0].ClaimEpoch)
}

func TestAHolderThatWasStoppedLooksWhetherItHoldsStill(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	fill(kit, kit.Project(kit.Tenant()), 1, time.Second)
	worker := ids.New(ids.Worker)
	claimed, _, err := queue.Claim(t.Context(), kit.DB.Worker(), worker, queue.Want{Limit: 4})
	require.NoError(t, err)
	held := claimed[0]
	require.NoError(t, held.Ensure(t.Context(), kit.DB.Worker()))
	require.NoError(t, queue.HandOver(t.Context(), kit.DB.Worker(), worker))
	require.NoError(t, held.Ensure(t.Context(), kit.DB.Worker()), "it was read a moment ago")
	held.Age(time.Second)
	require.ErrorIs(t, held.Ensure(t.Context(), kit.DB.Worker()), queue.ErrFenced)
}

func TestALockedOperationIsNotWaitedForByWhoLocksNow(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	fill(kit, kit.Project(kit.Tenant()), 1, time.Second)
	held, _, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), queue.Want{Limit: 4})
	require.NoError(t, err)
	locks := func() error {
		batch := &pgx.Batch{}
		locking := held[0].QueueLockNow(batch)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of who waits nonetheless
		defer cancel()
		require.NoError(t, kit.DB.Worker().SendBatch(ctx, batch).Close())
		_, err := locking.Done()
		return err
	}
	require.NoError(t, locks())
	other, err := kit.Admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `SELECT FROM operation WHERE id = $1 FOR UPDATE`, held[0].ID)
	require.NoError(t, err)
	require.ErrorIs(t, locks(), queue.ErrFenced)
	require.NoError(t, other.Rollback(t.Context()))
	require.NoError(t, locks())
}

func TestAnAdaptersOpenOperationsAreLockedAndNoOthers(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	fill(kit, project, 4, time.Second)
	kit.SQL(`UPDATE operation SET adapter_name = 'one'`)
	kit.SQL(`UPDATE operation SET adapter_name = 'two' WHERE id LIKE '%\_2'`)
	kit.SQL(`UPDATE operation SET ended_at = now(), state = 'RUNNING' WHERE id LIKE '%\_3'`)
	var wanted []string
	rows, err := kit.Admin.Query(t.Context(), `SELECT id FROM operation WHERE id NOT LIKE '%\_4' ORDER BY id DESC`)
	require.NoError(t, err)
	wanted, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	var found []ids.ID
	batch := &pgx.Batch{}
	queue.Open(batch, wanted, "one", func(one *db.Operation) { found = append(found, one.ID) })
	require.NoError(t, kit.DB.Worker().SendBatch(t.Context(), batch).Close())
	require.Equal(t, []ids.ID{ids.ID(wanted[2])}, found)
}

func TestAWorkerClaimsOnlyWhatItsBuildKnows(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	fill(kit, project, 3, time.Second)
	kit.SQL(`UPDATE operation SET step_plan = 'theirs', claim_epoch = 1 WHERE id LIKE '%\_2'`)
	begin := map[lifecycle.OperationKind]string{lifecycle.AllocationRelease: "mine"}
	other := map[lifecycle.OperationKind]string{lifecycle.MemberDrain: "other"}
	held, next, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker),
		queue.Want{Limit: 4, Begin: other})
	require.NoError(t, err)
	require.Empty(t, held)
	require.Greater(t, next, time.Hour, "what it does not know is nothing to look again for")
	held, _, err = queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), queue.Want{Limit: 4, Begin: begin})
	require.NoError(t, err)
	require.Len(t, held, 2)
	for _, one := range held {
		require.Equal(t, "mine", one.StepPlan, "what it begins it names its plan on")
	}
	held, _, err = queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker),
		queue.Want{Limit: 4, Begin: other, Carry: []string{"theirs"}})
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.Equal(t, "theirs", held[0].StepPlan)
}

// statement reads one of the statements of the last build below the floor.
func statement(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + "_below_the_floor.sql")
	require.NoError(t, err)
	return string(text)
}

func TestTheDatabaseRefusesClaimsOfWorkersBelowTheFloor(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	fill(kit, kit.Project(kit.Tenant()), 3, time.Second)
	kit.SQL(`UPDATE operation SET state = 'RUNNING', claim_epoch = 4, step_plan = 'some' WHERE id LIKE '%\_2'`) // begun
	claims := func() error {
		batch := &pgx.Batch{}
		batch.Queue(statement(t, "settings"))
		batch.Queue(statement(t, "claim"), ids.New(ids.Worker), 4, []string{}, false)
		return kit.DB.Worker().SendBatch(t.Context(), batch).Close()
	}
	refused := func() {
		t.Helper()
		var refused *pgconn.PgError
		require.ErrorAs(t, claims(), &refused)
		require.Equal(t, "GP509", refused.Code)
		require.Contains(t, refused.Message, "older than the floor")
	}
	refused()
	require.Equal(t, 3, kit.Count("operation", "claimed_by IS NULL AND ended_at IS NULL"))
	require.Equal(t, 2, kit.Count("operation", "state = 'PENDING' AND claim_epoch = 0 AND started_at IS NULL"),
		"nothing was written")
	held, _, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), queue.Want{Limit: 4})
	require.NoError(t, err)
	require.Len(t, held, 3)
	_, err = kit.DB.Worker().Exec(t.Context(), `UPDATE operation SET claimed_by = NULL, next_run_at = now()`)
	require.NoError(t, err)
	refused() // what a claim says holds for that claim alone, also on its connection

	kit.SQL(`ALTER TABLE operation DISABLE TRIGGER refuse_old_claim`)
	require.NoError(t, claims())
	require.Equal(t, 3, kit.Count("operation", "claimed_by IS NOT NULL"),
		"without the guard that build would take them")
}

func TestBesideAFullTenantOthersAreFoundBehindItsBacklog(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	crowd, lone := kit.Project(kit.Tenant()), kit.Project(kit.Tenant())
	fill(kit, crowd, 200, time.Hour)
	fill(kit, lone, 6, time.Minute)
	full := []string{string(crowd.TenantID)}
	for range 3 {
		require.Equal(t, map[ids.ID]int{lone.ID: 2}, claimed(t, kit, queue.Want{Limit: 2, Full: full, Narrow: true}),
			"though it looked a moment ago")
	}
	held, next, err := queue.Claim(t.Context(), kit.DB.Worker(), ids.New(ids.Worker), queue.Want{Limit: 2, Full: full})
	require.NoError(t, err)
	require.Empty(t, held)
	require.Greater(t, next, time.Hour)
}
