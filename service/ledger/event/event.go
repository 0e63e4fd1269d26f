package event

import (
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Event is a stored event with its position in the feed it was read from.
type Event struct {
	*db.Event
	// Cursor is the opaque position for `after` in that feed.
	Cursor string
}
