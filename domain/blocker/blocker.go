// Package blocker holds the rules of what keeps an operation or an instance from where it should be:
// pure functions of facts that the caller has read. The rules are a table in the order of mending,
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

// Blocker is one thing that keeps an operation or an instance from where it should be.
type Blocker struct {
	// Code is a stable name in UPPER_SNAKE.
	Code string
	// Message says what is wrong and what would clear it.
	Message string
	// Owner is who can clear it: adapter, platform, user or node.
	Owner string
	// Subject is the id or name of the object that it is about; empty when it is about no object.
	Subject string
	// Since is when it began.
	Since time.Time
	// NextRetryAt is when it is read or tried again; nil when something else must happen first.
	NextRetryAt *time.Time
	// PermissionKey is the key with which a user can clear it; empty when no key helps.
	PermissionKey string
}
