package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gpuaas/app-platform/sdk/signing"
)

// Registry is how a registry is reached.
type Registry struct {
	// User and Password are the login at the registry; without a user it is the login of the container tools of this
	// machine.
	User, Password string
	// PlainHTTP connects to it without TLS.
	PlainHTTP bool
}

// Pushed is what was pushed to a registry.
type Pushed struct {
	// Ref is pinned: host/repository@sha256:….
	Ref string `json:"ref"`
	// Digest is the digest of the manifest or index.
	Digest string `json:"digest"`
	// MediaType is the media type of the manifest or index.
	MediaType string `json:"mediaType"`
	// Platforms are those of an image, as its layout lists them; empty for anything else.
	Platforms []string `json:"platforms"`
}

func (r Registry) parse(ref string) (name.Reference, error) {
	options := []name.Option{name.StrictValidation}
	if r.PlainHTTP {
		options = append(options, name.Insecure)
	}
	parsed, err := name.ParseReference(ref, options...)
	if err != nil {
		return nil, fmt.Errorf("reference %q: must be host/repository:tag or host/repository@sha256:…", ref)
	}
	return parsed, nil
}

func (r Registry) options(ctx context.Context) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx)}
	if r.User == "" {
		return append(options, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	return append(options, remote.WithAuth(&authn.Basic{Username: r.User, Password: r.Password}))
}

// PushLayout pushes the image of an OCI image layout; one of several platforms as an index of them. The reference is a
// tag.
func (r Registry) PushLayout(ctx context.Context, dir, ref string) (*Pushed, error) {
	target, err := r.parse(ref)
	if err != nil {
		return nil, err
	}
	l := layout{dir}
	listed, err := l.index()
	if err != nil {
		return nil, err
	}
	var platforms []string
	for _, one := range listed.Manifests {
		if one.Platform != nil {
			platforms = append(platforms, one.Platform.String())
		}
	}
	slices.Sort(platforms)
	switch len(listed.Manifests) {
	case 0:
		return nil, fmt.Errorf("%s contains no image", dir)
	case 1:
		one := listed.Manifests[0]
		data, err := r.parts(ctx, target, l, one.Digest)
		if err != nil {
			return nil, err
		}
		return r.put(ctx, target, data, one.MediaType, platforms)
	}
	for _, one := range listed.Manifests {
		data, err := r.parts(ctx, target, l, one.Digest)
		if err != nil {
			return nil, err
		}
		if _, err := r.put(ctx, target.Context().Digest(one.Digest), data, one.MediaType, nil); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(listed)
	if err != nil {
		return nil, err
	}
	return r.put(ctx, target, data, indexType, platforms)
}

// parts pushes what a manifest of a layout lists, and answers its bytes.
func (r Registry) parts(ctx context.Context, target name.Reference, l layout, digest string) ([]byte, error) {
	data, err := l.document(digest)
	if err != nil {
		return nil, err
	}
	var listed manifest
	if err := json.Unmarshal(data, &listed); err != nil || len(listed.Layers) == 0 {
		return nil, fmt.Errorf("%s is not an image manifest", digest)
	}
	for _, part := range append([]signing.Descriptor{listed.Config}, listed.Layers...) {
		file, err := l.path(part.Digest)
		if err != nil {
			return nil, err
		}
		if err := r.blob(ctx, target, content{part, func() (io.ReadCloser, error) {
			return os.Open(file)
		}}); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// PushFiles pushes files as an OCI artifact: a manifest whose layers are the files, each under its name. artifactType
// is the type of the whole, such as application/vnd.example.model.v1.
func (r Registry) PushFiles(ctx context.Context, files []string, artifactType, ref string) (*Pushed, error) {
	target, err := r.parse(ref)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 || len(files) > maxFiles {
		return nil, fmt.Errorf("an artifact has 1 to %d files", maxFiles)
	}
	empty := describe(signing.EmptyType, []byte("{}"))
	whole := manifest{SchemaVersion: 2, MediaType: signing.ManifestType, ArtifactType: artifactType, Config: empty}
	if err := r.blob(ctx, target, inMemory(empty, []byte("{}"))); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, file := range files {
		title := filepath.Base(file)
		if seen[title] {
			return nil, fmt.Errorf("two files have the name %s", title)
		}
		seen[title] = true
		described, err := describeFile(file)
		if err != nil {
			return nil, err
		}
		if err := r.blob(ctx, target, content{described, func() (io.ReadCloser, error) {
			return os.Open(file)
		}}); err != nil {
			return nil, err
		}
		described.Annotations = map[string]string{"org.opencontainers.image.title": title}
		whole.Layers = append(whole.Layers, described)
	}
	data, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	return r.put(ctx, target, data, signing.ManifestType, nil)
}

// document is a manifest as the registry's client takes it.
type document struct {
	data      []byte
	mediaType string
}

// RawManifest implements remote.Taggable.
func (d document) RawManifest() ([]byte, error) { return d.data, nil }

// MediaType returns the media type of the bytes.
func (d document) MediaType() (types.MediaType, error) { return types.MediaType(d.mediaType), nil }

func (r Registry) put(ctx context.Context, target name.Reference, data []byte, mediaType string,
	platforms []string) (*Pushed, error) {
	if platforms == nil {
		platforms = []string{}
	}
	if err := remote.Put(target, document{data, mediaType}, r.options(ctx)...); err != nil {
		return nil, refused(target, err)
	}
	digest := describe("", data).Digest
	return &Pushed{Ref: target.Context().Name() + "@" + digest, Digest: digest, MediaType: mediaType,
		Platforms: platforms}, nil
}

func (r Registry) blob(ctx context.Context, target name.Reference, part content) error {
	return refused(target, remote.WriteLayer(target.Context(), part, r.options(ctx)...))
}

// refused says what a registry's error is about; nil stays nil.
func refused(target name.Reference, err error) error {
	var answer *transport.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer) && answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s refused the user or password", target.Context().RegistryStr())
	case errors.As(err, &answer) && answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s denies this user access to %s", target.Context().RegistryStr(),
			target.Context().RepositoryStr())
	}
	return fmt.Errorf("registry %s: %w", target.Context().RegistryStr(), err)
}

// content is a blob as the registry's client takes it: bytes that are opened again for each try.
type content struct {
	signing.Descriptor
	open func() (io.ReadCloser, error)
}

func (c content) hash() (v1.Hash, error) { return v1.NewHash(c.Descriptor.Digest) }

// Digest implements v1.Layer.
func (c content) Digest() (v1.Hash, error) { return c.hash() }

// DiffID implements v1.Layer.
func (c content) DiffID() (v1.Hash, error) { return c.hash() }

// Compressed implements v1.Layer.
func (c content) Compressed() (io.ReadCloser, error) { return c.open() }

// Uncompressed implements v1.Layer.
func (c content) Uncompressed() (io.ReadCloser, error) { return c.open() }

// Size implements v1.Layer.
func (c content) Size() (int64, error) { return c.Descriptor.Size, nil }

// MediaType implements v1.Layer.
func (c content) MediaType() (types.MediaType, error) {
	return types.MediaType(c.Descriptor.MediaType), nil
}
