package token

import (
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gpuaas/app-platform/domain/ids"
)

// MaxPullLife is the longest life of a pull token.
const MaxPullLife = 15 * time.Minute

// Pull is what a pull token allows: what may be pulled from where, and by whom.
type Pull struct {
	// Registry is the registry's host, with its port if it has one: the token's audience.
	Registry string
	// Repository and Digest are what may be pulled: the artifact, and the other parts of it in the repository.
	Repository, Digest string
	// Subject is the node or the instance that the token is for, and Secret the runtime secret that the token is.
	Subject, Secret ids.ID
	// ExpiresAt is when it ends, at most MaxPullLife from now.
	ExpiresAt time.Time
}

// access is a grant in the form that registries read.
type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

// pullClaims are what a pull token has beside the registered claims.
type pullClaims struct {
	Access []access `json:"access"`
	Digest string   `json:"digest"`
}

// SignPull makes a token with which a registry that trusts the platform's published keys lets its holder pull. The API
// does not take it: its audience is the registry.
func (r *Keyring) SignPull(pull Pull, now time.Time) (string, error) {
	if pull.ExpiresAt.Sub(now) > MaxPullLife {
		return "", fmt.Errorf("sign a pull token: a life of %s is more than %s", pull.ExpiresAt.Sub(now), MaxPullLife)
	}
	registered := jwt.Claims{
		Issuer: r.Issuer(), Audience: jwt.Audience{pull.Registry}, ID: string(pull.Secret),
		Subject:  string(pull.Subject),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-time.Minute)),
		Expiry: jwt.NewNumericDate(pull.ExpiresAt),
	}
	claims := pullClaims{Access: []access{{Type: "repository", Name: pull.Repository, Actions: []string{"pull"}}},
		Digest: pull.Digest}
	return r.sign("a pull token", "JWT", registered, claims)
}
