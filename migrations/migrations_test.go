package migrations_test

import (
	"context"
	"testing"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/pgtest"
	"github.com/gpuaas/app-platform/migrations"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// The sum is what tools compare the folder with, and what makes two new migrations on two branches clash where Git sees
// it.
func TestTheSumIsThatOfTheFiles(t *testing.T) {
	t.Parallel()
	dir, err := sqltool.NewGooseDir(".")
	require.NoError(t, err)
	require.NoError(t, migrate.Validate(dir), "write it with: go run ./internal/tools/migratediff NAME")
}

func TestUpIsHarmlessWhenRepeated(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Up(context.Background(), db.AdminDSN()))
}

func TestThePoolsOfMembersAreSetAndHeldApart(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	set := func(addresses, ranges string) error {
		return migrations.MemberPools(context.Background(), db.AdminDSN(), addresses, ranges)
	}
	require.NoError(t, set("10.64.0.0/16", ""))
	require.NoError(t, set("10.64.0.0/16", "10.65.0.0/16"))
	require.Error(t, set("10.65.0.0/24", ""), "they overlap")
	require.Error(t, set("nonsense", ""))
	var addresses, ranges string
	err := connect(t, db.OwnerDSN()).QueryRow(context.Background(),
		`SELECT text(addresses), text(ranges) FROM platform.member_pool`).Scan(&addresses, &ranges)
	require.NoError(t, err)
	require.Equal(t, "10.64.0.0/16 10.65.0.0/16", addresses+" "+ranges)
}

func TestTheDatabaseKnowsExactlyTheTransitionsOfTheDomain(t *testing.T) {
	t.Parallel()
	rows, err := connect(t, pgtest.New(t).OwnerDSN()).Query(context.Background(),
		`SELECT machine || ' ' || from_state || ' ' || to_state FROM lifecycle_transition`)
	require.NoError(t, err)
	stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	var known []string
	for _, move := range lifecycle.Transitions() {
		known = append(known, move.Machine+" "+move.From+" "+move.To)
	}
	require.ElementsMatch(t, known, stored)
}

func TestEveryTableIsUnderForcedRowLevelSecurity(t *testing.T) {
	t.Parallel()
	rows, err := connect(t, pgtest.New(t).OwnerDSN()).Query(context.Background(), `
		SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
		AND NOT (relrowsecurity AND relforcerowsecurity)
		AND relname NOT IN ('goose_db_version', 'lifecycle_transition')`)
	require.NoError(t, err)
	open, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, open)
}

func TestNoLoginRoleMayBypassPolicies(t *testing.T) {
	t.Parallel()
	var bypassing int
	err := connect(t, pgtest.New(t).OwnerDSN()).QueryRow(context.Background(),
		`SELECT count(*) FROM pg_roles WHERE rolname LIKE 'app\_%' AND (rolbypassrls OR rolsuper)`).Scan(&bypassing)
	require.NoError(t, err)
	require.Zero(t, bypassing)
}

func TestTheHostsOfAnAddressAreKeptForEachRole(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://admin@one:5432,two:5433/app?sslmode=disable": "" +
			"postgres://app_api@one:5432,two:5433/app?sslmode=disable",
		"postgres://admin@/app?host=/a,/b":    "postgres://app_api@/app?host=%2Fa%2C%2Fb",
		"postgresql://one,two/app?user=admin": "postgresql://app_api@one,two/app",
		"host=one,two dbname=app user=admin": "host=one,two dbname=app user=admin user=app_api " +
			"password=''",
	} {
		got, err := migrations.RoleDSN(dsn, "app_api")
		require.NoError(t, err)
		require.Equal(t, want, got)
		config, err := pgx.ParseConfig(got)
		require.NoError(t, err)
		require.Equal(t, "app_api", config.User)
		migrations.OnlyPrimary(&config.Config)
		require.NotNil(t, config.ValidateConnect, "%s: of several hosts only one that takes writes will do", dsn)
	}
	secret, err := migrations.RoleDSN("postgres://admin:p%40ss@one:5432,two:5432/app", "app_worker")
	require.NoError(t, err)
	require.Regexp(t, `^postgres://app_worker:[\w-]{43}@one:5432,two:5432/app$`, secret)
	config, err := pgx.ParseConfig("postgres://admin@one/app")
	require.NoError(t, err)
	migrations.OnlyPrimary(&config.Config)
	require.Nil(t, config.ValidateConnect, "one host is what it is")
}
