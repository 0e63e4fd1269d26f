package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
)

// rewrapBatch is how many rows are read at once.
const rewrapBatch = 100

// inCustody are the tables with sealed values, and which of their columns hold them.
var inCustody = []struct {
	table   string
	columns []string
	// keeper is the column that names the keeper of the first; empty for none.
	keeper string
}{
	{"runtime_secret", []string{"sealed", "previous"}, "keeper"},
	{"webhook", []string{"secret", "previous_secret"}, ""},
	{"artifact_source", []string{"credential"}, "keeper"},
}

// RewrapConfig says which keeper takes over.
type RewrapConfig struct {
	DatabaseURL, KeysDir string
	// Keeper wraps from now on; those of Previous have wrapped until now. As for the server.
	Keeper   string
	Previous []string
	// All wraps again what Keeper wrapped already, as after Keeper has rotated its own key.
	All bool
}

// rewrapper counts what was done.
type rewrapper struct {
	vault           *custody.Vault
	all             bool
	out             io.Writer
	wrapped, failed int
}

// Rewrap has the key of every value in custody wrapped by the first keeper, row by row, while everything runs, and
// reports its progress on out. It skips what that keeper has wrapped already: after an interruption it is simply run
// again. A value that cannot be unwrapped is named, left as it is, and makes the whole fail at the end.
func Rewrap(ctx context.Context, config RewrapConfig, out io.Writer) error {
	if config.DatabaseURL == "" {
		return errors.New("--database-url or DATABASE_URL is required")
	}
	vault, err := custody.Open(ctx, config.Keeper, config.KeysDir, config.Previous...)
	if err != nil {
		return err
	}
	database, err := tx.Open(ctx, config.DatabaseURL, tx.Options{Connections: 2})
	if err != nil {
		return err
	}
	defer database.Close()
	r := &rewrapper{vault: vault, all: config.All, out: out}
	for _, one := range inCustody {
		if err := r.table(ctx, database.Worker(), one.table, one.columns, one.keeper); err != nil {
			return fmt.Errorf("rewrap %s: %w", one.table, err)
		}
	}
	if r.failed > 0 {
		return fmt.Errorf("%d values could not be wrapped again; do not remove their keeper", r.failed)
	}
	return nil
}

func (r *rewrapper) table(ctx context.Context, pool *pgxpool.Pool, table string, columns []string,
	keeper string) error {
	query := `SELECT id, ` + strings.Join(columns, ", ") + ` FROM ` + table + ` WHERE id > $1 AND (` +
		strings.Join(columns, " IS NOT NULL OR ") + ` IS NOT NULL) ORDER BY id LIMIT $2`
	seen, after := 0, ""
	before := r.wrapped
	for {
		rows, err := pool.Query(ctx, query, after, rewrapBatch)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, scanStored)
		if err != nil {
			return err
		}
		for _, row := range found {
			if err := r.row(ctx, pool, table, columns, keeper, row); err != nil {
				return err
			}
			after = row.id
		}
		seen += len(found)
		if len(found) < rewrapBatch {
			_, _ = fmt.Fprintf(r.out, "%s: %d rows, %d values wrapped by %s\n", table, seen, r.wrapped-before,
				r.vault.Name())
			return nil
		}
		_, _ = fmt.Fprintf(r.out, "%s: %d rows so far, up to %s\n", table, seen, after)
	}
}

// stored is a row's values in custody.
type stored struct {
	id     string
	values [][]byte
}

func scanStored(row pgx.CollectableRow) (out stored, err error) {
	out.values = make([][]byte, len(row.FieldDescriptions())-1)
	into := []any{&out.id}
	for i := range out.values {
		into = append(into, &out.values[i])
	}
	return out, row.Scan(into...)
}

// row wraps the values of one row. If a value changed meanwhile, a server that has the new keeper already has sealed
// it, or the row was deleted.
func (r *rewrapper) row(ctx context.Context, pool *pgxpool.Pool, table string, columns []string, keeper string,
	row stored) error {
	for i, value := range row.values {
		if value == nil {
			continue
		}
		fresh, changed, err := r.vault.Rewrap(ctx, value, r.all)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.failed++
			_, _ = fmt.Fprintf(r.out, "%s %s, %s: %v\n", table, row.id, columns[i], err)
			continue
		}
		if !changed || bytes.Equal(fresh, value) {
			continue
		}
		set := columns[i] + ` = $2`
		args := []any{row.id, fresh, value}
		if i == 0 && keeper != "" {
			set += `, ` + keeper + ` = $4`
			args = append(args, r.vault.Name())
		}
		tag, err := pool.Exec(ctx, `UPDATE `+table+` SET `+set+` WHERE id = $1 AND `+columns[i]+` = $3`, args...)
		if err != nil {
			return err
		}
		r.wrapped += int(tag.RowsAffected())
	}
	return nil
}
