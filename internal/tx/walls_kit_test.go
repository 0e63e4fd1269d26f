package tx_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// shared are the tables that belong to no tenant, each with the reason why a tenant's rows cannot lie there. A new
// table is either listed here or has a column that says whose its rows are; then it is put to the wall like the others.
var shared = map[string]string{
	"app":                  "the catalog is the platform's and read by all",
	"manifest":             "the catalog is the platform's and read by all",
	"manifest_artifact":    "the catalog is the platform's and read by all",
	"adapter":              "adapters are the platform's",
	"evidence_runner":      "runners are the platform's and read by all",
	"storage_class":        "what operators offer is read by all",
	"access_scope":         "callers' scopes; functions alone read and write it",
	"volume_node":          "functions alone read and write it; login roles of tenants have no right to the table",
	"sku_price":            "list prices are the platform's and read by all",
	"compute_node":         "nodes are the platform's; a tenant sees those that its live allocations are bound to",
	"node_enrolment":       "of a node; callers of tenants have no policy on it",
	"worker_process":       "of the platform; the workers alone see it",
	"login_attempt":        "of nobody yet: functions alone read it",
	"audit_link":           "hashes of the audit; callers of tenants have no policy on it",
	"audit_checkpoint":     "hashes of the audit; callers of tenants have no policy on it",
	"lifecycle_transition": "a constant table of the domain",
	"billing_look":         "of the platform, one row; the workers alone see it",
	"member_pool":          "the installation's own; functions alone read it",
	"generation_log":       "the installation's own; functions alone read and write it",
	"member_range":         "of members, by functions alone; login roles have no right to it",
	"goose_db_version":     "the migrations' own",
}

// owners are the columns that say whose a row is.
var owners = []string{"tenant_id", "project_id", "user_id", "owner_project_id", "node_id"}

// side is a tenant with what its rows refer to.
type side struct {
	tenant  *db.Tenant
	project *db.Project
	admin   *db.User
	node    *db.ComputeNode
	rows    map[string]ids.ID // the id of its row, by table
}

// wall is a database with a row of each of two tenants in every table that has an owner.
type wall struct {
	*platformtest.Kit
	t            *testing.T
	mine, theirs *side
	tables       []string
	columns      map[string][]column
}

type column struct {
	name, kind      string
	nullable, given bool // given: the database makes its value
}

func newWall(t *testing.T) *wall {
	t.Helper()
	w := &wall{Kit: platformtest.New(t), t: t, columns: map[string][]column{}}
	w.readCatalogue()
	w.dropChecks()
	w.mine, w.theirs = w.newSide(), w.newSide()
	for i, s := range []*side{w.mine, w.theirs} {
		for _, table := range w.tables {
			w.fill(s, table, i)
		}
	}
	return w
}

func (w *wall) newSide() *side {
	s := &side{tenant: w.Tenant(), rows: map[string]ids.ID{}}
	s.project = w.Project(s.tenant)
	s.admin = w.User(s.tenant, platformtest.Across(authz.TenantAdmin, s.tenant),
		platformtest.In(authz.ProjectAdmin, s.project))
	s.node, _ = w.Node(4)
	return s
}

// readCatalogue lists the tables of the platform with their columns, and refuses one of unknown ownership.
func (w *wall) readCatalogue() {
	rows, err := w.Admin.Query(w.t.Context(), `SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
		NOT a.attnotnull,
			a.attgenerated <> '' OR a.attidentity <> ''
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE n.nspname IN ('public', 'platform') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum`)
	require.NoError(w.t, err)
	var table string
	var c column
	_, err = pgx.ForEachRow(rows, []any{&table, &c.name, &c.kind, &c.nullable, &c.given}, func() error {
		w.columns[table] = append(w.columns[table], c)
		return nil
	})
	require.NoError(w.t, err)
	for table, columns := range w.columns {
		owned := slices.ContainsFunc(columns, func(c column) bool { return slices.Contains(owners, c.name) })
		switch _, known := shared[table]; {
		case known:
		case table == "tenant" || owned:
			w.tables = append(w.tables, table)
		default:
			w.t.Errorf(
				"whose are the rows of %s? give it a tenant and a project, or list it among shared with the reason",
				table)
		}
	}
	slices.Sort(w.tables)
}

// dropChecks drops the checks of values: rows here have invented values, and only their owners matter.
func (w *wall) dropChecks() {
	w.SQL(`DO $$ DECLARE c record; BEGIN
		FOR c IN SELECT conrelid::regclass AS relation, conname FROM pg_constraint
			WHERE contype = 'c' AND conislocal AND coninhcount = 0
				AND connamespace IN ('public'::regnamespace, 'platform'::regnamespace) AND conrelid <> 0 LOOP
			EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.relation, c.conname);
		END LOOP; END $$`)
}

