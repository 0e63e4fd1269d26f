// Package secret holds the verbs on runtime secrets: issue, deliver, rotate, revoke. Values are in custody and leave
// it only for the receiver that they are bound to: a node, sealed to its own key, or the instance's adapter.
//
// The keeper of secrets is never called inside a transaction, since it may be slow and far away: a verb that needs it
// begins, is authorised and rolls back; then the keeper is called, and the verb begins again.
package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// PurposeArtifactPull is the purpose that every manifest has: a short-lived token to pull one of its artifacts with.
const PurposeArtifactPull = "artifact_pull"

// Service holds the verbs.
type Service struct {
	DB *tx.DB
	// Vault keeps the values.
	Vault *custody.Vault
	// Keys sign pull tokens.
	Keys *token.Keyring
}

// View is a secret without its value.
type View struct {
	ID, TenantID, ProjectID, InstanceID ids.ID
	Purpose                             string
	Audience                            lifecycle.SecretAudience
	MemberID, NodeID                    *ids.ID
	Delivery                            lifecycle.SecretDelivery
	Spec                                json.RawMessage
	Version                             int
	Deliveries                          int
	DeliveredAt                         *time.Time
	ExpiresAt                           time.Time
	RotatedAt                           *time.Time
	PreviousUntil                       *time.Time
	RevokedAt                           *time.Time
	IssuedBy                            authz.Ref
	CreatedAt                           time.Time
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

// columns are what scan reads; the value is not among them, and the API's login role could not read it.
const columns = `id, tenant_id, project_id, instance_id, purpose, audience, member_id, node_id, delivery, coalesce(spec, '{}'), version, deliveries,
	delivered_at, expires_at, rotated_at, previous_until, revoked_at, actor_kind, actor_id, actor_name, created_at`

func scan(row pgx.CollectableRow) (*View, error) {
	v := &View{}
	return v, row.Scan(&v.ID, &v.TenantID, &v.ProjectID, &v.InstanceID, &v.Purpose, (*string)(&v.Audience), &v.MemberID,
		&v.NodeID,
		(*string)(&v.Delivery), &v.Spec, &v.Version, &v.Deliveries, &v.DeliveredAt, &v.ExpiresAt, &v.RotatedAt,
		&v.PreviousUntil,
		&v.RevokedAt, &v.IssuedBy.Kind, &v.IssuedBy.ID, &v.IssuedBy.Name, &v.CreatedAt)
}

// over reports whether nothing of the secret can be delivered from a moment on, whatever is done.
func (v *View) over(now time.Time) bool { return v.RevokedAt != nil || !v.ExpiresAt.After(now) }

func (v *View) object() authz.Object {
	return authz.Object{TenantID: v.TenantID, ProjectID: v.ProjectID, InstanceID: v.InstanceID}
}

// associated binds a value in custody to its row and its version.
func associated(tenant, id ids.ID, version int) string {
	return fmt.Sprintf("runtime_secret|%s|%s|%d", tenant, id, version)
}

// prepared runs a verb in a transaction, and once more with a key when it left with custody.ErrUnprepared.
func (s *Service) prepared(ctx context.Context,
	verb func(ctx context.Context, t *tx.Tx, fresh *custody.Fresh) error) error {
	return s.Vault.Prepared(ctx, func(fresh *custody.Fresh) error {
		return s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error { return verb(ctx, t, fresh) })
	})
}

// lock loads a secret for change and requires the key. NOT_FOUND when it is missing or hidden.
func lock(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*View, error) {
	found, err := one(ctx, t, `SELECT `+columns+` FROM runtime_secret WHERE id = $1 FOR UPDATE`, id)
	if err != nil {
		return nil, fmt.Errorf("lock secret %s: %w", id, err)
	}
	if found == nil {
		return nil, audit.Missing(t, action, key, id)
	}
	return found, audit.Require(t, action, key, found.object(), id)
}

// one reads at most one secret; nil when the query finds nothing.
func one(ctx context.Context, t *tx.Tx, sql string, args ...any) (*View, error) {
	found, err := t.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	collected, err := pgx.CollectRows(found, scan)
	if err != nil || len(collected) == 0 {
		return nil, err
	}
	return collected[0], nil
}

// trail is what the audit keeps of a secret.
func trail(v *View) map[string]any {
	return map[string]any{"instance": v.InstanceID, "purpose": v.Purpose, "audience": v.Audience, "member": v.MemberID,
		"node":     v.NodeID,
		"delivery": v.Delivery, "spec": v.Spec, "version": v.Version, "deliveries": v.Deliveries,
		"expiresAt": v.ExpiresAt}
}
