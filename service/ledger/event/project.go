package event

import (
	"cmp"
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

// Position is a place in a project's feed: events in the order of the database's generations, within one in that of
// their transactions, and within one transaction in the order in which they were written.
//
// The feed is read only below the oldest transaction that still runs (pg_snapshot_xmin), so that a
// transaction that began early and commits late is never skipped. A long transaction anywhere in
// the database holds the feed back, which is why internal/tx bounds them all. Of earlier generations nothing runs any
// more.
//
// In an instance's timeline XID is 0, and Order the event's number.
type Position struct {
	Generation, XID, Order int64
	system                 int64 // of a cursor from before generations: the server that made it
}

// Before says whether p lies before q.
func (p Position) Before(q Position) bool {
	return cmp.Or(cmp.Compare(p.Generation, q.Generation), cmp.Compare(p.XID, q.XID), cmp.Compare(p.Order, q.Order)) < 0
}

// Feeds reads projects' feeds.
type Feeds struct{ pool *pgxpool.Pool }

// NewFeeds returns feeds over a pool of the workers' login role. It fails when the database cannot say in which
// generation it is.
func NewFeeds(ctx context.Context, pool *pgxpool.Pool) (*Feeds, error) {
	f := &Feeds{pool: pool}
	_, err := f.Now(ctx)
	return f, err
}

// firstSystem is less than every system identifier of PostgreSQL, whose upper half is a time in seconds, and more than
// every generation, which is a time in microseconds.
const firstSystem = 1 << 53

// Cursor is the opaque text of a position.
func (*Feeds) Cursor(p Position) string {
	return fmt.Sprintf("p%s.%d.%d", strconv.FormatInt(p.Generation, 36), p.XID, p.Order)
}

// Parse reads a cursor. CURSOR_INVALID at `after` when it is not one.
func (*Feeds) Parse(cursor string) (Position, error) {
	invalid := fault.New(fault.CursorInvalid, "the cursor is not from a project's feed").At("after")
	text, ok := strings.CutPrefix(cursor, "p")
	parts := strings.Split(text, ".")
	if !ok || len(cursor) > 80 || len(parts) != 3 {
		return Position{}, invalid
	}
	epoch, err := strconv.ParseUint(parts[0], 36, 64)
	if err != nil {
		return Position{}, invalid
	}
	var p Position
	for i, into := range []*int64{&p.XID, &p.Order} {
		if *into, err = strconv.ParseInt(parts[i+1], 10, 64); err != nil || *into < 0 {
			return Position{}, invalid
		}
	}
	p.Generation = int64(epoch) // #nosec G115 -- the bits of a name where it is large
	if epoch >= firstSystem {
		p.Generation, p.system = 1, p.Generation
	}
	return p, nil
}

// Expired refuses a cursor of events that the database does not have.
func Expired() error {
	return fault.New(fault.CursorExpired,
		"the database lacks the history of this cursor, after a restore or failover: begin again without one").
		At("after")
}

// keptSQL reports whether the database still has the past that a position names.
const keptSQL = `SELECT platform.kept($1, $2, $3, $4, $5)`

func (p Position) args(projectID ids.ID) []any {
	return []any{projectID, p.Generation, p.XID, p.Order, p.system}
}

// Resume reads a cursor of a project's feed. CURSOR_INVALID at `after` when it is not one; CURSOR_EXPIRED when the
// database does not have the event before it: the cursor is of another server, or of a future that this one lost.
func (f *Feeds) Resume(ctx context.Context, projectID ids.ID, cursor string) (Position, error) {
	place, err := f.Parse(cursor)
	if err != nil {
		return Position{}, err
	}
	var kept bool
	if err := f.pool.QueryRow(ctx, keptSQL, place.args(projectID)...).Scan(&kept); err != nil {
		return Position{}, fmt.Errorf("look up a cursor: %w", err)
	}
	if !kept {
		return Position{}, Expired()
	}
	return place, nil
}

// Now is the position after everything that has been committed in order.
func (f *Feeds) Now(ctx context.Context) (Position, error) {
	now := Position{Order: math.MaxInt64}
	err := f.pool.QueryRow(ctx,
		`SELECT platform.generation(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1`).
		Scan(&now.Generation, &now.XID)
	if err != nil {
		return Position{}, fmt.Errorf("read the feed's end: %w", err)
	}
	return now, nil
}

// projectSQL reads what may be read of a project's feed after a position, that is: what no
// transaction that still runs could precede.
//
// Each family is read by itself, so that a reader of a rare one passes over no others.
const projectSQL = `SELECT ` + rows.EventColumns + ` FROM (SELECT DISTINCT unnest($5::text[]) AS of_family) wanted
	CROSS JOIN LATERAL (SELECT * FROM app_instance_event
		WHERE project_id = $1 AND permission_family = of_family AND (generation, xid, "position") > ($2, $3, $4)
		AND (xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint OR generation < platform.generation())
		ORDER BY generation, xid, "position" LIMIT $6) app_instance_event
	ORDER BY generation, xid, "position" LIMIT $6`

// Project reads up to limit events of a project after a position, in order. CURSOR_EXPIRED when the database does not
// have that position any more: it became another one between two reads.
func (f *Feeds) Project(ctx context.Context, projectID ids.ID, families []string, after Position,
	limit int) (events []*Event, err error) {
	batch := &pgx.Batch{}
	queries := f.queries(&events, projectID, families, after, limit)
	for _, query := range queries {
		batch.Queue(query.SQL, query.Args...).Query(query.Scan)
	}
	if err := f.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read the feed of %s: %w", projectID, err)
	}
	return events, nil
}

