package queue_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

func TestTheBacklogOfWhoHasItsMostCostsAClaimNothing(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	crowd, lone := kit.Project(kit.Tenant()), kit.Project(kit.Tenant())
	for project, count := range map[string]int{string(crowd.ID): 20_000, string(lone.ID): 2} {
		kit.SQL(`INSERT INTO operation (id, tenant_id, project_id, kind, state, requester_kind, requester_id,
			correlation_id,
			next_run_at, deadline, created_at)
			SELECT 'op_' || right($1, 12) || '_' || n, tenant_id, id, 'ALLOCATION_RELEASE', 'PENDING', 'USER', 'u', 'c', now() -
			interval '1 hour',
				now() + interval '1 hour', now() FROM project, generate_series(1, $2::int) n
				WHERE id = $1`, project, count)
	}
	kit.SQL(`UPDATE operation SET adapter_name = CASE tenant_id WHEN $1 THEN 'slow' ELSE 'well' END`, crowd.TenantID)
	kit.SQL(`VACUUM ANALYZE operation`)
	full := `{` + string(crowd.TenantID) + `}`
	for name, call := range map[string]struct{ sql, arguments string }{
		"the claim beside a full tenant": {queue.ClaimSQL,
			`('wrk_1', 4, '` + full + `', true, '{}', '{}', 'null', '{}')`},
		"the next due beside one": {queue.NextBesideSQL, `('{}', '{}', '` + full + `', '{}')`},
		"the claim beside a crowded adapter": {queue.ClaimSQL,
			`('wrk_1', 4, '{}', true, '{}', '{}', 'null', '{slow}')`},
		"the next due beside such a one": {queue.NextBesideSQL, `('{}', '{}', '{}', '{slow}')`},
	} {
		raw := planOf(t, kit, call.sql, call.arguments)
		var plans []struct {
			Plan map[string]any `json:"Plan"`
		}
		require.NoError(t, json.Unmarshal([]byte(raw), &plans))
		require.Less(t, plans[0].Plan["Shared Hit Blocks"].(float64)+
			plans[0].Plan["Shared Read Blocks"].(float64), 1000.0, "%s: %s", name, raw)
	}
}

// TestAClaimBehindABacklogStepsAlongTheQueueWhateverTheStatistics gives the planner the statistics of a time without
// open operations: each index of open ones then looks as short as any other.
func TestAClaimBehindABacklogStepsAlongTheQueueWhateverTheStatistics(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	crowd, second := kit.Project(tenant), kit.Project(tenant)
	kit.SQL(`INSERT INTO operation (id, tenant_id, project_id, kind, state, requester_kind, requester_id,
		correlation_id,
		next_run_at, deadline, created_at, ended_at)
		SELECT 'op_ended_' || n, tenant_id, id, 'ALLOCATION_RELEASE', 'SUCCEEDED', 'USER', 'u', 'c', now(), now(), now(), now()
		FROM project, generate_series(1, 20000) n WHERE id = $1`, crowd.ID)
	kit.SQL(`VACUUM ANALYZE operation`)
	fill(kit, crowd, 10_000, time.Hour)
	fill(kit, second, 10, time.Second)
	for statement, arguments := range map[string]string{
		queue.ClaimSQL:      `('wrk_1', 8, '{}', false, '{}', '{}', 'null', '{}')`,
		queue.NextBesideSQL: `('{}', '{}', '{ten_x}', '{}')`,
	} {
		require.NotContains(t, planOf(t, kit, statement, arguments), "operation_open_by_adapter")
	}
}

// planOf carries a statement out as the claim's transaction does, and returns its plan.
func planOf(t *testing.T, kit *platformtest.Kit, statement, arguments string) (plan string) {
	t.Helper()
	transaction, err := kit.DB.Worker().Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, transaction.Rollback(t.Context())) }()
	for _, each := range []string{queue.ClaimSettings, "PREPARE planned AS " + statement} {
		_, err = transaction.Exec(t.Context(), each)
		require.NoError(t, err)
	}
	defer func() {
		_, err := transaction.Exec(t.Context(), "DEALLOCATE planned")
		require.NoError(t, err)
	}()
	explain := "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE planned" + arguments
	require.NoError(t, transaction.QueryRow(t.Context(), explain, pgx.QueryExecModeSimpleProtocol).Scan(&plan))
	return plan
}