// fill inserts the side's row of a table, past triggers and foreign keys; values that do not matter are invented.
func (w *wall) fill(s *side, table string, nth int) {
	tag := fmt.Sprintf("%s_%d", table, nth)
	row := map[string]any{}
	for _, c := range w.columns[table] {
		if value := s.value(c, tag, nth); value != nil && !c.given {
			row[c.name] = value
		}
	}
	if id, ok := row["id"].(string); ok {
		s.rows[table] = ids.ID(id)
	}
	encoded, err := json.Marshal(row)
	require.NoError(w.t, err)
	names := make([]string, 0, len(row))
	for name := range row {
		names = append(names, pgx.Identifier{name}.Sanitize())
	}
	list := strings.Join(names, ", ")
	err = pgx.BeginFunc(w.t.Context(), w.Admin, func(begun pgx.Tx) error {
		if _, err := begun.Exec(w.t.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := begun.Exec(w.t.Context(),
			fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s
				FROM jsonb_populate_record(NULL::%s, $1)`, table, list, list, table),
			encoded)
		return err
	})
	require.NoError(w.t, err, "make a row of %s", table)
}

// value is what a column of the side's row holds; nil to leave it out.
func (s *side) value(c column, tag string, nth int) any {
	switch c.name {
	case "id":
		return tag
	case "tenant_id":
		return s.tenant.ID
	case "project_id", "owner_project_id":
		return s.project.ID
	case "user_id":
		return s.admin.ID
	case "node_id":
		return s.node.ID
	}
	switch {
	case c.nullable:
		return nil
	case c.kind == "text":
		return tag
	case c.kind == "boolean":
		return false
	case c.kind == "jsonb":
		return map[string]any{}
	case c.kind == "bytea":
		return `\x` + fmt.Sprintf("%02d", nth)
	case strings.HasPrefix(c.kind, "timestamp"):
		return "2026-11-20T11:00:00Z"
	case strings.HasSuffix(c.kind, "[]"):
		return []any{}
	}
	return 10 + nth // numbers
}

// owner names the row's owner in a condition that holds for the side's row alone, with its value.
func (w *wall) owner(s *side, table string) (condition string, value any) {
	if table == "tenant" {
		return "id = $1", s.tenant.ID
	}
	for _, name := range owners {
		if slices.ContainsFunc(w.columns[table], func(c column) bool { return c.name == name }) {
			return name + " = $1", s.value(column{name: name}, "", 0)
		}
	}
	w.t.Fatalf("%s has no owner", table)
	return "", nil
}

// inside runs do as the callers' login role in a transaction that entered as the side's admin: no permission is checked
// there, so that the second wall is tested alone. The transaction is rolled back.
func (w *wall) inside(s *side, do func(ctx context.Context, begun pgx.Tx)) {
	w.t.Helper()
	ctx, session := w.t.Context(), w.Session(s.admin)
	begun, err := w.DB.API().Begin(ctx)
	require.NoError(w.t, err)
	defer func() { _ = begun.Rollback(context.WithoutCancel(ctx)) }()
	enter(w.t, begun, session)
	do(ctx, begun)
}

// enter sets the transaction's caller.
func enter(t *testing.T, begun pgx.Tx, session string) {
	t.Helper()
	var kind string
	require.NoError(t, begun.QueryRow(t.Context(),
		`SELECT subject_kind FROM platform.enter('session', $1, sha256($2::bytea))`,
		idOf(t, session), []byte(session)).Scan(&kind))
	require.Equal(t, "USER", kind)
}

// try runs a statement and takes it back; it answers the rows it touched and the code of its refusal.
func try(t *testing.T, begun pgx.Tx, sql string, args ...any) (touched int64, code string) {
	t.Helper()
	var refused *pgconn.PgError
	err := pgx.BeginFunc(t.Context(), begun, func(point pgx.Tx) error {
		tag, err := point.Exec(t.Context(), sql, args...)
		touched = tag.RowsAffected()
		return errors.Join(err, errTakenBack)
	})
	if errors.As(err, &refused) {
		return 0, refused.Code
	}
	require.ErrorIs(t, err, errTakenBack)
	return touched, ""
}

var errTakenBack = errors.New("taken back")

// denied is PostgreSQL's refusal of a privilege or by a policy.
const denied = "42501"
