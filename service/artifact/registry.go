package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/domain/fault"
)

const (
	maxManifest  = 4 << 20          // bytes of a manifest, and of any other answer
	maxParts     = 512              // layers of an image, or manifests of an index
	fetchTimeout = 15 * time.Second // for everything that is asked of a registry for one artifact
	partsAtOnce  = 4
)

// Registries is how registries are reached. The zero value reaches any public one over TLS,
// without a name of its own.
type Registries struct {
	// Dial connects to a resolved address that the operator allows; nil means a plain dialer.
	// DIAL_REFUSED from it reaches the caller.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Insecure are the hosts, as `host` or `host:port`, that are asked over plain HTTP.
	Insecure []string
	// Also are hosts other than the registry's own that it may send us on to: its token and blob servers.
	Also []string
	// Keychain holds the platform's names at registries; nil means anonymous.
	Keychain authn.Keychain
}

// Found is an artifact as its registry has it.
type Found struct {
	Digest    string
	MediaType string // of its manifest
	SizeBytes int64  // of its manifest and parts
	Parts     int
}

// parseRef reads `host/repository@sha256:…`. INVALID_ARGUMENT when it is malformed or not pinned.
func (r Registries) parseRef(ref string) (name.Digest, error) {
	refused := fault.New(fault.InvalidArgument, "the reference must be host/repository@sha256:…")
	pinned, err := name.NewDigest(ref, name.StrictValidation)
	switch {
	case err != nil && !strings.Contains(ref, "@sha256:"):
		return name.Digest{}, refused.With(fault.Reason{Code: fault.NotPinned, Message: "the reference is not pinned by a sha256 digest", Path: "input.ref"})
	case err != nil:
		return name.Digest{}, refused.With(fault.Reason{Code: fault.BadValue, Message: "the reference is malformed", Path: "input.ref"}).Because(err)
	case !slices.Contains(r.Insecure, pinned.RegistryStr()):
		return pinned, nil
	}
	return name.NewDigest(ref, name.StrictValidation, name.Insecure)
}

// scheme is how a registry is asked: plain HTTP only where the operator said so, whatever the
// library would guess from the host's name.
func (r Registries) scheme(registry name.Registry) string {
	if slices.Contains(r.Insecure, registry.RegistryStr()) {
		return "http"
	}
	return "https"
}

// Fetch gets the manifest's bytes, holds them against the digest and asks for every part.
// INVALID_ARGUMENT when ref is not pinned, DIAL_REFUSED when the operator does not allow the
// address, ARTIFACT_UNAVAILABLE when anything is missing or other than the digest says.
func (r Registries) Fetch(ctx context.Context, ref string) (*Found, error) {
	pinned, err := r.parseRef(ref)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	session, err := r.open(ctx, pinned)
	if err != nil {
		return nil, unavailable(err)
	}
	defer session.client.CloseIdleConnections()
	data, mediaType, err := session.manifest(ctx, pinned.DigestStr())
	if err != nil {
		return nil, unavailable(err)
	}
	sum := sha256.Sum256(data)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != pinned.DigestStr() {
		return nil, fault.New(fault.ArtifactUnavailable, "the registry answered other bytes than the digest says: %s", got).At("input.ref")
	}
	parts, err := readParts(data)
	if err != nil {
		return nil, err
	}
	out := &Found{Digest: pinned.DigestStr(), MediaType: mediaType, SizeBytes: int64(len(data)), Parts: len(parts)}
	for _, part := range parts {
		out.SizeBytes += part.Size
	}
	return out, session.ask(ctx, parts)
}

// unavailable is the fault of a registry that did not give what was asked for.
func unavailable(err error) error {
	if refused, ok := fault.As(err); ok {
		return refused
	}
	return fault.New(fault.ArtifactUnavailable, "the registry does not give the artifact").At("input.ref").Because(err)
}

// session asks one registry about one repository.
type session struct {
	client *http.Client
	base   string // of the repository, with a trailing slash
}

