// Command migratediff writes the next versioned migration: what ent/schema says and the migrations
// so far do not. It applies the migrations to an empty database of its own and diffs. Run it
// from the repository's root: go run ./internal/tools/migratediff NAME.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"slices"

	"ariga.io/atlas/sql/migrate"
	atlas "ariga.io/atlas/sql/schema"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	_ "github.com/jackc/pgx/v5/stdlib"

	dbmigrate "github.com/gpuaas/app-platform/ent/generated/db/migrate"
	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/migrations"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: migratediff NAME")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal("migratediff: ", err)
	}
}

func run(ctx context.Context, name string) error {
	dir, err := os.MkdirTemp("/tmp", "migratediff")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := postgres.Start(ctx, postgres.Config{DataDir: dir + "/pg", Profile: postgres.Throwaway})
	if err != nil {
		return fmt.Errorf("start a database: %w", err)
	}
	defer func() { _ = server.Stop() }()
	if err := migrations.Up(ctx, server.DSN("postgres")); err != nil {
		return err
	}
	return diff(ctx, server.DSN("postgres"), name)
}

// diff compares the migrated database at dsn with ent/schema and writes what is missing.
func diff(ctx context.Context, dsn, name string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	files, err := sqltool.NewGooseDir("migrations")
	if err != nil {
		return err
	}
	if err := checksum(files); err != nil {
		return err
	}
	mig, err := schema.NewMigrate(entsql.OpenDB(dialect.Postgres, db),
		schema.WithDir(files),
		schema.WithMigrationMode(schema.ModeInspect),
		schema.WithDialect(dialect.Postgres),
		schema.WithFormatter(sqltool.GooseFormatter),
		schema.WithForeignKeys(false),
		schema.WithDropColumn(true),
		schema.WithDropIndex(true),
		schema.WithDiffHook(keepHandWritten),
	)
	if err != nil {
		return err
	}
	if err := mig.NamedDiff(ctx, name, dbmigrate.Tables...); err != nil {
		return err
	}
	return checksum(files)
}

// checksum rewrites atlas.sum, since the hand-written files belong to the directory too.
func checksum(dir migrate.Dir) error {
	sum, err := dir.Checksum()
	if err != nil {
		return err
	}
	return migrate.WriteSumFile(dir, sum)
}

// keepHandWritten leaves alone what only the hand-written migrations declare: foreign keys, and
// whole tables such as the transition table of the state machines.
func keepHandWritten(next schema.Differ) schema.Differ {
	return schema.DiffFunc(func(current, desired *atlas.Schema) ([]atlas.Change, error) {
		changes, err := next.Diff(current, desired)
		if err != nil {
			return nil, err
		}
		var kept []atlas.Change
		for _, change := range changes {
			switch change := change.(type) {
			case *atlas.DropTable:
				continue
			case *atlas.ModifyTable:
				change.Changes = withoutDroppedKeys(change.Changes)
				if len(change.Changes) == 0 {
					continue
				}
			}
			kept = append(kept, change)
		}
		return kept, nil
	})
}

func withoutDroppedKeys(changes []atlas.Change) []atlas.Change {
	var kept []atlas.Change
	for _, change := range changes {
		switch change := change.(type) {
		case *atlas.DropForeignKey, *atlas.DropCheck:
			continue
		case *atlas.ModifyColumn:
			if change.Change == atlas.ChangeDefault && change.To.Name == "position" {
				continue // the sequence's default reads back in another spelling
			}
		case *atlas.DropColumn:
			if generated(change.C) {
				continue
			}
		}
		kept = append(kept, change)
	}
	return kept
}

// generated reports whether the database derives the column from others of its row, which ent/schema cannot say.
func generated(column *atlas.Column) bool {
	return slices.ContainsFunc(column.Attrs, func(attr atlas.Attr) bool {
		_, is := attr.(*atlas.GeneratedExpr)
		return is
	})
}
