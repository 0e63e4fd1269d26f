package event

import (
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Event is a stored event with its position in the feed it was read from.
type Event struct {
	*db.Event
	// Cursor is the opaque position for `after` in that feed.
	Cursor string
}

// AppInstanceID is the instance; empty for an event of an allocation that none uses.
func (e *Event) AppInstanceID() ids.ID {
	if e.InstanceID == nil {
		return ""
	}
	return *e.InstanceID
}
