package tx_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// two is a kit with an instance in each of two tenants' projects.
type two struct {
	*platformtest.Kit
	mine, theirs         *db.Project
	ours, other          *db.Instance
	admin, theirAdmin    *db.User
	ourTenant, theTenant *db.Tenant
}

func newTwo(t *testing.T) *two {
	t.Helper()
	k := &two{Kit: platformtest.New(t)}
	k.ourTenant, k.theTenant = k.Tenant(), k.Tenant()
	k.mine, k.theirs = k.Project(k.ourTenant), k.Project(k.theTenant)
	node, _ := k.Node(4)
	second, _ := k.Node(4)
	_, stored := k.Launchable(k.mine, "apps")
	k.ours = k.Instance(k.mine, stored, lifecycle.InstanceRunning, k.Allocation(k.mine, node))
	k.other = k.Instance(k.theirs, stored, lifecycle.InstanceRunning, k.Allocation(k.theirs, second))
	k.admin = k.User(k.ourTenant, platformtest.In(authz.ProjectAdmin, k.mine),
		platformtest.Across(authz.TenantAdmin, k.ourTenant))
	k.theirAdmin = k.User(k.theTenant, platformtest.Across(authz.TenantAdmin, k.theTenant))
	return k
}

func text(into *[]string, sql string, args ...any) tx.Query {
	return tx.Rows(into, pgx.RowTo[string], sql, args...)
}

// ran is a verb that must not be reached.
func ran(t *testing.T) func(context.Context, *tx.Tx) error {
	return func(context.Context, *tx.Tx) error { t.Error("the verb ran"); return nil }
}

func TestATenantReadsAndWritesItsOwnRowsAlone(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	ctx := k.As(k.admin)
	for _, table := range []string{"instance", "member", "allocation"} {
		var seen []string
		_, err := k.DB.Read(ctx, text(&seen, `SELECT count(*)::text FROM `+table))
		require.NoError(t, err)
		require.Equal(t, []string{"1"}, seen, table)
	}
	var seen []string
	_, err := k.DB.Read(ctx, text(&seen, `SELECT id FROM instance
		WHERE id = ANY ($1)`, []ids.ID{k.ours.ID, k.other.ID}))
	require.NoError(t, err)
	require.Equal(t, []string{string(k.ours.ID)}, seen)

	require.NoError(t, k.DB.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		require.Equal(t, 1, w.Instance.Query().CountX(ctx))
		tag, err := w.Exec(ctx, `UPDATE instance SET health_message = 'touched'`)
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
		_, err = w.Instance.Get(ctx, k.other.ID)
		require.True(t, db.IsNotFound(err))
		return nil
	}))
	require.Equal(t, 1, k.Count("instance", "health_message = 'touched'"))
}

func TestRowsCannotBeWrittenIntoAnotherTenant(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	ctx := k.As(k.admin)
	insert := `INSERT INTO operation (id, tenant_id, project_id, kind, state, requester_kind, requester_id,
		correlation_id, deadline, next_run_at, created_at)
		VALUES ($1, $2, $3, 'INSTANCE_CREATE', 'PENDING', 'USER', 'usr_x', 'c', now(), now(), now())`
	id := ids.New(ids.Operation)
	err := k.DB.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		_, err := w.Exec(ctx, insert, id, k.theTenant.ID, k.theirs.ID)
		return err
	})
	require.ErrorContains(t, err, "row-level security")
	err = k.DB.Write(ctx, func(ctx context.Context, w *tx.Tx) error { // a project of theirs under our tenant's name
		_, err := w.Exec(ctx, insert, id, k.ourTenant.ID, k.theirs.ID)
		return err
	})
	require.Error(t, err)
	err = k.DB.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		_, err := w.Exec(ctx, `UPDATE instance SET tenant_id = $1, project_id = $2 WHERE id = $3`, k.theTenant.ID,
			k.theirs.ID, k.ours.ID)
		return err
	})
	require.Error(t, err)
	// the name is taken there: the policy refuses before the index reveals it
	err = k.DB.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		_, err := w.Exec(ctx, `INSERT INTO instance SELECT (jsonb_populate_record(i, jsonb_build_object('id', 'ins_new',
			'name', $1::text, 'tenant_id', $2::text, 'project_id', $3::text))).*
			FROM instance i`, k.other.Name, k.theTenant.ID, k.theirs.ID)
		return err
	})
	require.ErrorContains(t, err, "row-level security")
	require.Zero(t, k.Count("operation", ""))
	require.Equal(t, 1, k.Count("instance", "tenant_id = $1", k.theTenant.ID))
}

func TestTheScopeOfOneCallerIsGoneForTheNextOnTheSameConnection(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	mine, theirs := k.As(k.admin), k.As(k.theirAdmin)
	for range 20 {
		for ctx, want := range map[context.Context]ids.ID{mine: k.ours.ID, theirs: k.other.ID} {
			var seen []string
			_, err := k.DB.Read(ctx, text(&seen, `SELECT id FROM instance`))
			require.NoError(t, err)
			require.Equal(t, []string{string(want)}, seen)
		}
	}
	var left int // a connection used by nobody in particular sees nothing
	require.NoError(t, k.DB.API().QueryRow(t.Context(), `SELECT count(*) FROM instance`).Scan(&left))
	require.Zero(t, left)
}

