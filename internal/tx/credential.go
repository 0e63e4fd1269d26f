package tx

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// Credential is what a caller showed, read but not yet looked up.
type Credential struct {
	kind   string // platform.enter's word
	id     ids.ID
	hash   []byte
	claims token.Claims // of a signed token
}

// ParseCredential reads what came in `Authorization: Bearer …`: a secret or a signed token.
// UNAUTHENTICATED when it is neither.
func ParseCredential(text string, ring *token.Keyring, now time.Time) (Credential, error) {
	if strings.HasPrefix(text, "gpu_") {
		return fromSecret(text)
	}
	claims, err := ring.Verify(text, now)
	if err != nil {
		return Credential{}, err
	}
	switch {
	case claims.Operator != "":
		return Credential{kind: operator, id: claims.Operator, claims: claims}, nil
	case claims.ServiceKey != "":
		return Credential{kind: "exchange", id: claims.ServiceKey, claims: claims}, nil
	case claims.Operation != "":
		return Credential{kind: "operation", id: claims.Operation, claims: claims}, nil
	}
	return Credential{kind: "instance", id: claims.Instance, claims: claims}, nil
}

func fromSecret(text string) (Credential, error) {
	secret, err := token.ParseSecret(text)
	if err != nil {
		return Credential{}, err
	}
	kinds := map[token.Kind]string{token.Session: "session", token.Key: "key", token.Node: "node",
		token.Enrolment: "enrolment"}
	kind, ok := kinds[secret.Kind]
	if !ok {
		return Credential{}, fault.New(fault.Unauthenticated, "this credential cannot call the API")
	}
	return Credential{kind: kind, id: secret.ID, hash: secret.Hash}, nil
}

// operator is the kind of a token by which an adapter acts for one instance, as the account that was chosen for it.
const operator = "operator"

// opening is the kind of an endpoint that was opened.
const opening = "opening"

// OpeningCredential is the credential of an endpoint that was opened, by the secret of its cookie. It is for the host
// of that endpoint alone: ParseCredential does not read it.
func OpeningCredential(secret token.Secret) Credential {
	return Credential{kind: opening, id: secret.ID, hash: secret.Hash}
}

// Opens returns what an endpoint is opened with, as endpoint_opening keeps it: a session, or the key that a service
// account showed or exchanged for its token. It is not ok for any other credential.
func (c Credential) Opens() (kind string, id ids.ID, ok bool) {
	switch c.kind {
	case "session":
		return "session", c.id, true
	case "key", "exchange":
		return "exchange", c.id, true
	}
	return "", "", false
}

// ID returns the credential's id, for logs and for what was learnt of it once the database had verified it. It is not a
// secret: anyone who knows it can make a credential that claims the same id.
func (c Credential) ID() string {
	if c.claims.ID != "" {
		return c.claims.ID
	}
	return string(c.id)
}

// Fingerprint distinguishes callers before the database has verified them: it holds the secret's hash, so that a guess
// under another caller's id counts as another caller. It is not for logs.
func (c Credential) Fingerprint() string { return c.ID() + " " + hex.EncodeToString(c.hash) }

// Trace returns the trace in which a signed token was issued; empty for none and for a secret.
func (c Credential) Trace() string { return c.claims.Trace }

// IsServiceKey reports whether it is the key of a service account itself, and not a token that was exchanged for one.
func (c Credential) IsServiceKey() bool { return c.kind == "key" }

// RowID returns the id of the row that the credential rests on, such as a session, key, node credential, operation or
// instance.
func (c Credential) RowID() ids.ID { return c.id }

// Hash returns the SHA-256 of a secret; nil for a signed token.
func (c Credential) Hash() []byte { return c.hash }

type credentialKey struct{}

// WithCredential returns ctx with what the caller showed.
func WithCredential(ctx context.Context, credential Credential) context.Context {
	return context.WithValue(ctx, credentialKey{}, credential)
}

// CredentialFrom returns what the caller showed, and whether it showed anything.
func CredentialFrom(ctx context.Context) (Credential, bool) {
	credential, ok := ctx.Value(credentialKey{}).(Credential)
	return credential, ok
}
