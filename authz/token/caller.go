package token

import (
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gpuaas/app-platform/domain/ids"
)

// CallerLife is how long an app may accept a caller's token.
const CallerLife = time.Minute

// callerType distinguishes a caller's token from every other that the platform signs.
const callerType = "caller+jwt"

// Caller is who calls an app through an endpoint, as the platform reports it to the app. It is not a credential: no API
// of the platform accepts it.
type Caller struct {
	// Instance is the audience: the instance that is called.
	Instance ids.ID
	// Subject is the person or service account, Kind USER or SERVICE_ACCOUNT, and Name for people.
	Subject    ids.ID
	Kind, Name string
	// Tenant and Project are the instance's.
	Tenant, Project ids.ID
	// Endpoint is the name of the endpoint that was opened, and Permission the key that allowed it.
	Endpoint, Permission string
}

// callerClaims are what a caller's token has beside the registered claims.
type callerClaims struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Tenant     ids.ID `json:"org_id"`
	Project    ids.ID `json:"project_id"`
	Endpoint   string `json:"endpoint"`
	Permission string `json:"permission"`
}

// SignCaller makes the token that an app gets with each request, which it verifies by the platform's published keys.
func (r *Keyring) SignCaller(caller Caller, now time.Time) (string, error) {
	registered := jwt.Claims{
		Issuer: r.Issuer(), Audience: jwt.Audience{string(caller.Instance)}, Subject: string(caller.Subject),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-CallerLife)),
		Expiry: jwt.NewNumericDate(now.Add(CallerLife)),
	}
	return r.sign("a caller's token", callerType, registered, callerClaims{
		Kind: caller.Kind, Name: caller.Name, Tenant: caller.Tenant, Project: caller.Project,
		Endpoint: caller.Endpoint, Permission: caller.Permission,
	})
}
