package pgtest_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/pgtest"
)

// notes is a small schema for the tests of the kit itself, with a role, an owner, rights and a setting of its own.
func notes(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `
		do $$ begin create role pgtest_notes login; exception when duplicate_object then null; end $$;
		do $$ begin execute format('alter database %I owner to pgtest_notes', current_database());
			execute format('revoke connect on database %I from public', current_database());
			execute format('alter database %I set search_path = pg_catalog, public', current_database()); end $$;
		create table public.note (body text);
		alter table public.note owner to pgtest_notes`)
	return err
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func one[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	a, b := pgtest.NewFrom(t, "notes", notes), pgtest.NewFrom(t, "notes", notes)
	require.NotEqual(t, a.Name, b.Name)
	_, err := connect(t, a.AdminDSN()).Exec(t.Context(), "insert into note values ('only in a')")
	require.NoError(t, err)
	require.Zero(t, one[int](t, connect(t, b.AdminDSN()), "select count(*) from note"))
}

func TestCloneKeepsOwnerRightsAndSettingsOfItsTemplate(t *testing.T) {
	t.Parallel()
	db := pgtest.NewFrom(t, "notes", notes)
	conn := connect(t, db.RoleDSN("pgtest_notes"))
	require.Equal(t, "pgtest_notes", one[string](t, conn, "select current_user"))
	require.Equal(t, "pg_catalog, public", one[string](t, conn, "show search_path"))
	require.True(t, one[bool](t, conn,
		"select pg_get_userbyid(datdba) = current_user from pg_database where datname = current_database()"))
	require.False(t, one[bool](t, conn, "select has_database_privilege('pg_monitor', current_database(), 'connect')"))
}

func TestDatabaseIsDroppedWithItsTestEvenWhileInUse(t *testing.T) {
	t.Parallel()
	keeper := pgtest.NewFrom(t, "notes", notes)
	var name string
	t.Run("inner", func(t *testing.T) {
		db := pgtest.NewFrom(t, "notes", notes)
		name = db.Name
		_, err := pgx.Connect(context.Background(), db.AdminDSN()) // deliberately left open
		require.NoError(t, err)
	})
	require.Zero(t, one[int](t, connect(t, keeper.AdminDSN()), "select count(*) from pg_database where datname = $1",
		name))
}

func TestTemplateIsBuiltOnceForManyTests(t *testing.T) {
	t.Parallel()
	var built atomic.Int32
	build := func(ctx context.Context, dsn string) error {
		built.Add(1)
		return notes(ctx, dsn)
	}
	key := "once " + t.Name() + pgtest.NewFrom(t, "notes", notes).Name
	t.Run("group", func(t *testing.T) {
		for range 8 {
			t.Run("clone", func(t *testing.T) {
				t.Parallel()
				require.Equal(t, 0, one[int](t, connect(t, pgtest.NewFrom(t, key, build).AdminDSN()),
					"select count(*) from note"))
			})
		}
	})
	require.Equal(t, int32(1), built.Load())
}

func TestProductDatabaseHasEveryRoleAndTheMigratedTables(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for want, dsn := range map[string]string{
		"postgres": db.AdminDSN(), pgtest.Owner: db.OwnerDSN(), pgtest.API: db.APIDSN(),
		pgtest.Operator: db.OperatorDSN(), pgtest.Node: db.NodeDSN(), pgtest.Worker: db.WorkerDSN(),
	} {
		conn := connect(t, dsn)
		require.Equal(t, want, one[string](t, conn, "select current_user"))
		require.Equal(t, db.Name, one[string](t, conn, "select current_database()"))
	}
	require.NotZero(t, one[int](t, connect(t, db.AdminDSN()), "select count(*) from goose_db_version"))
}
