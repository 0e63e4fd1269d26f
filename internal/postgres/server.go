package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/internal/filelock"
)

// Superuser is the cluster's first role. It owns everything that the migrations do not hand to a role of their own.
const Superuser = "postgres"

// Config describes one server.
type Config struct {
	DataDir        string            // the cluster; created when absent. Required
	SocketDir      string            // where the unix socket goes; empty: a short path derived from DataDir
	LogFile        string            // the server's messages; empty: DataDir + ".log". Started anew above 16 MiB
	Profile        Profile           // Durable unless said otherwise
	MaxConnections int               // 0: 300
	Settings       map[string]string // further server settings; they win over the profile's
	DieWithParent  bool              // the kernel stops the server (fast shutdown) when this process dies
}

// Server is a running server, started or attached to.
type Server struct {
	pid       int
	socketDir string
	attached  bool
	tidy      func()        // removes what a start made outside the data directory; nil for an attached server
	done      chan struct{} // closed when the process ended; nil for an attached server
	exit      error         // set before done is closed
}

const (
	startTimeout = 60 * time.Second // crash recovery of a killed durable server can take a while
	stopTimeout  = 30 * time.Second // after it, the fast shutdown becomes an immediate one
	pollEvery    = 10 * time.Millisecond
)

// Start brings the cluster of cfg up and answers when it accepts connections. Several processes may call it for one
// data directory: one starts the server, the others attach. Errors wrap ErrNotInstalled where programs are missing,
// else name the step, with the end of the server's own messages.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(cfg.DataDir), 0o755); err != nil {
		return nil, fmt.Errorf("folder above the data directory: %w", err)
	}
	lock, err := filelock.Acquire(ctx, cfg.DataDir+".lock", filelock.Exclusive)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if server, err := attach(ctx, cfg); server != nil || err != nil {
		return server, err
	}
	return start(ctx, cfg)
}

func (c *Config) complete() error {
	if c.DataDir == "" {
		return errors.New("postgres: DataDir is empty")
	}
	abs, err := filepath.Abs(c.DataDir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	c.DataDir = abs
	if c.MaxConnections == 0 {
		c.MaxConnections = defaultMaxConnections
	}
	if c.LogFile == "" {
		c.LogFile = c.DataDir + ".log"
	}
	return nil
}

func start(ctx context.Context, cfg Config) (*Server, error) {
	l, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer l.close()
	server, err := l.bringUp(ctx)
	if err != nil && cfg.SocketDir == "" {
		_ = os.Remove(l.socketDir)
	}
	return server, err
}

func (l *launch) bringUp(ctx context.Context) (*Server, error) {
	if err := l.initdb(ctx); err != nil {
		return nil, err
	}
	server, err := l.run()
	if err != nil {
		return nil, err
	}
	if err := server.awaitReady(ctx); err != nil {
		_ = server.end()
		return nil, fmt.Errorf("start postgres: %w%s", err, l.logTail())
	}
	return server, nil
}

// DSN is the superuser's connection URL of a database.
func (s *Server) DSN(database string) string { return s.RoleDSN(Superuser, database) }

// RoleDSN is a role's connection URL of a database. The role must exist; no password is needed on this socket.
func (s *Server) RoleDSN(role, database string) string {
	query := url.Values{"host": {s.socketDir}, "sslmode": {"disable"}}
	return (&url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database, RawQuery: query.Encode()}).String()
}

// SocketDir is the folder of the server's unix socket.
func (s *Server) SocketDir() string { return s.socketDir }

// PID is the process id of the server's parent process.
func (s *Server) PID() int { return s.pid }

// Attached reports whether the server was already running.
func (s *Server) Attached() bool { return s.attached }

// Done is closed when a server that this process started has ended. It is nil for an attached one.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop ends the server (fast shutdown: open transactions are rolled back, a checkpoint is written) and waits for it,
// also when it was attached. A server that is still there after 30 s is ended without a checkpoint. Safe to call twice.
func (s *Server) Stop() error {
	if err := s.end(); err != nil {
		return err
	}
	if s.tidy != nil {
		s.tidy()
	}
	return nil
}

// Kill ends the server without a shutdown, as a crash would, and waits for it: what had not reached the
// log is lost, and the next start recovers.
func (s *Server) Kill() error {
	if err := syscall.Kill(s.pid, syscall.SIGQUIT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill postgres: %w", err)
	}
	if !s.awaitGone(stopTimeout) {
		return fmt.Errorf("postgres %d does not end", s.pid)
	}
	return nil
}

func (s *Server) end() error {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		if s.gone() {
			return nil
		}
		if err := syscall.Kill(s.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop postgres: %w", err)
		}
		if s.awaitGone(stopTimeout) {
			return nil
		}
	}
	return fmt.Errorf("postgres %d does not end", s.pid)
}

func (s *Server) gone() bool {
	if s.done == nil {
		return !isPostgres(s.pid)
	}
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *Server) awaitGone(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(pollEvery) {
		if s.gone() {
			return true
		}
	}
	return s.gone()
}

func (s *Server) awaitReady(ctx context.Context) error {
	for {
		err := s.ping(ctx)
		if err == nil {
			return nil
		}
		if s.done != nil && s.gone() {
			return fmt.Errorf("the server ended: %w", s.exit)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(pollEvery):
		}
	}
}

func (s *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
