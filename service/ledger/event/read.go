package event

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// MaxPage is the most events read at once.
const MaxPage = 500

// InstanceCursor is the position after an event in its instance's timeline.
func InstanceCursor(seq int) string { return "s" + strconv.Itoa(seq) }

// ParseInstanceCursor reads a timeline's position; the empty cursor is the beginning.
// CURSOR_INVALID at `after` when it is not one.
func ParseInstanceCursor(cursor string) (seq int, err error) {
	if cursor == "" {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(cursor, "s")
	seq, err = strconv.Atoi(digits)
	if !ok || err != nil || seq < 0 || len(digits) > 12 {
		return 0, fault.New(fault.CursorInvalid, "the cursor was not made by an instance's timeline").At("after")
	}
	return seq, nil
}

// timelineSQL reads an instance's events after a number.
const timelineSQL = `SELECT ` + rows.EventColumns + ` FROM app_instance_event
	WHERE instance_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`

// Timeline is the query for up to limit events of an instance after a number, oldest first.
func Timeline(into *[]*Event, instanceID ids.ID, after, limit int) tx.Query {
	return tx.Rows(into, Scan, timelineSQL, instanceID, after, limit)
}

// Scan reads a row of rows.EventColumns as an event of its instance's timeline.
func Scan(row pgx.CollectableRow) (*Event, error) {
	stored, err := rows.Event(row)
	if err != nil {
		return nil, fmt.Errorf("scan an event: %w", err)
	}
	return &Event{Event: stored, Cursor: InstanceCursor(stored.Seq)}, nil
}
