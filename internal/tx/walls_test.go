package tx_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
)

func TestBehindTheFirstWallNoTablesRowsOfOthersAreSeen(t *testing.T) {
	t.Parallel()
	w := newWall(t)
	seen := 0
	for _, table := range w.tables {
		own, owner := w.owner(w.mine, table)
		other, stranger := w.owner(w.theirs, table)
		w.inside(w.mine, func(_ context.Context, begun pgx.Tx) {
			touched, code := try(t, begun, `SELECT FROM `+table+` WHERE `+own, owner)
			if code == denied {
				return // hidden altogether
			}
			require.Empty(t, code, table)
			seen += int(touched)
			for name, sql := range map[string]string{
				"a filter":    `SELECT FROM ` + table + ` WHERE ` + other,
				"a predicate": `SELECT WHERE EXISTS (SELECT FROM ` + table + ` WHERE ` + other + `)`,
				"a count":     `SELECT WHERE (SELECT count(*) FROM ` + table + ` WHERE ` + other + `) > 0`,
				"a join":      `SELECT FROM project p JOIN ` + table + ` x ON x.` + other + ` OR p.id IS NULL`,
				"a negation": `SELECT FROM ` + table + ` x WHERE NOT EXISTS (SELECT FROM ` + table +
					` y WHERE y.ctid = x.ctid AND NOT y.` + other + `)`,
				"an order": `SELECT FROM (SELECT * FROM (SELECT true AS there FROM ` + table + ` WHERE ` + other +
					`) s ORDER BY there LIMIT 1) s`,
				"a lock": `SELECT FROM ` + table + ` WHERE ` + other + ` FOR KEY SHARE`,
			} {
				touched, code := try(t, begun, sql, stranger)
				require.Contains(t, []string{"", denied}, code, "%s of %s: %s", name, table, sql)
				require.Zero(t, touched, "%s shows another tenant's row of %s", name, table)
			}
			total, _ := try(t, begun, `SELECT FROM `+table)
			mine, _ := try(t, begun, `SELECT FROM `+table+` WHERE `+own, owner)
			require.Equal(t, mine, total, "%s shows more than one's own", table)
		})
	}
	require.Greater(t, seen, 15, "one's own rows are seen, so that the rest proves something")
}

func TestBehindTheFirstWallNoTablesRowsOfOthersAreWritten(t *testing.T) {
	t.Parallel()
	w := newWall(t)
	own := 0
	for _, table := range w.tables {
		other, stranger := w.owner(w.theirs, table)
		mine, owner := w.owner(w.mine, table)
		row, before := w.document(table, other, stranger), w.Count(table, other, stranger)
		w.inside(w.mine, func(_ context.Context, begun pgx.Tx) {
			touched, code := try(t, begun, `DELETE FROM `+table+` WHERE `+other, stranger)
			require.Contains(t, []string{"", denied}, code, "DELETE of %s", table)
			require.Zero(t, touched, "DELETE of %s", table)
			// The copy has the row's own id and unique values: the policy must refuse before an index reveals them.
			list := w.insertable(begun, table)
			touched, code = try(t, begun,
				`INSERT INTO `+table+` (`+list+`) SELECT `+list+` FROM jsonb_populate_record(NULL::`+
					table+`, $1)`, row)
			require.Equal(t, denied, code, "INSERT of %s (%d rows)", table, touched)
			for _, column := range w.updatable(begun, table) {
				touched, code := try(t, begun, `UPDATE `+table+` SET `+column+` = `+column+` WHERE `+other, stranger)
				require.Contains(t, []string{"", denied}, code, "UPDATE of %s.%s", table, column)
				require.Zero(t, touched, "UPDATE of %s.%s", table, column)
				touched, _ = try(t, begun, `UPDATE `+table+` SET `+column+` = `+column+` WHERE `+mine, owner)
				own += int(touched)
			}
			for _, column := range owners {
				if !slices.Contains(w.updatable(begun, table), column) || strings.HasPrefix(mine, "tenant_id") &&
					(column == "node_id" || column == "user_id") {
					continue // which node or person a tenant's row is about says nothing of whose it is
				}
				touched, code := try(t, begun, `UPDATE `+table+` SET `+column+` = $2 WHERE `+mine, owner,
					w.theirs.value(columnNamed(column), "", 0))
				require.True(t, code != "" || touched == 0, "a row of %s was given away by %s", table, column)
			}
			if slices.Contains(w.updatable(begun, table), "tenant_id") &&
				slices.Contains(w.updatable(begun, table), "project_id") {
				_, code := try(t, begun, `UPDATE `+table+` SET tenant_id = $2, project_id = $3 WHERE `+mine, owner,
					w.theirs.tenant.ID, w.theirs.project.ID)
				require.Contains(t, []string{denied, "P0001"}, code, "a row of %s was moved to another tenant", table)
			}
		})
		require.Equal(t, before, w.Count(table, other, stranger), table)
	}
	require.Greater(t, own, 20, "one's own rows can be written, so that the rest proves something")
}

