package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/internal/prereq"
	"github.com/gpuaas/app-platform/migrations"
)

// clusterTimeout bounds each thing that is done to a cluster.
const clusterTimeout = 2 * time.Minute

// Cluster is a database server of one test's own, for what a shared one cannot show: another server, a standby, a
// crash. It ends with the test.
type Cluster struct {
	*postgres.Server
	t   testing.TB
	dir string
}

// clusterSettings are what replication needs, and what a crash of the server, though not of the machine, needs to keep
// every commit.
var clusterSettings = map[string]string{
	"wal_level": "replica", "max_wal_senders": "8", "synchronous_commit": "on", "full_page_writes": "on",
	"max_prepared_transactions": "4", "hot_standby": "on", "shared_buffers": "32MB",
}

// NewCluster creates an empty server.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	if err := prereq.Ensure(ctx, prereq.Postgres); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, dir: clusterDir(t)}
	c.start(ctx, nil)
	return c
}

// clusterDir is a folder that the server's account can walk to, which is removed with the test.
func clusterDir(t testing.TB) string {
	t.Helper()
	top := os.TempDir()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		top = "/dev/shm"
	}
	dir, err := os.MkdirTemp(top, "pgcluster")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // #nosec G302 -- the data below it is its account's alone
		t.Fatal(err)
	}
	return filepath.Join(dir, "pg")
}

// TB is the test that the server is of.
func (c *Cluster) TB() testing.TB { return c.t }

func (c *Cluster) start(ctx context.Context, more map[string]string) {
	c.t.Helper()
	settings := maps.Clone(clusterSettings)
	maps.Copy(settings, more)
	server, err := postgres.Start(ctx, postgres.Config{DataDir: c.dir, Profile: postgres.Throwaway, MaxConnections: 150,
		Settings: settings, DieWithParent: true})
	if err != nil {
		c.t.Fatalf("start a cluster: %v", err)
	}
	c.Server = server
	c.t.Cleanup(func() { _ = server.Kill() })
}

// Restart starts the server again after Kill, which is a crash to it.
func (c *Cluster) Restart() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	c.start(ctx, nil)
}

// Migrated creates a database with all migrations.
func (c *Cluster) Migrated(name string) {
	c.t.Helper()
	c.Do("postgres", "create database "+quote(name))
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	if err := migrations.Up(ctx, c.DSN(name)); err != nil {
		c.t.Fatal(err)
	}
}

// Do runs statements as the superuser, outside of a transaction where there is one alone.
func (c *Cluster) Do(database, statements string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.DSN(database))
	if err != nil {
		c.t.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.PgConn().Exec(ctx, statements).ReadAll(); err != nil {
		c.t.Fatalf("%s: %v", statements, err)
	}
}

// Standby starts a streaming replica, which follows c until one of them is ended.
func (c *Cluster) Standby() *Cluster {
	c.t.Helper()
	standby := &Cluster{t: c.t, dir: clusterDir(c.t)}
	c.program("pg_basebackup", "-h", c.SocketDir(), "-U", postgres.Superuser, "-D", standby.dir, "-R", "-X", "stream",
		"-c", "fast", "--no-sync")
	own(c.t, c.dir, standby.dir)
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	standby.start(ctx, nil)
	return standby
}

// Backup is a base backup of a server.
type Backup struct {
	of  *Cluster
	dir string
}

// Backup makes a base backup.
func (c *Cluster) Backup() *Backup {
	c.t.Helper()
	b := &Backup{of: c, dir: clusterDir(c.t)}
	c.program("pg_basebackup", "-h", c.SocketDir(), "-U", postgres.Superuser, "-D", b.dir, "-X", "fetch", "-c", "fast",
		"--no-sync")
	return b
}

// Recover makes a server of the backup as it was at a restore point, which pg_create_restore_point has named: the log
// since the backup is read from the server itself, which is ended.
func (b *Backup) Recover(point string) *Cluster {
	b.of.t.Helper()
	log := b.dir + ".log.d"
	if err := errors.Join(b.of.Kill(), os.CopyFS(log, os.DirFS(filepath.Join(b.of.dir, "pg_wal"))),
		os.WriteFile(filepath.Join(b.dir, "recovery.signal"), nil, 0o600)); err != nil {
		b.of.t.Fatal(err)
	}
	own(b.of.t, b.of.dir, b.dir)
	own(b.of.t, b.of.dir, log)
	c := &Cluster{t: b.of.t, dir: b.dir}
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	c.start(ctx, map[string]string{"restore_command": "cp " + log + "/%f %p", "recovery_target_name": point,
		"recovery_target_action": "promote"})
	c.Await(`SELECT NOT pg_is_in_recovery()`)
	return c
}

// own gives a folder with all below it to the account of another.
func own(t testing.TB, of, dir string) {
	t.Helper()
	info, err := os.Stat(of)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// CutOff ends a standby's stream: what its primary writes from now on, it does not get.
func (c *Cluster) CutOff() {
	c.t.Helper()
	c.Do("postgres", `ALTER SYSTEM SET primary_conninfo = ''`)
	c.Do("postgres", `SELECT pg_reload_conf()`)
	c.Await(`SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)`)
}

// Await waits until a query of one truth value is true.
func (c *Cluster) Await(query string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		c.t.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		var is bool
		if err := conn.QueryRow(ctx, query).Scan(&is); err != nil {
			c.t.Fatalf("%s: %v", query, err)
		}
		if is {
			return
		}
		<-look.C // the query ends with ctx
	}
}

// Promote makes a standby a primary.
func (c *Cluster) Promote() {
	c.t.Helper()
	c.Do("postgres", `SELECT pg_promote()`)
}

// Dump restores a database of c on another server, as pg_dump and pg_restore do.
func (c *Cluster) Dump(database string, elsewhere *Cluster) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "dump")
	c.program("pg_dump", "-h", c.SocketDir(), "-U", postgres.Superuser, "-Fc", "-f", file, database)
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	admin, err := pgx.Connect(ctx, elsewhere.DSN("postgres"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = admin.Close(ctx) }()
	if err := migrations.EnsureRoles(ctx, admin); err != nil {
		c.t.Fatal(err)
	}
	elsewhere.Do("postgres", "create database "+quote(database))
	elsewhere.program("pg_restore", "-h", elsewhere.SocketDir(), "-U", postgres.Superuser, "--exit-on-error", "-d",
		database, file)
}

// program runs one of PostgreSQL's own programs.
func (c *Cluster) program(name string, args ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	found, err := postgres.Find(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(found.Dir, name),
		args...).CombinedOutput(); err != nil { // #nosec G204 -- programs of PostgreSQL
		c.t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// Hosts is a role's address of a database that is on one of several servers, whichever takes writes.
func Hosts(role, database string, clusters ...*Cluster) string {
	sockets := make([]string, len(clusters))
	for i, each := range clusters {
		sockets[i] = each.SocketDir()
	}
	query := url.Values{"host": {strings.Join(sockets, ",")}, "sslmode": {"disable"}}
	return fmt.Sprintf("postgres://%s@/%s?%s", role, database, query.Encode())
}
