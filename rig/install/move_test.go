package install_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/install"
)

func TestMovedDatabaseIsACopyOnAnotherServerAtTheOldAddress(t *testing.T) {
	t.Parallel()
	r := up(t, install.Config{Dir: filepath.Join(t.TempDir(), "data"), Plain: true})
	exec1(t, r.AdminDSN(), "create table kept ()")
	left, err := pgx.Connect(t.Context(), r.AdminDSN())
	require.NoError(t, err)
	t.Cleanup(func() { _ = left.Close(context.Background()) })
	before, system := r.AdminDSN(), ""
	require.NoError(t, left.QueryRow(t.Context(), "select system_identifier::text from pg_control_system()").
		Scan(&system))
	require.NoError(t, r.MoveDatabase(t.Context()), "a session that a killed program left is ended")
	require.Error(t, left.Ping(t.Context()))
	require.Equal(t, before, r.AdminDSN())
	exec1(t, r.AdminDSN(), "select from kept")
	after, err := pgx.Connect(t.Context(), r.AdminDSN())
	require.NoError(t, err)
	t.Cleanup(func() { _ = after.Close(context.Background()) })
	other := ""
	require.NoError(t, after.QueryRow(t.Context(), "select system_identifier::text from pg_control_system()").
		Scan(&other))
	require.NotEqual(t, system, other)
	require.NoError(t, r.MoveDatabase(t.Context()), "again")
}
