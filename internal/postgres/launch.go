package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/gpuaas/app-platform/internal/filelock"
)

const (
	inheritedDir  = "/proc/self/fd/3" // the data directory when the account cannot walk to it
	maxLogBytes   = 16 << 20
	maxSocketPath = 107 // sun_path of unix(7), less the closing zero
)

// launch holds what initdb and postgres have in common for one start.
type launch struct {
	cfg       Config
	binaries  Binaries
	account   account
	socketDir string
	log       *os.File
	dir       *os.File // the data directory as a descriptor; nil when the account can walk there
}

func prepare(ctx context.Context, cfg Config) (*launch, error) {
	l := &launch{cfg: cfg}
	var err error
	if l.binaries, err = Find(ctx); err != nil {
		return nil, err
	}
	if l.account, err = chooseAccount(cfg.DataDir); err != nil {
		return nil, err
	}
	if err = l.account.ownDir(cfg.DataDir); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if l.socketDir, err = l.account.socketDir(cfg); err != nil {
		return nil, err
	}
	if l.log, err = openLog(cfg.LogFile); err != nil {
		return nil, fmt.Errorf("log file: %w", err)
	}
	if !l.account.reaches(cfg.DataDir) {
		if l.dir, err = os.Open(cfg.DataDir); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	}
	return l, nil
}

// socketDir creates the socket's folder: the configured one, or the first short one that the account can walk to.
func (a account) socketDir(cfg Config) (string, error) {
	sum := sha256.Sum256([]byte(cfg.DataDir))
	name := "gpuaas-pg-" + hex.EncodeToString(sum[:6])
	candidates := []string{filepath.Join(os.TempDir(), name), "/tmp/" + name, "/dev/shm/" + name}
	if cfg.SocketDir != "" {
		candidates = []string{cfg.SocketDir}
	}
	var refused []error
	for _, dir := range candidates {
		err := a.trySocketDir(dir)
		if err == nil {
			return dir, nil
		}
		refused = append(refused, err)
	}
	return "", fmt.Errorf("no folder for the server's socket: %v", refused)
}

// removeSocketDir answers a function that removes a folder that socketDir chose, unless another server is just starting
// on it.
func (c Config) removeSocketDir(dir string) func() {
	return func() {
		if c.SocketDir != "" {
			return
		}
		if lock, err := filelock.Try(c.DataDir+".lock", filelock.Exclusive); err == nil {
			_ = os.Remove(dir)
			lock.Release()
		}
	}
}

func (a account) trySocketDir(dir string) error {
	if len(dir)+len("/.s.PGSQL.5432.lock") > maxSocketPath {
		return fmt.Errorf("%s is too long for a unix socket", dir)
	}
	if !a.reaches(dir) {
		return fmt.Errorf("uid %d cannot reach %s", a.uid, dir)
	}
	return a.ownDir(dir)
}

// openLog opens the log for appending, and begins a new one when it has grown past its bound.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

func (l *launch) close() {
	_ = l.log.Close()
	if l.dir != nil {
		_ = l.dir.Close()
	}
}

// command prepares one of the server programs to run as the account, with the data directory as its last two arguments.
func (l *launch) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	dataDir := l.cfg.DataDir
	if l.dir != nil {
		dataDir = inheritedDir
	}
	cmd := exec.CommandContext(ctx, filepath.Join(l.binaries.Dir, program), append(args, "-D", dataDir)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + l.binaries.Dir + ":/usr/bin:/bin", "LC_ALL=C.UTF-8", "PGTZ=UTC", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: l.account.credential(), Setsid: true}
	if l.dir != nil {
		cmd.ExtraFiles = []*os.File{l.dir}
	}
	return cmd
}

// initdb creates the cluster unless it is there. A half-made one (of a killed initdb) has no global/pg_control and is
// removed first.
func (l *launch) initdb(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(l.cfg.DataDir, "global", "pg_control")); err == nil {
		return nil
	}
	if err := emptyDir(l.cfg.DataDir); err != nil {
		return fmt.Errorf("remove the incomplete cluster: %w", err)
	}
	args := []string{"-U", Superuser, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"}
	if l.cfg.Profile == Throwaway {
		args = append(args, "--no-sync")
	}
	cmd := l.command(ctx, "initdb", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		_ = emptyDir(l.cfg.DataDir)
		return fmt.Errorf("initdb: %w: %s", err, tail(out))
	}
	return nil
}

// emptyDir removes what a killed initdb left. It refuses a folder with neither PG_VERSION nor pg_wal, so that a
// mistyped data directory costs no one any files.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err != nil {
		if _, err := os.Stat(filepath.Join(dir, "pg_wal")); err != nil {
			return fmt.Errorf("%s is not empty and holds no cluster", dir)
		}
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// run starts postgres. Its goroutine keeps one thread until the server ends, because the kernel's parent-death signal
// is tied to the thread that forked, not to the process.
func (l *launch) run() (*Server, error) {
	cmd := l.command(context.Background(), "postgres", l.cfg.arguments(l.socketDir)...)
	cmd.Stdout, cmd.Stderr = l.log, l.log
	if l.cfg.DieWithParent {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	}
	server := &Server{socketDir: l.socketDir, tidy: l.cfg.removeSocketDir(l.socketDir), done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			server.exit = cmd.Wait()
			close(server.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	server.pid = cmd.Process.Pid
	return server, nil
}

// logTail is the end of the server's messages, for an error text.
func (l *launch) logTail() string {
	file, err := os.Open(l.cfg.LogFile)
	if err != nil {
		return ""
	}
	defer file.Close()
	if _, err := file.Seek(-1000, io.SeekEnd); err != nil {
		_, _ = file.Seek(0, io.SeekStart)
	}
	data, _ := io.ReadAll(io.LimitReader(file, 1000))
	return ": " + tail(data)
}

func tail(out []byte) string {
	out = bytes.TrimSpace(out)
	return string(out[max(0, len(out)-1000):])
}
