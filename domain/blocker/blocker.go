// Package blocker is the rules of what keeps an operation or an instance from where it should be:
// pure, from facts that others have read. The rules are a table; their order is the order of mending,
// so that the first blocker of a list is the root of the others.
package blocker

import "time"

// MaxListed is the most blockers of one operation or instance.
const MaxListed = 20

// Who can clear a blocker.
const (
	OwnerAdapter  = "adapter"
	OwnerPlatform = "platform"
	OwnerUser     = "user"
	OwnerNode     = "node"
)

// Blocker is one thing that stands in the way.
type Blocker struct {
	// Code is a stable name in UPPER_SNAKE.
	Code string
	// Message says what is wrong and what would clear it.
	Message string
	// Owner is who can clear it: adapter, platform, user or node.
	Owner string
	// Subject is the object that it is about, by id or name; empty when it is about none.
	Subject string
	// Since is since when it stands.
	Since time.Time
	// NextRetryAt is when it is looked at or tried again; nil when something else must come first.
	NextRetryAt *time.Time
	// PermissionKey is the key with which somebody can clear it; empty when there is none.
	PermissionKey string
}
