package audit

import (
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Filter is what is looked for in the audit; every part that is given must fit.
type Filter struct {
	TenantID, ProjectID *ids.ID
	ActorID             *string
	ActorKinds          []string
	ObjectID            *string
	PermissionKey       *string
	Action              *string
	Allowed             *bool
	BreakGlass          *bool
	CorrelationID       *string
	From, To            *time.Time
}

// Link is a link of the hash chain with its entry.
type Link struct {
	Seq        int
	Entry      *db.AuditEntry
	Canonical  string
	Leaf, Link string
	SealedAt   time.Time
}

// Checkpoint is a signed statement of where the chain stood.
type Checkpoint struct {
	ID        ids.ID
	Seq       int
	Link      string
	Signature string
	CreatedAt time.Time
}
