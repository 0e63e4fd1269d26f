package tx_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// scopeSQL is what the policies read.
const scopeSQL = `SELECT coalesce(array_to_string(platform.scope('app.projects') || platform.scope('app.tenants') ||
	platform.scope('app.subject') || platform.scope('app.attached') || platform.scope('app.node') ||
	platform.scope('app.seen_tenants'), ','), '')`

// visible reports the scope and how many instances a transaction sees.
func visible(t *testing.T, on interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (scope string, instances int) {
	t.Helper()
	require.NoError(t, on.QueryRow(t.Context(), scopeSQL).Scan(&scope))
	require.NoError(t, on.QueryRow(t.Context(), `SELECT count(*) FROM instance`).Scan(&instances))
	return scope, instances
}

func TestATransactionOnAUsedConnectionThatDoesNotEnterSeesNothing(t *testing.T) {
	t.Parallel()
	w := newWall(t)
	conn, err := w.DB.API().Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	begun, err := conn.Begin(t.Context())
	require.NoError(t, err)
	enter(t, begun, w.Session(w.mine.admin))
	_, instances := visible(t, begun)
	require.Equal(t, 1, instances)
	require.NoError(t, begun.Commit(t.Context()))

	for _, before := range []string{`SELECT`, `SELECT set_config('app.entered', 'yes', false)`} {
		_, err = conn.Exec(t.Context(), before)
		require.NoError(t, err)
		for range 3 {
			scope, instances := visible(t, conn)
			require.Empty(t, scope, before)
			require.Zero(t, instances, before)
		}
	}
	_, err = conn.Exec(t.Context(), `DISCARD SEQUENCES`)
	require.NoError(t, err)
	var scope string
	require.ErrorContains(t, conn.QueryRow(t.Context(), scopeSQL).Scan(&scope), "not yet defined in this session")
}

func TestForgettingTheSessionsSequencesLetsNoSecondCallerIn(t *testing.T) {
	t.Parallel()
	w := newWall(t)
	for _, first := range []string{`SELECT`, `DISCARD SEQUENCES`} { // a connection's later caller, and its first
		w.inside(w.mine, func(ctx context.Context, begun pgx.Tx) {
			for _, forget := range []string{first, `DISCARD SEQUENCES`, `DISCARD TEMP`, `DISCARD PLANS`, `RESET ALL`} {
				_, err := begun.Exec(ctx, forget)
				require.NoError(t, err)
				for _, kind := range []string{"operation", "instance"} {
					_, code := try(t, begun, fmt.Sprintf(`SELECT platform.enter('%s', '%s', NULL)`, kind,
						w.theirs.rows[kind]))
					require.Equal(t, "25000", code, "%s after %s", kind, forget)
				}
			}
		})
	}
}

func TestObjectsOfACallersOwnAreTakenForNoneOfThePlatforms(t *testing.T) {
	t.Parallel()
	w := newWall(t)
	w.inside(w.mine, func(ctx context.Context, begun pgx.Tx) {
		for _, sql := range []string{
			`CREATE TEMP TABLE access_scope (number bigint, subject text, projects text[], tenants text[], seen text[],
				node text, attached text[], written_at timestamptz)`,
			fmt.Sprintf(`INSERT INTO access_scope SELECT n, '%s', ARRAY['%s'], ARRAY['%s']
				FROM generate_series(1, 99) n`,
				w.theirs.admin.ID, w.theirs.project.ID, w.theirs.tenant.ID),
			`CREATE TEMP SEQUENCE scope_number`, `CREATE TEMP SEQUENCE scope_moment`,
			`SELECT setval('pg_temp.scope_number', 1)`,
			`CREATE FUNCTION pg_temp.currval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'`,
			`CREATE FUNCTION pg_temp.same(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
			`CREATE OPERATOR pg_temp.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = pg_temp.same)`,
			`SET LOCAL search_path = pg_temp, public, pg_catalog`,
		} {
			_, err := begun.Exec(ctx, sql)
			require.NoError(t, err, sql)
		}
		touched, code := try(t, begun, `SELECT FROM public.instance WHERE tenant_id = $1`, w.theirs.tenant.ID)
		require.Empty(t, code)
		require.Zero(t, touched)
		touched, _ = try(t, begun, `SELECT FROM public.instance`)
		require.EqualValues(t, 1, touched, "its own is seen as before")
	})
}

// The rows hold what platform.enter found: whatever is granted, revoked and however often a state comes again, a
// transaction that enters after the commit has the scope of the bindings as they are.
func TestTheScopeFollowsRandomHistoriesOfBindings(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	tenant := k.Tenant()
	user := k.User(tenant)
	projects := []ids.ID{k.Project(tenant).ID, k.Project(tenant).ID, k.Project(tenant).ID}
	bound := map[ids.ID]ids.ID{}
	for _, project := range projects {
		bound[project] = ids.New(ids.RoleBinding)
		k.SQL(`INSERT INTO role_binding (id, user_id, role, tenant_id, project_id, created_at, revoked_at)
			SELECT $1, $2, $3, $4, $5, now(), now()`, bound[project], user.ID, authz.ProjectViewer, tenant.ID, project)
	}
	session := k.Session(user)
	rapid.Check(t, func(r *rapid.T) {
		for range 4 {
			var want []string
			for _, project := range projects {
				ends := rapid.SampledFrom([]string{"", "revoked_at = now()",
					"expires_at = now() - interval '1 second'"}).Draw(r, "end")
				k.SQL(`UPDATE role_binding SET revoked_at = NULL, expires_at = NULL WHERE id = $1`, bound[project])
				if ends != "" {
					k.SQL(`UPDATE role_binding SET `+ends+` WHERE id = $1`, bound[project])
					continue
				}
				want = append(want, string(project))
			}
			begun, err := k.DB.API().Begin(t.Context())
			require.NoError(r, err)
			enter(t, begun, session)
			var have []string
			require.NoError(r, begun.QueryRow(t.Context(), `SELECT coalesce(platform.scope('app.projects'), '{}')`).
				Scan(&have))
			require.NoError(r, begun.Commit(t.Context()))
			require.ElementsMatch(r, want, have)
		}
	})
	require.LessOrEqual(t, k.Count("platform.access_scope", "subject = $1", user.ID), 48,
		"a state that comes again has its row again: eight states, in at most six orders each")
}

func TestABindingThatEndsBesideAnEntryIsGoneForTheNext(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	session := k.Session(k.admin)
	sees := func() int {
		begun, err := k.DB.API().Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = begun.Rollback(context.WithoutCancel(t.Context())) }()
		enter(t, begun, session)
		_, instances := visible(t, begun)
		return instances
	}
	revoking, err := k.Admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = revoking.Exec(t.Context(), `UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, k.admin.ID)
	require.NoError(t, err)
	require.Equal(t, 1, sees(), "not yet committed")
	require.NoError(t, revoking.Commit(t.Context()))
	require.Zero(t, sees())
}

func TestRowsOfScopesAreUsedForAnHourAndSweptInBounds(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	session := k.Session(k.admin)
	entered := func() (number int64) {
		begun, err := k.DB.API().Begin(t.Context())
		require.NoError(t, err)
		enter(t, begun, session)
		require.NoError(t, begun.Commit(t.Context()))
		require.NoError(t, k.Admin.QueryRow(t.Context(), `SELECT max(number) FROM platform.access_scope
			WHERE subject = $1`, k.admin.ID).Scan(&number))
		return number
	}
	first := entered()
	require.Equal(t, first, entered(), "the same state has the same row")
	age := func(by time.Duration) {
		k.SQL(`UPDATE platform.access_scope SET written_at = now() - make_interval(secs => $1)`, by.Seconds())
	}
	age(61 * time.Minute)
	second := entered()
	require.Greater(t, second, first, "an hour is over")
	require.Equal(t, 1, k.Count("platform.access_scope", "number = $1", first), "transactions may still use it")
	k.SQL(`INSERT INTO platform.access_scope (subject, written_at) SELECT 'old', now() FROM generate_series(1, 30)`)
	for _, left := range []int{22, 13, 4, 0} { // of 32, and the caller's own row of each time before
		age(3 * time.Hour)
		entered()
		require.Equal(t, left, k.Count("platform.access_scope", "written_at < now() - interval '2 hours'"))
	}
}
