package event

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// MaxPage is the most events read at once.
const MaxPage = 500

// InstanceCursor is the position after an event in its instance's timeline.
func InstanceCursor(p Position) string {
	if p.Generation == 0 {
		return "s" + strconv.FormatInt(p.Order, 10)
	}
	return "s" + strconv.FormatInt(p.Order, 10) + "." + strconv.FormatInt(p.Generation, 36)
}

// ParseInstanceCursor reads a timeline's position; the empty cursor is the beginning, and one from before generations
// has none. CURSOR_INVALID at `after` when it is not one.
func ParseInstanceCursor(cursor string) (p Position, err error) {
	if cursor == "" {
		return Position{}, nil
	}
	invalid := fault.New(fault.CursorInvalid, "the cursor is not from an instance's timeline").At("after")
	text, ok := strings.CutPrefix(cursor, "s")
	digits, generation, named := strings.Cut(text, ".")
	p.Order, err = strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || p.Order < 0 || len(digits) > 12 {
		return Position{}, invalid
	}
	if named {
		p.Generation, err = strconv.ParseInt(generation, 36, 64)
		if err != nil || p.Generation <= 0 || p.Order == 0 {
			return Position{}, invalid
		}
	}
	return p, nil
}

// BriefFields are the fields of the API's Event that a brief timeline has.
var BriefFields = rows.Fields{
	"id": {"id"}, "cursor": {"seq", "generation"}, "seq": {"seq"}, "type": {"type"}, "appInstanceId": {"instance_id"},
	"operationId": {"operation_id"}, "memberId": {"member_id"}, "message": {"message"}, "payload": {"payload"},
	"occurredAt": {"occurred_at"},
}

// brief is the part of an event that timelines show; the others of its columns are as much again.
var brief = rows.PartOf(rows.EventTable, BriefFields)

// timelineSQL reads columns of an instance's events after a number.
const timelineSQL = `SELECT %s FROM app_instance_event WHERE instance_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`

var wholeTimelineSQL, briefTimelineSQL = fmt.Sprintf(timelineSQL, rows.EventColumns),
	fmt.Sprintf(timelineSQL, brief.Columns)

// heldSQL reports whether the event before a position is of the generation that the position names: where a future was
// lost, its number is given to another event.
const heldSQL = `SELECT EXISTS (SELECT FROM app_instance_event WHERE instance_id = $1 AND seq = $2 AND generation = $3)`

// Timeline are the queries for up to limit events of an instance after a position, oldest first. lost becomes true
// where the database does not have the event before the position; once the caller is known to reach the instance, that
// is CURSOR_EXPIRED.
func Timeline(into *[]*Event, lost *bool, instanceID ids.ID, after Position, limit int) []tx.Query {
	return held(lost, instanceID, after, tx.Rows(into, Scan, wholeTimelineSQL, instanceID, after.Order, limit))
}

// BriefTimeline is Timeline with the columns of BriefFields alone.
func BriefTimeline(into *[]*Event, lost *bool, instanceID ids.ID, after Position, limit int) []tx.Query {
	return held(lost, instanceID, after, tx.Rows(into, scanBrief, briefTimelineSQL, instanceID, after.Order, limit))
}

// held reads whether the event before a position is there, and then the page.
func held(lost *bool, instanceID ids.ID, after Position, page tx.Query) []tx.Query {
	if after.Generation == 0 {
		return []tx.Query{page}
	}
	held := tx.Query{SQL: heldSQL, Args: []any{instanceID, after.Order, after.Generation},
		Scan: func(rows pgx.Rows) error {
			kept, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
			*lost = !kept
			return err
		}}
	return []tx.Query{held, page}
}

// InTimeline is an event's position in its instance's timeline.
func InTimeline(e *Event) Position {
	return Position{Generation: e.Generation, Order: int64(e.Seq)}
}

// Scan reads a row of rows.EventColumns as an event of its instance's timeline.
func Scan(row pgx.CollectableRow) (*Event, error) { return inTimeline(rows.Event(row)) }

func scanBrief(row pgx.CollectableRow) (*Event, error) { return inTimeline(brief.Scan(row)) }

func inTimeline(stored *db.Event, err error) (*Event, error) {
	if err != nil {
		return nil, fmt.Errorf("scan an event: %w", err)
	}
	e := &Event{Event: stored}
	e.Cursor = InstanceCursor(InTimeline(e))
	return e, nil
}
