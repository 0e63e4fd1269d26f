package fetch

import (
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
)

// Ref is where an artifact lies.
type Ref struct {
	// Tag is what a registry's reference names; empty when it has a digest, and of a file.
	Tag string
	// Digest is what a registry's reference is pinned by, `sha256:…`; empty when it has none.
	Digest     string
	repository name.Repository
	address    *url.URL // of a file
}

// Parse reads `host/repository:tag`, `host/repository[:tag]@sha256:…` or a file's address. INVALID_ARGUMENT, without a
// path, for anything else: the registry must be named, an address has neither user, query nor fragment.
func Parse(ref string) (Ref, error) {
	if strings.Contains(ref, "://") {
		return parseFile(ref)
	}
	if pinned, err := name.NewDigest(ref, name.StrictValidation); err == nil {
		if !digest.Valid(pinned.DigestStr()) {
			return Ref{}, malformed("the reference must be pinned by a sha256 digest")
		}
		return Ref{Digest: pinned.DigestStr(), repository: pinned.Context()}, nil
	}
	tagged, err := name.NewTag(ref, name.StrictValidation)
	if err != nil || strings.Contains(ref, "@") {
		return Ref{}, malformed("the reference must be host/repository:tag or host/repository@sha256:…").Because(err)
	}
	return Ref{Tag: tagged.TagStr(), repository: tagged.Context()}, nil
}

func parseFile(ref string) (Ref, error) {
	address, err := url.Parse(ref)
	if err != nil || address.Host == "" || address.Opaque != "" ||
		(address.Scheme != "https" && address.Scheme != "http") {
		return Ref{}, malformed("the address must be https://host/path")
	}
	if address.User != nil || address.RawQuery != "" || address.ForceQuery || strings.Contains(ref, "#") {
		return Ref{}, malformed("the address must have no user, query or fragment: credentials belong to the source")
	}
	for _, segment := range strings.Split(address.Path, "/") {
		if segment == "." || segment == ".." {
			return Ref{}, malformed("the address must have no . or .. in its path")
		}
	}
	if len(address.Path) < 2 || strings.HasSuffix(address.Path, "/") {
		return Ref{}, malformed("the address must name a file")
	}
	return Ref{address: address}, nil
}

// File reports whether it is one file's address, and not a registry's reference.
func (r Ref) File() bool { return r.address != nil }

// Host returns the host that it names, as `host` or `host:port`.
func (r Ref) Host() string {
	if r.File() {
		return r.address.Host
	}
	return r.repository.RegistryStr()
}

// Pinned returns the reference to that digest of the same repository; for a file its address.
func (r Ref) Pinned(digest string) string {
	if r.File() {
		return r.address.String()
	}
	return r.repository.Name() + "@" + digest
}

// registry returns a registry with the scheme that the operator configures for it.
func (r Reach) registry(registry name.Registry) name.Registry {
	if r.scheme(registry.RegistryStr()) == "http" {
		if plain, err := name.NewRegistry(registry.RegistryStr(), name.StrictValidation, name.Insecure); err == nil {
			return plain
		}
	}
	return registry
}

func malformed(text string, args ...any) *fault.Fault {
	refused := fault.New(fault.InvalidArgument, text, args...)
	return refused.With(fault.Reason{Code: fault.BadValue, Message: refused.Message})
}
