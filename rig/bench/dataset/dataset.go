// Package dataset keeps the database that benchmarks run on: a durable local server (fsync on) and generated, always
// equal rows. It is created once for each state of the migrations and each size, and kept.
package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/migrations"
	"github.com/gpuaas/app-platform/rig/bench/reference/frozen"
)

// generation changes whenever generated rows do, so that a kept database is created again.
const generation = 3

// Size is how much is generated.
type Size struct {
	// Name is part of the database's name.
	Name string
	// Tenants, and how many projects each has.
	Tenants, Projects int
	// Instances in all projects together, and how many events each has.
	Instances, Events int
}

// Full is what the product's figures are measured on: 20,000 instances with 1,000,000 events.
var Full = Size{Name: "full", Tenants: 50, Projects: 4, Instances: 20_000, Events: 50}

// Tenth has as long pages as Full and a tenth of its rows, and Tenfold ten times as many: 200,000
// instances with 10,000,000 events, which take some minutes to make and 15 GB of disk.
var (
	Tenth   = Size{Name: "tenth", Tenants: 10, Projects: 4, Instances: 2_000, Events: 50}
	Tenfold = Size{Name: "tenfold", Tenants: 50, Projects: 4, Instances: 200_000, Events: 50}
)

// Short is for a quick look.
var Short = Size{Name: "short", Tenants: 10, Projects: 2, Instances: 1_000, Events: 50}

// Tiny is for tests, which only want to see that everything works.
var Tiny = Size{Name: "tiny", Tenants: 2, Projects: 2, Instances: 240, Events: 25}

// Members of an instance, its operations, and the steps of each.
const (
	membersEach    = 3
	operationsEach = 2
	stepsEach      = 5
)

// Config says where the database is and what is in it.
type Config struct {
	// Dir holds the server's data; it is created when absent.
	Dir  string
	Size Size
	Log  *slog.Logger
	// Profile is Durable for figures that count.
	Profile postgres.Profile
}

// Set is an open data set. Close it.
type Set struct {
	// DSN is the administrator's address of the database, and Admin a pool of it.
	DSN   string
	Admin *pgxpool.Pool
	Size  Size

	server   *postgres.Server
	borrowed bool // the server is another's
}

// Open starts the server and generates the rows when they are not there yet.
func Open(ctx context.Context, config Config) (*Set, error) {
	server, err := postgres.Start(ctx, postgres.Config{
		DataDir: filepath.Join(config.Dir, "postgres"), Profile: config.Profile, DieWithParent: true,
	})
	if err != nil {
		return nil, err
	}
	set := &Set{server: server, Size: config.Size}
	if err := set.open(ctx, config); err != nil {
		set.Close()
		return nil, err
	}
	return set, nil
}

// Beside opens another data set on the same server; of config only Size and Log count. Close it first.
func (s *Set) Beside(ctx context.Context, config Config) (*Set, error) {
	other := &Set{server: s.server, Size: config.Size, borrowed: true}
	if err := other.open(ctx, config); err != nil {
		other.Close()
		return nil, err
	}
	return other, nil
}

func (s *Set) open(ctx context.Context, config Config) error {
	name := fmt.Sprintf("bench_%s_%s_%d", config.Size.Name, migrations.Hash(), generation)
	if err := s.makeAnew(ctx, config, name); err != nil {
		return err
	}
	s.DSN = s.server.DSN(name)
	var err error
	if s.Admin, err = pgxpool.New(ctx, s.DSN); err != nil {
		return fmt.Errorf("connect to the data set: %w", err)
	}
	if err := frozen.Install(ctx, s.Admin); err != nil {
		return err
	}
	return s.tidy(ctx)
}

// Close ends connections and the server.
func (s *Set) Close() {
	if s.Admin != nil {
		s.Admin.Close()
	}
	if !s.borrowed {
		_ = s.server.Stop() // nothing is left to do about it
	}
}

