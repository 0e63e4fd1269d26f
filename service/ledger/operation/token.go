package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// TokenLife is how long an operation's token works unless it is renewed. It also ends with its
// operation, which the database says.
const TokenLife = 15 * time.Minute

// Token is a bearer token for the public API.
type Token struct {
	Text      string
	ExpiresAt time.Time
}

// IssueToken makes the token that an adapter gets with a dispatch: this operation, its instance, and
// the keys that carrying it out needs.
func IssueToken(ring *token.Keyring, op *db.Operation, family string, now time.Time) (Token, error) {
	keys, err := tokenKeys(family, authz.SecretIssue, authz.SecretRead, authz.SecretRedeem)
	if err != nil {
		return Token{}, err
	}
	claims := token.Claims{Operation: op.ID, Keys: keys, ExpiresAt: now.Add(TokenLife)}
	if op.InstanceID != nil {
		claims.Instance = *op.InstanceID
	}
	return sign(ring, claims, now)
}

// TokenKeys names the keys that the token of an operation carries, for an instance of the permission family.
// INVALID_ARGUMENT for an unknown family.
func TokenKeys(family string) ([]string, error) { return tokenKeys(family) }

// tokenKeys names what carrying an operation out needs: the instance and its members are read by keys of the family.
func tokenKeys(family string, more ...authz.Key) ([]string, error) {
	instance, err := authz.FamilyKey(family, "instance.read")
	if err != nil {
		return nil, err
	}
	members, err := authz.FamilyKey(family, "node.read")
	if err != nil {
		return nil, err
	}
	needed := []authz.Key{authz.TaskRun, authz.TaskRead, authz.OperationRead, authz.OperationReport, authz.ArtifactRead, instance, members}
	return authz.OperationKeys(append(needed, more...)...), nil
}

// IssueCallToken makes the token of one call about an instance that is no operation: an action, an
// observation. It cannot be renewed.
func IssueCallToken(ring *token.Keyring, instance ids.ID, keys []string, life time.Duration, now time.Time) (Token, error) {
	return sign(ring, token.Claims{Instance: instance, Keys: keys, ExpiresAt: now.Add(life)}, now)
}

func sign(ring *token.Keyring, claims token.Claims, now time.Time) (Token, error) {
	claims.ExpiresAt = claims.ExpiresAt.Truncate(time.Second)
	text, err := ring.Sign(claims, now)
	return Token{Text: text, ExpiresAt: claims.ExpiresAt}, err
}

// RenewToken gives the operation whose token is calling a fresh one with the same keys, while it is
// open. Faults: UNAUTHENTICATED, FORBIDDEN when the caller is no operation.
func RenewToken(ctx context.Context, database *tx.DB, ring *token.Keyring) (*Token, error) {
	var renewed Token
	err := database.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const verb = "renewOperationToken"
		actor := t.Actor
		object := authz.Object{TenantID: actor.TenantID, ProjectID: actor.ProjectID, InstanceID: actor.InstanceID}
		if actor.Kind != authz.KindOperation || !actor.ID.Is(ids.Operation) {
			return audit.Refused(t, verb, authz.OperationReport, object, actor.ID,
				fault.New(fault.Forbidden, "only the token of an operation can be renewed"))
		}
		if err := audit.Require(t, verb, authz.OperationReport, object, actor.ID); err != nil {
			return err
		}
		claims := token.Claims{
			Operation: actor.ID, Instance: actor.InstanceID, ExpiresAt: t.Now.Add(TokenLife),
			Keys: authz.OperationKeys(actor.Holds(actor.TenantID, actor.ProjectID).Keys()...),
		}
		var err error
		renewed, err = sign(ring, claims, t.Now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("renew a token: %w", err)
	}
	return &renewed, nil
}
