package ociregistry

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// maxToken bounds a token that is read, in bytes.
const maxToken = 8 << 10

// Auth decides who may do what: a client that pushes has a name and a password, and one that pulls has a token of the
// platform's for that repository. No one else gets anything.
type Auth struct {
	// Hosts are the names that the registry is reached by: a token is for one of them.
	Hosts []string
	// Issuer is the platform whose tokens count, and Key finds a key that it has published.
	Issuer string
	Key    func(ctx context.Context, kid string) (ed25519.PublicKey, error)
	// User and Password let their holder push and pull everything.
	User, Password string
}

// grant is what a token lets its holder do.
type grant struct {
	Access []struct {
		Type    string   `json:"type"`
		Name    string   `json:"name"`
		Actions []string `json:"actions"`
	} `json:"access"`
	// Digest is the artifact that the token is for; empty for one of the platform's own, which is for all of the
	// repository.
	Digest string `json:"digest"`
}

var errRefused = errors.New("the token is not valid here")

// Protect puts the registry behind its guard.
func (a Auth) Protect(next http.Handler) http.Handler {
	trees := &trees{registry: next}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := a.judge(r, trees)
		if status == http.StatusOK {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
		w.Header().Set("Content-Type", "application/json")
		code := "DENIED"
		if status == http.StatusUnauthorized {
			// Basic and not Bearer: clients have no place to request a token, as the platform hands each out itself.
			// They send the one they have all the same.
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			code = "UNAUTHORIZED"
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"errors":[{"code":"` + code +
			`","message":"authentication required, or not for this"}]}`))
	})
}

// judge returns the status of a request: OK, Unauthorized when it shows nothing that counts, Forbidden for a good token
// that is for something else.
func (a Auth) judge(r *http.Request, of *trees) int {
	if user, password, ok := r.BasicAuth(); ok {
		same := subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(a.User+"\x00"+a.Password))
		if same == 1 && a.Password != "" {
			return http.StatusOK
		}
		return http.StatusUnauthorized
	}
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return http.StatusUnauthorized
	}
	granted, err := a.verify(r.Context(), text, time.Now())
	if err != nil {
		return http.StatusUnauthorized
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return http.StatusForbidden
	}
	if strings.Trim(r.URL.Path, "/") == "v2" || granted.pulls(r.Context(), r.URL.Path, of) {
		return http.StatusOK
	}
	return http.StatusForbidden
}

// verify reads a token: signed by a key that the platform has published, for this registry, and not expired.
func (a Auth) verify(ctx context.Context, text string, now time.Time) (*grant, error) {
	if len(text) > maxToken {
		return nil, errRefused
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(parsed.Headers) != 1 {
		return nil, errRefused
	}
	key, err := a.Key(ctx, parsed.Headers[0].KeyID)
	if err != nil {
		return nil, errRefused
	}
	var registered jwt.Claims
	granted := &grant{}
	if err := parsed.Claims(key, &registered, granted); err != nil || registered.Expiry == nil {
		return nil, errRefused
	}
	registered.IssuedAt = nil // the token's nbf decides: this machine's clock may be behind
	expected := jwt.Expected{Issuer: a.Issuer, AnyAudience: a.Hosts, Time: now}
	if err := registered.ValidateWithLeeway(expected, 0); err != nil {
		return nil, errRefused
	}
	return granted, nil
}

// pulls reports whether the token is for what a path requests: the artifact of its digest in its repository, and the
// parts of that. A tag can be moved, so that no token opens one.
func (g *grant) pulls(ctx context.Context, path string, of *trees) bool {
	for _, access := range g.Access {
		rest, ok := strings.CutPrefix(path, "/v2/"+access.Name+"/")
		if access.Type != "repository" || !ok || !slices.Contains(access.Actions, "pull") {
			continue
		}
		kind, reference, ok := strings.Cut(rest, "/")
		switch {
		case !ok || !strings.HasPrefix(reference, "sha256:") || strings.Contains(reference, "/"):
		case kind == "blobs", kind == "manifests", kind == "referrers":
			return g.Digest == "" || of.has(ctx, access.Name, g.Digest, reference)
		}
	}
	return false
}
