// Package secret holds the verbs on runtime secrets: issue, deliver, rotate, revoke. Values are in custody and leave
// it only towards whom they are bound to.
package secret

import (
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the verbs.
type Service struct {
	DB *tx.DB
	// Vault keeps the values.
	Vault *custody.Vault
}

// View is a secret without its value.
type View struct {
	ID, InstanceID   ids.ID
	Purpose          string
	Audience         lifecycle.SecretAudience
	MemberID, NodeID *ids.ID
	Delivery         lifecycle.SecretDelivery
	Spec             json.RawMessage
	Version          int
	Deliveries       int
	DeliveredAt      *time.Time
	ExpiresAt        time.Time
	RotatedAt        *time.Time
	PreviousUntil    *time.Time
	RevokedAt        *time.Time
	IssuedBy         authz.Ref
	CreatedAt        time.Time
}

// Redeemed is a delivery: Value for an adapter, Sealed for a node.
type Redeemed struct {
	ID            ids.ID
	Purpose       string
	Version       int
	Value, Sealed *string
	ExpiresAt     time.Time
}

// IsNode marks a secret as an object with an id.
func (*View) IsNode() {}

// GetID is the secret's id.
func (v *View) GetID() ids.ID { return v.ID }