// makeAnew makes the database under another name first, so that half of one is never taken for it.
// Databases of earlier migrations and the same size go.
func (s *Set) makeAnew(ctx context.Context, config Config, name string) error {
	admin, err := pgx.Connect(ctx, s.server.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }()
	rows, err := admin.Query(ctx, `SELECT datname FROM pg_database WHERE datname LIKE 'bench\_' || $1 || '\_%'`,
		config.Size.Name)
	if err != nil {
		return fmt.Errorf("list the data sets: %w", err)
	}
	old, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list the data sets: %w", err)
	}
	for _, database := range old {
		if database == name {
			return nil
		}
		if _, err := admin.Exec(ctx, `DROP DATABASE `+pgx.Identifier{database}.Sanitize()+` WITH (FORCE)`); err != nil {
			return fmt.Errorf("drop an old data set: %w", err)
		}
	}
	return s.generate(ctx, config, admin, name)
}

func (s *Set) generate(ctx context.Context, config Config, admin *pgx.Conn, name string) error {
	began, draft := time.Now(), strings.Replace(name, "bench_", "draft_", 1)
	config.Log.Info("generating the data set", "instances", config.Size.Instances, "events",
		config.Size.Instances*config.Size.Events)
	for _, statement := range []string{`DROP DATABASE IF EXISTS ` + draft + ` WITH (FORCE)`,
		`CREATE DATABASE ` + draft} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return fmt.Errorf("make the data set: %w", err)
		}
	}
	if err := migrations.Up(ctx, s.server.DSN(draft)); err != nil {
		return err
	}
	if err := Fill(ctx, s.server.DSN(draft), config.Size); err != nil {
		return err
	}
	if _, err := admin.Exec(ctx, `ALTER DATABASE `+draft+` RENAME TO `+name); err != nil {
		return fmt.Errorf("make the data set: %w", err)
	}
	config.Log.Info("data set generated", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// heard is when the agents of the generated nodes last reported. The nodes have no agents here, and the product's
// reconcilers run in the measured server, so the time lies in the future for as long as a run takes.
const heard = `now() + interval '1 year'`

// tidy deletes what earlier runs created, which is younger than everything generated.
func (s *Set) tidy(ctx context.Context) error {
	tx, err := s.Admin.Begin(ctx)
	if err != nil {
		return fmt.Errorf("tidy the data set: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	statements := []string{`SET LOCAL session_replication_role = replica`,
		`TRUNCATE session, worker_process, idempotency, audit_entry, node_task CASCADE`}
	statements = append(statements, `UPDATE instance SET repair = NULL, updated_at = created_at + interval '10 minutes'
		WHERE repair IS NOT NULL`)
	for table, column := range made {
		statements = append(statements, `DELETE FROM `+table+` WHERE `+column)
	}
	statements = append(statements, `UPDATE compute_node SET status = 'ONLINE', last_seen_at = `+heard+`
		WHERE status <> 'ONLINE' OR last_seen_at IS NULL OR last_seen_at < now() + interval '30 days'`)
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("tidy the data set: %w", err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("tidy the data set: %w", err)
	}
	// What was deleted must not be walked over by what is measured, as little as after a minute of autovacuum.
	for table := range made {
		if _, err := s.Admin.Exec(ctx, `VACUUM `+table); err != nil {
			return fmt.Errorf("tidy the data set: %w", err)
		}
	}
	_, err = s.Admin.Exec(ctx, `CHECKPOINT`)
	return err
}

// made holds, by table, the condition for rows that a run created. Ids hold the time of their minting.
var made = map[string]string{
	"app_instance_event": youngerThan(ids.Event), "operation_step": youngerThan(ids.OperationStep),
	"operation": youngerThan(ids.Operation),
	"member":    youngerThan(ids.Member), "instance": youngerThan(ids.Instance),
	"allocation":   youngerThan(ids.Allocation),
	"compute_node": youngerThan(ids.Node),
}

func youngerThan(kind ids.Kind) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(epoch.UnixMilli()+1)<<16)
	return fmt.Sprintf("id > '%s'", ids.From(kind, raw))
}