func columnNamed(name string) column { return column{name: name} }

// document is a row as JSON.
func (w *wall) document(table, condition string, value any) (row []byte) {
	w.t.Helper()
	require.NoError(w.t, w.Admin.QueryRow(w.t.Context(), `SELECT to_jsonb(x)
		FROM `+table+` x WHERE `+condition+` LIMIT 1`,
		value).Scan(&row))
	return row
}

// insertable lists the columns that the login role may insert, updatable those that it may update.
func (w *wall) insertable(begun pgx.Tx, table string) string {
	columns := w.granted(begun, table, "INSERT")
	if len(columns) == 0 {
		columns = []string{w.columns[table][0].name} // refused, as it should be
	}
	return strings.Join(columns, ", ")
}

func (w *wall) updatable(begun pgx.Tx, table string) []string {
	return w.granted(begun, table, "UPDATE")
}

func (w *wall) granted(begun pgx.Tx, table, privilege string) (columns []string) {
	w.t.Helper()
	rows, err := begun.Query(w.t.Context(), `SELECT a.attname FROM pg_attribute a WHERE a.attrelid = $1::regclass
		AND a.attnum > 0 AND NOT a.attisdropped
		AND a.attgenerated = '' AND has_column_privilege($1::regclass, a.attnum, $2)`, table, privilege)
	require.NoError(w.t, err)
	columns, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	return columns
}

