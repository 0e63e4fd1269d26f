package pgtest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/internal/filelock"
	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/internal/prereq"
)

const (
	// maxConnections is shared by all test processes of the machine.
	maxConnections = 300
	// defaultGrace bridges the time between two packages of one `go test` run.
	defaultGrace = 20 * time.Second
	// wantFree is the free space in bytes for which /dev/shm holds the cluster; containers often have 64 MB there.
	wantFree = 1 << 30
)

//go:embed watchdog.sh
var watchdogScript string

// server is this process's hold on the shared server. The server lives at least as long as users is held.
type server struct {
	postgres *postgres.Server
	users    *filelock.Lock
	number   int32      // marks this process's databases
	mu       sync.Mutex // guards conn: pgx connections serve one caller at a time
	conn     *pgx.Conn  // to database postgres; its session holds the advisory lock of number
	known    sync.Map   // template key → true once this process has seen it built
}

// defaultDir returns the well-known place of this user's shared server: in memory where there is space.
func defaultDir() string {
	name := fmt.Sprintf("gpuaas-pgtest-%d", os.Geteuid())
	var fs syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= wantFree {
		return filepath.Join("/dev/shm", name)
	}
	return filepath.Join("/tmp", name)
}

// join attaches to the shared server in dir, starting it (and its watchdog, with the given grace) when it is not there.
func join(ctx context.Context, dir string, grace time.Duration) (*server, error) {
	if err := prereq.Ensure(ctx, prereq.Postgres); err != nil {
		return nil, err
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	users, err := filelock.Acquire(ctx, filepath.Join(dir, "users.lock"), filelock.Shared)
	if err != nil {
		return nil, err
	}
	s := &server{users: users, number: rand.Int32()}
	if err := s.connect(ctx, dir, grace); err != nil {
		users.Release()
		return nil, err
	}
	return s, nil
}

// makeDir makes the shared folder, or checks that the one there is ours: the place is well known and others may write
// beside it.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st := info.Sys().(*syscall.Stat_t); !info.IsDir() || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", dir)
	}
	return os.Chmod(dir, 0o711) // the server's account walks through it
}

func (s *server) connect(ctx context.Context, dir string, grace time.Duration) (err error) {
	lock, err := filelock.Acquire(ctx, filepath.Join(dir, "start.lock"), filelock.Exclusive)
	if err != nil {
		return err
	}
	defer lock.Release()
	s.postgres, err = postgres.Start(ctx, postgres.Config{
		DataDir: filepath.Join(dir, "data"), SocketDir: filepath.Join(dir, "s"),
		Profile: postgres.Throwaway, MaxConnections: maxConnections,
	})
	if err != nil {
		return err
	}
	if err := watch(dir, grace); err != nil {
		return err
	}
	config, err := pgx.ParseConfig(s.dsn("postgres"))
	if err != nil {
		return err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // every statement here is used once: nothing to prepare
	if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if _, err := s.conn.Exec(ctx, "select pg_advisory_lock($1, $2)", processLocks, s.number); err != nil {
		return fmt.Errorf("mark process: %w", err)
	}
	return s.sweep(ctx)
}

// watch starts a watchdog unless one is on guard. It gets no pipe of this process: `go test` would wait for its end.
func watch(dir string, grace time.Duration) error {
	lock, err := filelock.Try(filepath.Join(dir, "watchdog.lock"), filelock.Exclusive)
	if errors.Is(err, filelock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	lock.Release()
	seconds := strconv.FormatFloat(grace.Seconds(), 'f', -1, 64)
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "pgtest-watchdog", dir, seconds)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("watchdog: %w", err)
	}
	return cmd.Process.Release()
}

// leave gives this process's hold back: any other process may then drop its databases.
func (s *server) leave(ctx context.Context) {
	_ = s.conn.Close(ctx)
	s.users.Release()
}

func (s *server) dsn(database string) string { return s.postgres.DSN(database) }

// admin runs f on the process's connection to database postgres.
func (s *server) admin(ctx context.Context, f func(conn *pgx.Conn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return f(s.conn)
}