// ProjectQueries are the same read as a caller's, under row-level security.
func (f *Feeds) ProjectQueries(into *[]*Event, projectID ids.ID, families []string, after Position,
	limit int) []tx.Query {
	return f.queries(into, projectID, families, after, limit)
}

// queries check the position and read the page after it, on one connection: both are of one past.
func (f *Feeds) queries(into *[]*Event, projectID ids.ID, families []string, after Position, limit int) []tx.Query {
	return []tx.Query{stands(keptSQL, after.args(projectID)...),
		tx.Rows(into, f.scan, projectSQL, projectID, after.Generation, after.XID, after.Order, families, limit)}
}

// stands returns a Query that fails with CURSOR_EXPIRED unless its one value is true.
func stands(sql string, args ...any) tx.Query {
	return tx.Query{SQL: sql, Args: args, Scan: func(rows pgx.Rows) error {
		kept, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		if err == nil && !kept {
			return Expired()
		}
		return err
	}}
}

// Instance reads up to limit events of an instance after a position, in order, for live readers that
// were authorised one by one. CURSOR_EXPIRED as in Project.
func (f *Feeds) Instance(ctx context.Context, instanceID ids.ID, after Position, limit int) (events []*Event,
	err error) {
	batch, lost := &pgx.Batch{}, false
	for _, query := range Timeline(&events, &lost, instanceID, after, limit) {
		batch.Queue(query.SQL, query.Args...).Query(query.Scan)
	}
	if err := f.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read the timeline of %s: %w", instanceID, err)
	}
	if lost {
		return nil, Expired()
	}
	return events, nil
}

// ResumeInstance reads a cursor of the timeline of an instance. CURSOR_INVALID at `after` when it is not one or lies
// beyond the end; CURSOR_EXPIRED when the database does not have the event before it.
func (f *Feeds) ResumeInstance(ctx context.Context, instanceID ids.ID, cursor string) (Position, error) {
	place, err := ParseInstanceCursor(cursor)
	if err != nil || place.Order == 0 {
		return place, err
	}
	var generation int64
	err = f.pool.QueryRow(ctx, `SELECT coalesce((SELECT generation FROM app_instance_event WHERE instance_id = $1
		AND seq = $2), 0)`,
		instanceID, place.Order).Scan(&generation)
	switch {
	case err != nil:
		return Position{}, fmt.Errorf("look up a cursor: %w", err)
	case place.Generation != 0 && place.Generation != generation:
		return Position{}, Expired()
	case generation == 0:
		return Position{}, fault.New(fault.CursorInvalid, "the cursor is beyond the timeline's end").At("after")
	}
	place.Generation = generation
	return place, nil
}

// PositionOf is an event's position in its project's feed.
func PositionOf(e *Event) Position {
	return Position{Generation: e.Generation, XID: e.Xid, Order: e.Position}
}

func (f *Feeds) scan(row pgx.CollectableRow) (*Event, error) {
	stored, err := rows.Event(row)
	if err != nil {
		return nil, err
	}
	e := &Event{Event: stored}
	e.Cursor = f.Cursor(PositionOf(e))
	return e, nil
}
