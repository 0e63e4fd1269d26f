package token

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

const (
	// MaxDeliveryLife is the longest life of a delivery token.
	MaxDeliveryLife = 10 * time.Minute
	// deliveryAudience and deliveryType distinguish a delivery token from every other that the platform signs.
	deliveryAudience = "app-platform-deliveries"
	deliveryType     = "delivery+jwt"
)

// Delivery is what a delivery token says: which artifact may be fetched, by which node, for which of its tasks.
type Delivery struct {
	Task, Node, Artifact ids.ID
	// Credential is the node's credential that the delivery was opened with: the token ends with it.
	Credential ids.ID
	// ExpiresAt is when it ends, at most MaxDeliveryLife from when it is signed.
	ExpiresAt time.Time
}

// delivered is all that a delivery token says; its subject is the task.
type delivered struct {
	registered
	Node     ids.ID `json:"nod"`
	Artifact ids.ID `json:"art"`
	// Credential is empty in tokens of before it was kept.
	Credential ids.ID `json:"crd,omitempty"`
}

// SignDelivery makes a token with which a node fetches the parts of one artifact for one task. The API does not take
// it: it has an audience and a type of its own.
func (r *Keyring) SignDelivery(of Delivery, now time.Time) (string, error) {
	if of.ExpiresAt.Sub(now) > MaxDeliveryLife {
		return "", fmt.Errorf("sign a delivery token: a life of %s is more than %s", of.ExpiresAt.Sub(now),
			MaxDeliveryLife)
	}
	said := delivered{Node: of.Node, Artifact: of.Artifact, Credential: of.Credential, registered: jwt.Claims{
		Issuer: r.issuer, Audience: jwt.Audience{deliveryAudience}, ID: string(ids.New(ids.Session)),
		Subject:  string(of.Task),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-time.Minute)),
		Expiry: jwt.NewNumericDate(of.ExpiresAt),
	}}
	return r.sign("a delivery token", deliveryType, said)
}

// VerifyDelivery reads a delivery token of this platform. UNAUTHENTICATED when it is malformed, signed by another key
// or in another way, or of another sort; TOKEN_EXPIRED when it is over.
func (r *Keyring) VerifyDelivery(text string, now time.Time) (Delivery, error) {
	refused := fault.New(fault.Unauthenticated, "the token is not valid")
	if len(text) > MaxSigned {
		return Delivery{}, refused
	}
	said, err := r.saidOfDelivery(text)
	if err != nil {
		return Delivery{}, refused.Because(err)
	}
	if err := r.counts(said.registered, deliveryAudience, now); errors.Is(err, jwt.ErrExpired) {
		return Delivery{}, fault.New(fault.TokenExpired, "the token has expired: open the delivery again").Because(err)
	} else if err != nil {
		return Delivery{}, refused.Because(err)
	}
	out := Delivery{Task: ids.ID(said.Subject), Node: said.Node, Artifact: said.Artifact, Credential: said.Credential}
	if said.Expiry == nil || !out.Task.Is(ids.NodeTask) || !out.Node.Is(ids.Node) || !out.Artifact.Is(ids.Artifact) {
		return Delivery{}, refused
	}
	out.ExpiresAt = said.Expiry.Time()
	return out, nil
}

// saidOfDelivery returns the claims of a delivery token with a valid signature. It remembers the text, as a node shows
// one token for every part.
func (r *Keyring) saidOfDelivery(text string) (delivered, error) {
	sum := sha256.Sum256([]byte(text))
	if known, ok := r.deliveries.recall(sum); ok && r.publishes(known.keyID) {
		return known.said, nil
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return delivered{}, err
	}
	var said delivered
	if err := r.claims(parsed, deliveryType, &said); err != nil {
		return delivered{}, err
	}
	r.deliveries.remember(sum, sighting[delivered]{said: said, keyID: parsed.Headers[0].KeyID})
	return said, nil
}