func TestSecondWallHoldsWhereTheFirstIsSwitchedOff(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	actor, err := k.DB.Read(k.As(k.admin))
	require.NoError(t, err)
	require.True(t, actor.AllowsOn(authz.AppsInstanceRead, authz.Object{TenantID: k.ourTenant.ID,
		ProjectID: k.mine.ID}))
	// As a tenant's login role, with the scope that platform.enter sets for them, no permission is checked.
	conn, err := k.DB.API().Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	begun, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = begun.Rollback(context.WithoutCancel(t.Context())) }()
	var kind *string
	secret := idOf(t, k.Session(k.theirAdmin))
	require.NoError(t, begun.QueryRow(t.Context(), `SELECT subject_kind FROM platform.enter('session', $1, $2)`, secret,
		[]byte("wrong")).Scan(&kind))
	require.Nil(t, kind)
	var n int
	require.NoError(t, begun.QueryRow(t.Context(), `SELECT count(*) FROM instance`).Scan(&n))
	require.Zero(t, n)
	session := k.Session(k.theirAdmin)
	_, err = begun.Exec(t.Context(), `SELECT platform.enter('session', $1, sha256($2::bytea))`, idOf(t, session),
		[]byte(session))
	require.NoError(t, err)
	for _, table := range []string{"instance", "member", "allocation", "operation", "app_instance_event",
		"audit_entry"} {
		require.NoError(t, begun.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` WHERE tenant_id = $1`,
			k.ourTenant.ID).Scan(&n))
		require.Zero(t, n, table)
	}
	require.NoError(t, begun.QueryRow(t.Context(), `SELECT count(*) FROM instance`).Scan(&n))
	require.Equal(t, 1, n)
}

// login is the login role that serves a credential's reads.
func login(t *testing.T, kit *platformtest.Kit, ctx context.Context) string {
	t.Helper()
	var role []string
	_, err := kit.DB.Read(ctx, text(&role, `SELECT session_user::text`))
	require.NoError(t, err)
	var wrote string
	require.NoError(t, kit.DB.Write(ctx, func(ctx context.Context, w *tx.Tx) error {
		return w.QueryRow(ctx, `SELECT session_user::text`).Scan(&wrote)
	}))
	require.Equal(t, role[0], wrote)
	return wrote
}

func TestPlatformStaffMoveToTheirOwnLoginRoleAndBack(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	user := k.User(k.ourTenant, platformtest.In(authz.ProjectViewer, k.mine))
	ctx := k.As(user)
	require.Equal(t, "app_api", login(t, k.Kit, ctx))
	binding := k.Bind(user, platformtest.OnPlatform(authz.PlatformOperator))
	require.Equal(t, "app_operator", login(t, k.Kit, ctx))
	var seen []string
	_, err := k.DB.Read(ctx, text(&seen, `SELECT id FROM instance`))
	require.NoError(t, err)
	require.Len(t, seen, 2)
	k.SQL(`UPDATE role_binding SET revoked_at = now() WHERE id = $1`, binding.ID)
	_, err = k.DB.Read(ctx, text(&seen, `SELECT id FROM instance`))
	require.NoError(t, err)
	require.Equal(t, []string{string(k.ours.ID)}, seen)
	require.Equal(t, "app_api", login(t, k.Kit, ctx))

	operator := k.As(k.Operator())
	// the first call of all is a write
	require.NoError(t, k.DB.Write(operator, func(ctx context.Context, w *tx.Tx) error {
		require.Equal(t, 2, w.Instance.Query().CountX(ctx))
		return nil
	}))
	_, credential := k.Node(0)
	var role []string
	_, err = k.DB.Read(k.With(credential), text(&role, `SELECT session_user::text`))
	require.NoError(t, err)
	require.Equal(t, []string{"app_node"}, role)
}

func TestAnActorNeverOutlivesTheBindingsItWasMadeFrom(t *testing.T) {
	t.Parallel()
	k := newTwo(t)
	user := k.User(k.ourTenant)
	ctx := k.As(user)
	where := authz.Object{TenantID: k.ourTenant.ID, ProjectID: k.mine.ID}
	allows := func(key authz.Key) bool {
		actor, err := k.DB.Read(ctx)
		require.NoError(t, err)
		return actor.AllowsOn(key, where)
	}
	require.False(t, allows(authz.AppsInstanceRead))
	viewer := k.Bind(user, platformtest.In(authz.ProjectViewer, k.mine))
	require.True(t, allows(authz.AppsInstanceRead))
	require.False(t, allows(authz.AppsInstanceCreate))
	k.Bind(user, platformtest.In(authz.ProjectAdmin, k.mine))
	require.True(t, allows(authz.AppsInstanceCreate))
	k.SQL(`UPDATE role_binding SET revoked_at = now() WHERE id <> $1`, viewer.ID)
	require.False(t, allows(authz.AppsInstanceCreate))
	require.True(t, allows(authz.AppsInstanceRead))
	k.SQL(`UPDATE role_binding SET expires_at = now() - interval '1 second' WHERE id = $1`, viewer.ID)
	require.False(t, allows(authz.AppsInstanceRead))
	ends := time.Now().Add(300 * time.Millisecond)
	grant := platformtest.In(authz.ProjectViewer, k.mine)
	grant.ExpiresAt = &ends
	k.Bind(user, grant)
	require.Eventually(t, func() bool { return !allows(authz.AppsInstanceRead) }, 10*time.Second, 50*time.Millisecond)

	account, key := k.ServiceAccount(k.mine, authz.AppsInstanceRead)
	ctx = k.With(key)
	require.True(t, allows(authz.AppsInstanceRead))
	k.SQL(`UPDATE service_account SET permission_keys = '["apps.instance.create"]' WHERE id = $1`, account.ID)
	require.False(t, allows(authz.AppsInstanceRead))
	require.True(t, allows(authz.AppsInstanceCreate))
}
