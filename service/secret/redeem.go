package secret

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

const redeemAction = "redeemRuntimeSecret"

// maxRotations bounds how often a delivery begins again because the secret was rotated meanwhile.
const maxRotations = 3

// bound is a secret as read by the node or adapter that it is bound to.
type bound struct {
	authz.Object
	purpose    string
	version    int
	expires    time.Time
	sealed     []byte
	sealingKey *string
}

// Redeem delivers a secret to the calling node or to the adapter whose token is calling. It requires secret.redeem. A
// value that is delivered only once is wiped in the transaction that counts its delivery: of two concurrent callers
// one gets it.
//
// Faults: NOT_FOUND, audited, when the secret does not exist or is bound to another; FORBIDDEN for a caller that is
// neither node nor adapter; SECRET_SPENT when it was delivered as often as it may be, has expired or was revoked;
// UNAVAILABLE when the keeper does not answer, and then nothing is counted.
func (s *Service) Redeem(ctx context.Context, id ids.ID) (*Redeemed, error) {
	for range maxRotations {
		found, node, err := s.peek(ctx, id)
		if err != nil {
			return nil, err
		}
		value, err := s.Vault.Open(ctx, found.sealed, associated(found.TenantID, id, found.version))
		if err != nil {
			return nil, custody.Told(err)
		}
		out := &Redeemed{ID: id, Purpose: found.purpose, Version: found.version, ExpiresAt: found.expires}
		if err := out.wrap(string(value), found, node); err != nil {
			return nil, err
		}
		if counted, err := s.deliver(ctx, id, found); err != nil || counted {
			return out, err
		}
	}
	return nil, fault.New(fault.Conflict, "the secret was rotated during every attempt: try again").Retry(true)
}

// wrap sets the value as its receiver gets it: in clear for an adapter, in a box to its own key for a node.
func (r *Redeemed) wrap(value string, found *bound, node bool) error {
	if !node {
		r.Value = &value
		return nil
	}
	if found.sealingKey == nil {
		return errors.New("the node has no sealing key")
	}
	box, err := adapter.Seal(*found.sealingKey, string(found.InstanceID), []byte(value))
	if err != nil {
		return fmt.Errorf("seal to the node: %w", err)
	}
	r.Sealed = &box
	return nil
}

// peek returns the secret that is bound to the caller, and reports whether the caller is a node.
func (s *Service) peek(ctx context.Context, id ids.ID) (found *bound, node bool, err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		node = t.Actor.Kind == authz.KindNode
		if !node && t.Actor.Kind != authz.KindOperation {
			return stranger(t, id)
		}
		found = &bound{}
		err := t.QueryRow(ctx,
			`SELECT tenant, project, instance, purpose, version, expires, sealed, sealing_key
				FROM platform.peek_secret($1)`,
			id).
			Scan(&found.TenantID, &found.ProjectID, &found.InstanceID, &found.purpose, &found.version, &found.expires,
				&found.sealed, &found.sealingKey)
		if errors.Is(err, pgx.ErrNoRows) {
			return audit.Missing(t, redeemAction, authz.SecretRedeem, id)
		}
		if err != nil {
			return fmt.Errorf("read secret %s: %w", id, err)
		}
		found.NodeID = t.Actor.NodeID
		if err := audit.Require(t, redeemAction, authz.SecretRedeem, found.Object, id); err != nil {
			return err
		}
		if found.sealed == nil {
			return audit.Refused(t, redeemAction, authz.SecretRedeem, found.Object, id, spent())
		}
		return nil
	})
	return found, node, err
}

// stranger refuses people and service accounts, whatever they hold: a value is for machines that it is bound to.
func stranger(t *tx.Tx, id ids.ID) error {
	if err := audit.Require(t, redeemAction, authz.SecretRedeem, authz.Object{}, id); err != nil {
		return err
	}
	return audit.Refused(t, redeemAction, authz.SecretRedeem, authz.Object{}, id,
		fault.New(fault.Forbidden, "a secret is delivered only to the node or adapter that it is bound to"))
}

func spent() error {
	return fault.New(fault.SecretSpent,
		"the secret was delivered as often as it may be, has expired or was revoked").At("secretId")
}

// deliver counts the delivery; counted is false when the secret was rotated after peek read it.
func (s *Service) deliver(ctx context.Context, id ids.ID, found *bound) (counted bool, err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		counted = false
		var deliveries *int
		if err := t.QueryRow(ctx, `SELECT platform.deliver_secret($1, $2)`, id, found.version).
			Scan(&deliveries); err != nil {
			return fmt.Errorf("deliver secret %s: %w", id, err)
		}
		if deliveries == nil {
			return s.missed(ctx, t, id, found)
		}
		counted = true
		return audit.Write(ctx, t, audit.Entry{Action: redeemAction, Key: authz.SecretRedeem, Object: found.Object,
			ObjectID: id,
			After:    map[string]any{"purpose": found.purpose, "version": found.version, "deliveries": *deliveries}})
	})
	return counted, err
}

// missed distinguishes a secret that was rotated, which is tried again, from one that another caller took.
func (s *Service) missed(ctx context.Context, t *tx.Tx, id ids.ID, found *bound) error {
	var version int
	err := t.QueryRow(ctx, `SELECT version FROM platform.peek_secret($1)`, id).Scan(&version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return audit.Missing(t, redeemAction, authz.SecretRedeem, id)
	case err != nil:
		return fmt.Errorf("read secret %s: %w", id, err)
	case version == found.version:
		return audit.Refused(t, redeemAction, authz.SecretRedeem, found.Object, id, spent())
	}
	return nil
}