func TestAScopeIsForgedByNoStatement(t *testing.T) {
	t.Parallel()
	w := newWall(t)
	others := func(begun pgx.Tx) int64 {
		touched, code := try(t, begun, `SELECT FROM instance WHERE tenant_id = $1`, w.theirs.tenant.ID)
		require.Empty(t, code)
		return touched
	}
	settings := map[string]ids.ID{"app.tenants": w.theirs.tenant.ID, "app.projects": w.theirs.project.ID,
		"app.subject":      w.theirs.admin.ID,
		"app.seen_tenants": w.theirs.tenant.ID, "app.attached": w.theirs.rows["instance"], "app.node": w.theirs.node.ID}
	w.inside(w.theirs, func(_ context.Context, begun pgx.Tx) { require.EqualValues(t, 1, others(begun)) })
	for name, value := range settings {
		w.inside(w.mine, func(ctx context.Context, begun pgx.Tx) {
			for _, forged := range []string{string(value), strings.Repeat("0", 32) + string(value), "yes", ""} {
				_, err := begun.Exec(ctx, `SELECT set_config($1, $2, true), set_config('app.entered', 'yes', true)`,
					name, forged)
				require.NoError(t, err)
				require.Zero(t, others(begun), "%s = %s", name, forged)
				touched, code := try(t, begun, `SELECT FROM person WHERE tenant_id = $1`, w.theirs.tenant.ID)
				require.Empty(t, code)
				require.Zero(t, touched, "%s = %s", name, forged)
			}
		})
	}
	w.inside(w.mine, func(_ context.Context, begun pgx.Tx) {
		for _, sql := range []string{
			`SELECT platform.set_scope('x', ARRAY['x'], ARRAY['x'], ARRAY['x'], NULL, NULL)`,
			`SELECT currval('platform.scope_number')`, `SELECT nextval('platform.scope_number')`,
			`SELECT setval('platform.scope_number', 1)`,
			`SELECT last_value FROM platform.scope_number`, `SELECT setval('platform.scope_moment', 1)`,
			`SELECT FROM platform.access_scope`, `DELETE FROM platform.access_scope`,
			`INSERT INTO platform.access_scope (subject, written_at) VALUES ('x', now())`,
			`UPDATE platform.access_scope SET tenants = ARRAY['x']`, `LOCK TABLE platform.access_scope`,
			`SELECT nextval('platform.access_scope_number_seq')`,
			`SELECT platform.attached_to(ARRAY['x'])`,
			`SELECT platform.bindings_of('` + string(w.theirs.admin.ID) + `')`, `SET LOCAL ROLE app_owner`,
			`SET LOCAL SESSION AUTHORIZATION app_operator`,
			`SET LOCAL session_replication_role = replica`, `CREATE TABLE public.x ()`,
			`CREATE FUNCTION platform.x() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
		} {
			_, code := try(t, begun, sql)
			require.Equal(t, denied, code, sql)
		}
		_, code := try(t, begun, `SET LOCAL row_security = off`)
		require.Empty(t, code, "it may be asked for, and then refuses what a policy would have filtered")
		_, code = try(t, begun, `WITH off AS (SELECT set_config('row_security', 'off', true)) SELECT
			FROM off, instance`)
		require.Contains(t, []string{"", denied}, code)
		var last int64
		require.Error(t, begun.QueryRow(t.Context(), `SELECT lastval()`).Scan(&last))
	})
}

func TestTheCallerOfATransactionIsSetOnce(t *testing.T) {
	t.Parallel()
	w := newWall(t)
	operation, instance := w.theirs.rows["operation"], w.theirs.rows["instance"]
	w.inside(w.mine, func(ctx context.Context, begun pgx.Tx) {
		for _, sql := range []string{
			fmt.Sprintf(`SELECT platform.enter('operation', '%s', NULL)`, operation),
			fmt.Sprintf(`SELECT platform.enter('instance', '%s', NULL)`, instance),
			fmt.Sprintf(`SELECT platform.enter('exchange', '%s', NULL)`, w.theirs.rows["service_account_key"]),
			fmt.Sprintf(`WITH gone AS (SELECT set_config('app.subject', '', true), set_config('app.tenants', '', true))
				SELECT platform.enter('operation', '%s', NULL) FROM gone`, operation),
		} {
			_, code := try(t, begun, sql)
			require.Equal(t, "25000", code, sql)
		}
		touched, code := try(t, begun, `SELECT FROM instance WHERE tenant_id = $1`, w.mine.tenant.ID)
		require.Empty(t, code)
		require.EqualValues(t, 1, touched, "and it is still who it was")
	})
	session := w.Session(w.mine.admin)
	begun, err := w.DB.API().Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = begun.Rollback(context.WithoutCancel(t.Context())) }()
	_, code := try(t, begun, `SELECT platform.enter('session', 'ses_none', '\x00')`)
	require.Empty(t, code)
	enter(t, begun, session) // whoever entered as nobody may still enter
}

func TestBehindTheFirstWallANodeReachesItselfAlone(t *testing.T) {
	t.Parallel()
	w := newWall(t)
	mine, own := w.Node(4)
	for _, table := range []string{"compute_node", "node_task", "node_credential", "node_enrolment"} {
		condition := "node_id"
		if table == "compute_node" {
			condition = "id"
		}
		var seen []string
		_, err := w.DB.Read(w.With(own), text(&seen, `SELECT DISTINCT `+condition+` FROM `+table))
		require.NoError(t, err, table)
		require.Empty(t, slices.DeleteFunc(seen, func(id string) bool { return id == string(mine.ID) }),
			"of %s a node sees another's", table)
		_, err = w.DB.Read(w.With(own), text(&seen, `SELECT `+condition+` FROM `+table+` WHERE `+condition+` = $1`,
			w.theirs.node.ID))
		require.NoError(t, err, table)
		require.Empty(t, seen)
	}
}
