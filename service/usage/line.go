package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Line chooses the records that a line of a statement counts.
type Line struct {
	rating.Heading
	// Spans are when the line's price applied.
	Spans []rating.Span
	// Generation and Watermark are which commits count; nil for all.
	Generation *int64
	Watermark  *string
}

// lineSQL chooses records by what is used and when.
const lineSQL = ` FROM usage_record u WHERE project_id = $1 AND meter = $2 AND unit = $3 AND coalesce(sku, '') = $4
	AND coalesce(region, '') = $5
	AND coalesce(borne_reason, '') = $6 AND basis <> $13 AND from_at < $9 AND to_at >= $10
	AND EXISTS (SELECT FROM unnest($7::timestamptz[], $8::timestamptz[]) AS s (starts, ends) WHERE u.from_at < s.ends
		AND (u.to_at > s.starts OR u.from_at = u.to_at AND u.from_at = s.starts))
	AND ($11::bigint IS NULL OR platform.before_mark(recorded_generation, recorded_xid, $11, $12::text::xid8))`

// Of reads a line's records, the newest first, at most so many, and counts all of them. The caller has already
// checked usage.read.
func Of(ctx context.Context, t *tx.Tx, line *Line, most int) (found []*Record, count int, err error) {
	found = []*Record{}
	if len(line.Spans) == 0 {
		return found, 0, nil
	}
	starts, ends := make([]time.Time, 0, len(line.Spans)), make([]time.Time, 0, len(line.Spans))
	for _, span := range line.Spans {
		starts, ends = append(starts, span.From), append(ends, span.To)
	}
	args := []any{line.Project, line.Meter, line.Unit, line.SKU, line.Region, line.Borne, starts, ends,
		line.Spans[len(ends)-1].To,
		line.Spans[0].From, line.Generation, line.Watermark, string(metering.Showback)}
	if err := t.QueryRow(ctx, `SELECT count(*)`+lineSQL, args...).Scan(&count); err != nil {
		return nil, 0, fmt.Errorf("count a line's records: %w", err)
	}
	rows, err := t.Query(ctx, `SELECT `+columns+lineSQL+` ORDER BY from_at DESC, source DESC, usage_id DESC
		LIMIT $14`, append(args, most)...)
	if err != nil {
		return nil, 0, fmt.Errorf("read a line's records: %w", err)
	}
	if found, err = pgx.CollectRows(rows, scan); err != nil {
		return nil, 0, fmt.Errorf("read a line's records: %w", err)
	}
	return found, count, nil
}
