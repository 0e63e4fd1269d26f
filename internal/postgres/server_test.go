package postgres_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/internal/prereq"
)

func TestMain(m *testing.M) {
	if err := prereq.Ensure(context.Background(), prereq.Postgres); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// start brings a throwaway server up in a fresh directory and ends it with the test.
func start(t *testing.T, cfg postgres.Config) *postgres.Server {
	t.Helper()
	server, err := postgres.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

// shortDir is a folder that every account can walk to.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgs")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func query[T any](t *testing.T, server *postgres.Server, sql string) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&value))
	return value
}

func TestStartedServerAnswersAndStops(t *testing.T) {
	t.Parallel()
	cfg := postgres.Config{DataDir: filepath.Join(shortDir(t), "data"), Profile: postgres.Throwaway, MaxConnections: 33}
	server := start(t, cfg)

	require.Equal(t, "33", query[string](t, server, "show max_connections"))
	require.Equal(t, "off", query[string](t, server, "show fsync"))
	require.Empty(t, query[string](t, server, "show listen_addresses"))
	require.False(t, server.Attached())

	require.NoError(t, server.Stop())
	require.NoError(t, server.Stop())
	_, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.Error(t, err)
}

func TestDurableServerKeepsRowsAcrossRestart(t *testing.T) {
	t.Parallel()
	cfg := postgres.Config{DataDir: filepath.Join(shortDir(t), "data"),
		Settings: map[string]string{"shared_buffers": "16MB"}}
	first := start(t, cfg)
	require.Equal(t, "on", query[string](t, first, "show fsync"))
	require.Equal(t, int64(7), query[int64](t, first, "select 7::int8"))
	conn, err := pgx.Connect(t.Context(), first.DSN("postgres"))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "create table kept as select 42::int8 as n")
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	require.NoError(t, first.Stop())

	second := start(t, cfg)
	require.Equal(t, int64(42), query[int64](t, second, "select n from kept"))
}

func TestSecondStartAttachesToTheLiveServer(t *testing.T) {
	t.Parallel()
	cfg := postgres.Config{DataDir: filepath.Join(shortDir(t), "data"), Profile: postgres.Throwaway}
	first := start(t, cfg)
	second, err := postgres.Start(t.Context(), cfg)
	require.NoError(t, err)
	require.True(t, second.Attached())
	require.Equal(t, first.PID(), second.PID())
	require.Equal(t, first.SocketDir(), second.SocketDir())

	require.NoError(t, second.Stop())
	<-first.Done()
}

func TestStalePIDFileDoesNotKeepTheServerFromStarting(t *testing.T) {
	t.Parallel()
	cfg := postgres.Config{DataDir: filepath.Join(shortDir(t), "data"), Profile: postgres.Throwaway}
	require.NoError(t, start(t, cfg).Stop())
	// The number in the file belongs to a live program that is not postgres: this test.
	stale := strings.Join([]string{strconv.Itoa(os.Getpid()), cfg.DataDir, "1", "5432", "/tmp", "", "", "ready"}, "\n")
	require.NoError(t, os.WriteFile(filepath.Join(cfg.DataDir, "postmaster.pid"), []byte(stale), 0o644))
	require.False(t, start(t, cfg).Attached())
}

func TestKilledServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	cfg := postgres.Config{DataDir: filepath.Join(shortDir(t), "data"),
		Settings: map[string]string{"shared_buffers": "16MB"}}
	first := start(t, cfg)
	require.NoError(t, syscall.Kill(first.PID(), syscall.SIGKILL))
	<-first.Done()
	require.False(t, start(t, cfg).Attached())
}

func TestDataDirectoryBelowAClosedFolderWorks(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another account, which then cannot walk into a closed folder")
	}
	closed := shortDir(t)
	require.NoError(t, os.Chmod(closed, 0o700))
	cfg := postgres.Config{DataDir: filepath.Join(closed, "data"), Profile: postgres.Throwaway}
	server := start(t, cfg)
	require.Equal(t, int64(1), query[int64](t, server, "select count(*) from pg_database where datname = 'template0'"))
	require.NoError(t, server.Stop())
	require.False(t, start(t, cfg).Attached())
}

func TestForeignFilesInTheDataDirectoryAreKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), "data")
	require.NoError(t, os.Mkdir(dir, 0o700))
	precious := filepath.Join(dir, "thesis.txt")
	require.NoError(t, os.WriteFile(precious, []byte("x"), 0o600))
	_, err := postgres.Start(t.Context(), postgres.Config{DataDir: dir})
	require.ErrorContains(t, err, "is not empty and holds no cluster")
	require.FileExists(t, precious)
}

func TestOverlongSocketFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	_, err := postgres.Start(t.Context(), postgres.Config{
		DataDir: filepath.Join(dir, "data"), SocketDir: filepath.Join(dir, strings.Repeat("s", 100)),
	})
	require.ErrorContains(t, err, "too long for a unix socket")
}

func TestWrongSettingFailsWithTheServersOwnWords(t *testing.T) {
	t.Parallel()
	_, err := postgres.Start(t.Context(), postgres.Config{
		DataDir: filepath.Join(shortDir(t), "data"), Profile: postgres.Throwaway,
		Settings: map[string]string{"no_such": "1"},
	})
	require.ErrorContains(t, err, "no_such")
}

// TestServerEndsWithItsParent re-runs this test program as the parent, kills it, and expects the server to have ended.
func TestServerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	const env = "POSTGRES_TEST_DATA_DIR"
	if dir := os.Getenv(env); dir != "" {
		_, err := postgres.Start(t.Context(), postgres.Config{DataDir: dir, Profile: postgres.Throwaway,
			DieWithParent: true})
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	dir := filepath.Join(shortDir(t), "data")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerEndsWithItsParent$")
	cmd.Env = append(os.Environ(), env+"="+dir)
	out, err := cmd.CombinedOutput()
	require.ErrorContains(t, err, "signal: killed", string(out))
	require.FileExists(t, filepath.Join(dir, "PG_VERSION"))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "postmaster.pid"))
		return os.IsNotExist(err)
	}, 20*time.Second, 20*time.Millisecond)
}
