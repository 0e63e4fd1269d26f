// Package fetch reads artifact sources: OCI registries, HTTPS servers and S3 object stores. It knows no database and
// judges no digest; the caller checks the bytes against what they should be.
//
// A source is another party's machine. It is dialled as the operator allows, over TLS unless the operator configures
// otherwise, and may redirect us only to hosts that the operator names: a credential is shown to the source itself and
// to the token server that it names among them, and to no other host. What is read into memory is bounded, what is
// large is streamed, and a source that falls silent is given up.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/signature"
)

// MaxManifest bounds a manifest, and any other answer that is read into memory, in bytes.
const MaxManifest = 4 << 20

const (
	defaultPatience = 15 * time.Second // of silence, before a source is given up
	connectionsEach = 16               // to one host, of one session
	maxHeader       = 64 << 10         // bytes
)

// ErrNotFound reports that a source does not have what was requested; package signature, which reads through a session,
// knows it by the same value.
var ErrNotFound = signature.ErrNotFound

// errSilent is a source that has stopped answering.
var errSilent = errors.New("the source has fallen silent")

// Reach is how sources are reached, as the operator configures it. The zero value reaches any public one over TLS,
// without a credential of its own.
type Reach struct {
	// Dial connects to a resolved address that the operator allows; nil means a plain dialer.
	// DIAL_REFUSED from it reaches the caller.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Insecure are the hosts, as `host` or `host:port`, that are reached over plain HTTP.
	Insecure []string
	// Also are hosts other than a source's own that it may redirect us to: token and blob servers.
	Also []string
	// Keychain holds the platform's credentials at registries, for requests in its own name (see Credential); nil means
	// anonymous.
	Keychain authn.Keychain
	// Patience is how long a source may send nothing; zero means 15 seconds.
	Patience time.Duration
}

// Credential is a name at a source; the zero value is anonymous.
type Credential struct {
	User, Secret string
	// Platform lets the platform show its own credential when Secret is empty: for what is its own, or in a tenant's
	// part of a source of the platform's. For a tenant's source it would read with the platform's rights what other
	// tenants keep at the same registry.
	Platform bool
}

// Session reads one artifact from one source. It may be used by several goroutines at once; Close ends its connections.
type Session struct {
	ref      Ref
	kind     lifecycle.SourceKind
	client   *http.Client
	hangUp   func()
	base     string // of a repository, with a trailing slash; of a file its address
	patience time.Duration
}

// Open opens a session with a source. region is an object store's. INVALID_ARGUMENT when ref is malformed or not of
// that kind, DIAL_REFUSED when the operator does not allow an address, else what the source answered.
func (r Reach) Open(ctx context.Context, kind lifecycle.SourceKind, region, ref string, c Credential) (*Session,
	error) {
	parsed, err := Parse(ref)
	if err != nil {
		return nil, err
	}
	if parsed.File() != (kind != lifecycle.SourceOCI) {
		return nil, malformed("a source of kind %s has no such addresses", kind)
	}
	if parsed.address != nil && parsed.address.Scheme == "http" && r.scheme(parsed.Host()) != "http" {
		return nil, malformed("the address must begin with https://")
	}
	session := &Session{ref: parsed, kind: kind, patience: r.Patience}
	if session.patience <= 0 {
		session.patience = defaultPatience
	}
	guarded := &guard{reach: r, hosts: append([]string{parsed.Host()}, r.Also...), inner: &http.Transport{
		DialContext: r.Dial, TLSHandshakeTimeout: session.patience, MaxResponseHeaderBytes: maxHeader,
		MaxConnsPerHost: connectionsEach, MaxIdleConnsPerHost: connectionsEach, IdleConnTimeout: session.patience,
		DisableCompression: true, // a digest is over the bytes as they lie there
	}}
	session.hangUp = guarded.CloseIdleConnections
	if parsed.File() {
		address := *parsed.address
		address.Scheme = r.scheme(parsed.Host())
		session.base = address.String()
		session.client = &http.Client{Transport: &named{inner: guarded, kind: kind, region: region, host: parsed.Host(),
			credential: c}}
		return session, nil
	}
	if err := session.login(ctx, r, guarded, c); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// login finds out how the registry authenticates requests, and logs in.
func (s *Session) login(ctx context.Context, r Reach, guarded *guard, c Credential) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, errSilent)
	defer cancel()
	auth, repository := authn.Anonymous, s.ref.repository
	switch {
	case c.Secret != "":
		auth = authn.FromConfig(authn.AuthConfig{Username: c.User, Password: c.Secret})
	case c.Platform && r.Keychain != nil:
		found, err := authn.Resolve(ctx, r.Keychain, repository)
		if err != nil {
			return fmt.Errorf("find the platform's name at the registry: %w", err)
		}
		auth = found
	}
	authorised, err := transport.NewWithContext(ctx, r.registry(repository.Registry), auth, guarded,
		[]string{repository.Scope(transport.PullScope)})
	if err != nil {
		return loginFailed(ctx, err)
	}
	s.base = fmt.Sprintf("%s://%s/v2/%s/", r.scheme(s.ref.Host()), s.ref.Host(), repository.RepositoryStr())
	s.client = &http.Client{Transport: authorised}
	return nil
}

// loginFailed returns what may be shown of a failed login: a registry's own text could repeat a token.
func loginFailed(ctx context.Context, err error) error {
	refused, answered := new(fault.Fault), new(transport.Error)
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(context.Cause(ctx), errSilent):
		return errSilent
	case errors.As(err, &answered):
		return statusError(answered.StatusCode)
	case unreachable(err):
		return err
	}
	return errors.New("the registry's way to log in is not understood")
}

// scheme returns how a host is reached: over plain HTTP only where the operator configures it, whatever a library would
// guess from its name.
func (r Reach) scheme(host string) string {
	if slices.Contains(r.Insecure, host) {
		return "http"
	}
	return "https"
}