func (r Registries) open(ctx context.Context, pinned name.Digest) (*session, error) {
	auth := authn.Anonymous
	if r.Keychain != nil {
		found, err := authn.Resolve(ctx, r.Keychain, pinned.Context())
		if err != nil {
			return nil, err
		}
		auth = found
	}
	plain := &http.Transport{DialContext: r.Dial, TLSHandshakeTimeout: fetchTimeout, ResponseHeaderTimeout: fetchTimeout,
		MaxResponseHeaderBytes: 64 << 10, MaxConnsPerHost: partsAtOnce, IdleConnTimeout: fetchTimeout}
	registry := pinned.Context().Registry
	guarded := &guard{inner: plain, hosts: append([]string{registry.RegistryStr()}, r.Also...), scheme: r.scheme(registry), host: registry.RegistryStr()}
	authorised, err := transport.NewWithContext(ctx, registry, auth, guarded, []string{pinned.Context().Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	base := fmt.Sprintf("%s://%s/v2/%s/", r.scheme(registry), registry.RegistryStr(), pinned.Context().RepositoryStr())
	return &session{client: &http.Client{Transport: authorised}, base: base}, nil
}

// guard lets requests out to the named hosts alone, and reads no more of an answer than its bound.
type guard struct {
	inner        *http.Transport
	hosts        []string
	host, scheme string // the registry itself, and how it must be asked
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if !slices.Contains(g.hosts, request.URL.Host) {
		return nil, fault.New(fault.DialRefused, "the registry sent us on to %.100s, which the operator does not allow", request.URL.Host).At("input.ref")
	}
	if request.URL.Host == g.host && request.URL.Scheme != g.scheme {
		return nil, errors.New("the registry is asked over " + g.scheme + " only")
	}
	response, err := g.inner.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxManifest+1), response.Body}
	return response, nil
}

// CloseIdleConnections lets the client end its connections.
func (g *guard) CloseIdleConnections() { g.inner.CloseIdleConnections() }

// accepted are the manifests that are understood.
const accepted = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, " +
	"application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json"

func (s *session) request(ctx context.Context, method, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accepted)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the registry answered %d", response.StatusCode)
	}
	return response, nil
}

// manifest gets a manifest's bytes as they are.
func (s *session) manifest(ctx context.Context, digest string) (data []byte, mediaType string, err error) {
	response, err := s.request(ctx, http.MethodGet, "manifests/"+digest)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err = io.ReadAll(response.Body)
	if err != nil {
		return nil, "", err
	}
	if len(data) > maxManifest {
		return nil, "", fault.New(fault.ArtifactUnavailable, "the manifest is larger than %d bytes", maxManifest).At("input.ref")
	}
	return data, response.Header.Get("Content-Type"), nil
}

// part is something that a manifest is made of.
type part struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	path   string
}

// readParts lists what a manifest is made of: config and layers, or the manifests of an index.
func readParts(data []byte) ([]part, error) {
	refused := fault.New(fault.ArtifactUnavailable, "what lies under the digest is no OCI manifest").At("input.ref")
	var document struct {
		Config    *part  `json:"config"`
		Layers    []part `json:"layers"`
		Manifests []part `json:"manifests"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, refused.Because(err)
	}
	parts := document.Layers
	if document.Config != nil {
		parts = append(parts, *document.Config)
	}
	for i := range parts {
		parts[i].path = "blobs/"
	}
	for _, below := range document.Manifests {
		parts = append(parts, part{below.Digest, below.Size, "manifests/"})
	}
	if len(parts) == 0 || len(parts) > maxParts {
		return nil, refused.With(fault.Reason{Code: fault.BadValue, Message: fmt.Sprintf("1 to %d parts", maxParts), Path: "input.ref"})
	}
	for _, p := range parts {
		if p.Size < 0 || !pinnedDigest(p.Digest) {
			return nil, refused
		}
	}
	return parts, nil
}

// pinnedDigest says that text is a sha256 digest, fit for an address.
func pinnedDigest(text string) bool {
	sum, ok := strings.CutPrefix(text, "sha256:")
	raw, err := hex.DecodeString(sum)
	return ok && err == nil && len(raw) == sha256.Size
}

// ask makes sure that the registry has every part, of the size that the manifest says.
func (s *session) ask(ctx context.Context, parts []part) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for _, p := range parts {
		group.Go(func() error {
			response, err := s.request(ctx, http.MethodHead, p.path+p.Digest)
			if err != nil {
				return unavailable(fmt.Errorf("part %s: %w", p.Digest, err))
			}
			_ = response.Body.Close()
			if response.ContentLength >= 0 && response.ContentLength != p.Size {
				return fault.New(fault.ArtifactUnavailable, "part %s has %d bytes and should have %d", p.Digest, response.ContentLength, p.Size).At("input.ref")
			}
			return nil
		})
	}
	return group.Wait()
}
