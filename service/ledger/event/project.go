package event

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Position is a place in a project's feed: events in the order of their transactions, and within
// one transaction in the order in which they were written.
//
// The feed is read only below the oldest transaction that still runs (pg_snapshot_xmin), so that a
// transaction that began early and commits late is never skipped. A long transaction anywhere in
// the database holds the feed back, which is why internal/tx bounds them all.
type Position struct{ XID, Order int64 }

// Before says whether p lies before q.
func (p Position) Before(q Position) bool {
	return p.XID < q.XID || (p.XID == q.XID && p.Order < q.Order)
}

// Feeds reads projects' feeds. Epoch names the database server: transaction numbers mean nothing
// on another one, so a cursor from before a restore elsewhere is refused rather than misread.
type Feeds struct {
	pool  *pgxpool.Pool
	epoch string
}

// NewFeeds learns the epoch from the database.
func NewFeeds(ctx context.Context, pool *pgxpool.Pool) (*Feeds, error) {
	var system int64
	err := pool.QueryRow(ctx, `SELECT system_identifier FROM pg_control_system()`).Scan(&system)
	if err != nil {
		return nil, fmt.Errorf("read the database's identity: %w", err)
	}
	return &Feeds{pool: pool, epoch: strconv.FormatUint(uint64(system), 36)}, nil // #nosec G115 -- the bits are a name, not a number
}

// Cursor is the opaque text of a position.
func (f *Feeds) Cursor(p Position) string {
	return fmt.Sprintf("p%s.%d.%d", f.epoch, p.XID, p.Order)
}

// Parse reads a cursor. CURSOR_INVALID at `after` when it is not one, CURSOR_EXPIRED when it was
// made by another database.
func (f *Feeds) Parse(cursor string) (Position, error) {
	invalid := fault.New(fault.CursorInvalid, "the cursor was not made by a project's feed").At("after")
	text, ok := strings.CutPrefix(cursor, "p")
	parts := strings.Split(text, ".")
	if !ok || len(cursor) > 80 || len(parts) != 3 {
		return Position{}, invalid
	}
	xid, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || xid < 0 {
		return Position{}, invalid
	}
	order, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || order < 0 {
		return Position{}, invalid
	}
	if parts[0] != f.epoch {
		return Position{}, fault.New(fault.CursorExpired, "the cursor is of an earlier database; begin anew").At("after")
	}
	return Position{XID: xid, Order: order}, nil
}

// Now is the position after everything that has been committed in order.
func (f *Feeds) Now(ctx context.Context) (Position, error) {
	var oldest int64
	err := f.pool.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`).Scan(&oldest)
	if err != nil {
		return Position{}, fmt.Errorf("read the feed's end: %w", err)
	}
	return Position{XID: oldest - 1, Order: math.MaxInt64}, nil
}

// projectSQL reads what may be read of a project's feed after a position, that is: what no
// transaction that still runs could precede.
const projectSQL = `SELECT ` + rows.EventColumns + ` FROM app_instance_event
	WHERE project_id = $1 AND (xid, "position") > ($2, $3) AND permission_family = ANY ($4)
	AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
	ORDER BY xid, "position" LIMIT $5`

// Project reads up to limit events of a project after a position, in order.
func (f *Feeds) Project(ctx context.Context, projectID ids.ID, families []string, after Position, limit int) ([]*Event,
	error) {
	found, err := f.pool.Query(ctx, projectSQL, projectID, after.XID, after.Order, families, limit)
	if err != nil {
		return nil, fmt.Errorf("read the feed of %s: %w", projectID, err)
	}
	events, err := pgx.CollectRows(found, f.scan)
	if err != nil {
		return nil, fmt.Errorf("read the feed of %s: %w", projectID, err)
	}
	return events, nil
}

// ProjectQuery is the same read as a caller's, under row-level security.
func (f *Feeds) ProjectQuery(into *[]*Event, projectID ids.ID, families []string, after Position, limit int) tx.Query {
	return tx.Rows(into, f.scan, projectSQL, projectID, after.XID, after.Order, families, limit)
}

// Instance reads up to limit events of an instance after a number, in order, for live readers that
// were authorised one by one.
func (f *Feeds) Instance(ctx context.Context, instanceID ids.ID, after, limit int) ([]*Event, error) {
	found, err := f.pool.Query(ctx, timelineSQL, instanceID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the timeline of %s: %w", instanceID, err)
	}
	events, err := pgx.CollectRows(found, Scan)
	if err != nil {
		return nil, fmt.Errorf("read the timeline of %s: %w", instanceID, err)
	}
	return events, nil
}

// PositionOf is where an event stands in its project's feed.
func PositionOf(e *Event) Position { return Position{XID: e.Xid, Order: e.Position} }

func (f *Feeds) scan(row pgx.CollectableRow) (*Event, error) {
	stored, err := rows.Event(row)
	if err != nil {
		return nil, err
	}
	e := &Event{Event: stored}
	e.Cursor = f.Cursor(PositionOf(e))
	return e, nil
}
