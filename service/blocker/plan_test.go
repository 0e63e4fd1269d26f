package blocker

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// multiply copies the one row of a table many times, under other ids; set changes columns besides.
func multiply(t *testing.T, kit *platformtest.Kit, table string, set map[string]string) {
	t.Helper()
	found, err := kit.Admin.Query(t.Context(),
		`SELECT column_name FROM information_schema.columns WHERE table_name = $1
			AND is_generated = 'NEVER' ORDER BY ordinal_position`, table)
	require.NoError(t, err)
	columns, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = "one." + pgx.Identifier{column}.Sanitize()
		if column == "id" {
			values[i] = "one.id || n"
		}
		if other, ok := set[column]; ok {
			values[i] = other
		}
		columns[i] = pgx.Identifier{column}.Sanitize()
	}
	kit.SQL(`INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `) SELECT ` + strings.Join(values, ", ") +
		` FROM (SELECT * FROM ` + table + ` LIMIT 1) one, generate_series(1, 5000) n`)
}

var sequential = regexp.MustCompile(`Seq Scan on (instance|member|allocation|operation|operation_step|node_task) `)

func TestNoReadingGoesThroughTheRowsOfOthers(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	node, _ := kit.Node(0)
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	op := kit.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	kit.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id, kind,
		spec_digest, state, timeout_seconds, idempotency_key, created_at, ended_at)
		SELECT 'tsk_1', m.tenant_id, m.project_id, m.instance_id, m.id, m.node_id, $1, 'RUN', '\x00', 'SUCCEEDED', 1, 'k',
		now(), now() FROM member m`, op.ID)
	kit.SQL(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state)
		VALUES ('stp_1', $1, $2, $3, 'await', 0, 'RUNNING')`,
		project.TenantID, project.ID, op.ID)
	// Others' rows: instances with an operation each, open or ended, their members, allocations, steps and tasks.
	for _, table := range []string{"instance", "member", "allocation", "operation", "operation_step", "node_task"} {
		kit.SQL(`ALTER TABLE ` + table + ` DISABLE TRIGGER ALL`)
	}
	others := map[string]string{"instance_id": "one.instance_id || n", "operation_id": "one.operation_id || n",
		"member_id": "one.member_id || n"}
	multiply(t, kit, "instance", map[string]string{"name": "one.name || n", "last_operation_id": "NULL"})
	multiply(t, kit, "allocation", others)
	multiply(t, kit, "member", map[string]string{"instance_id": "one.instance_id || n",
		"allocation_id": "one.allocation_id || n"})
	multiply(t, kit, "operation", map[string]string{"instance_id": "one.instance_id || n",
		"ended_at": "CASE WHEN n > 2000 THEN now() END", "next_run_at": "now() + interval '1 hour'"})
	multiply(t, kit, "operation_step", others)
	multiply(t, kit, "node_task", others)
	kit.SQL(`ANALYZE`)

	for _, read := range []*reading{newReading(ofOperations, []ids.ID{op.ID}),
		newReading(ofInstances, []ids.ID{instance.ID})} {
		for _, query := range read.queries() {
			plan := explain(t, kit, query)
			require.NotRegexp(t, sequential, plan, "%s\n%s", query.SQL, plan)
		}
	}
}

func explain(t *testing.T, kit *platformtest.Kit, query tx.Query) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found, err := kit.Admin.Query(ctx, `EXPLAIN `+query.SQL, query.Args...)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err, query.SQL)
	return strings.Join(lines, "\n")
}
