package operation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// TokenLife is how long an operation's token works unless it is renewed. The database also ends it with its operation.
const TokenLife = 15 * time.Minute

// Token is a bearer token for the public API.
type Token struct {
	Text      string
	ExpiresAt time.Time
}

// IssueToken makes the token that an adapter gets with a dispatch: this operation, its instance, and
// the keys that carrying it out needs. What the adapter does with it may continue the trace of ctx.
func IssueToken(ctx context.Context, ring *token.Keyring, op *db.Operation, family string,
	now time.Time) (Token, error) {
	keys, err := tokenKeys(family, authz.SecretIssue, authz.SecretRead, authz.SecretRedeem)
	if err != nil {
		return Token{}, err
	}
	requester := authz.Ref{Kind: op.RequesterKind, ID: string(op.RequesterID), Name: op.RequesterName}
	claims := token.Claims{Operation: op.ID, Keys: keys, ExpiresAt: now.Add(TokenLife), Act: acting(requester),
		Trace: authz.VouchedTrace(ctx)}
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
	needed := []authz.Key{authz.TaskRun, authz.TaskRead, authz.OperationRead, authz.OperationReport, authz.ArtifactRead,
		instance, members}
	return authz.OperationKeys(append(needed, more...)...), nil
}

// LookKeys are the keys of a call that only reads: an observation, a plan, an action of risk "read". An adapter whose
// calls are not narrowed yet may run any command, as it always could.
func LookKeys(narrow bool) []authz.Key {
	if narrow {
		return []authz.Key{authz.TaskInspect, authz.TaskRead}
	}
	return []authz.Key{authz.TaskRun, authz.TaskRead}
}

// Call is the input for the token of a call.
type Call struct {
	Instance ids.ID
	Keys     []authz.Key
	Life     time.Duration
	// For is who requested the call; zero when the platform calls by itself.
	For authz.Ref
}

// IssueCallToken issues the token of one call about an instance outside of operations: an action, an observation. It
// cannot be renewed. What the adapter does with it may continue the trace of ctx.
func IssueCallToken(ctx context.Context, ring *token.Keyring, call Call, now time.Time) (Token, error) {
	return sign(ring, token.Claims{
		Instance: call.Instance, Keys: authz.OperationKeys(call.Keys...), ExpiresAt: now.Add(call.Life),
		Act: acting(call.For), Trace: authz.VouchedTrace(ctx),
	}, now)
}

// maxRequesterName bounds a name in a token, in bytes.
const maxRequesterName = 100

// acting is the token's claim of a requester; nil for none.
func acting(who authz.Ref) *token.Requester {
	if who.ID == "" {
		return nil
	}
	return &token.Requester{Subject: who.ID, Kind: who.Kind,
		Name: strings.ToValidUTF8(who.Name[:min(len(who.Name), maxRequesterName)], "")}
}

func sign(ring *token.Keyring, claims token.Claims, now time.Time) (Token, error) {
	claims.ExpiresAt = claims.ExpiresAt.Truncate(time.Second)
	text, err := ring.Sign(claims, now)
	return Token{Text: text, ExpiresAt: claims.ExpiresAt}, err
}

// RenewToken gives the operation whose token is calling a fresh one with the same keys, while it is open. Faults:
// UNAUTHENTICATED, FORBIDDEN when the caller is not an operation.
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
			Act:  acting(actor.For),
			Keys: authz.OperationKeys(actor.Holds(actor.TenantID, actor.ProjectID).Keys()...),
		}
		if shown, ok := tx.CredentialFrom(ctx); ok {
			claims.Trace = shown.Trace()
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
