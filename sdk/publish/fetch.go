package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Fetched is an artifact of a registry: every part of it was read, and has the digest that names it.
type Fetched struct {
	// Parts counts its manifests, configs and layers, Bytes are those of all.
	Parts int
	Bytes int64
	// Image is the image for linux on this machine's architecture; nil for anything else.
	Image v1.Image

	seen map[string]bool
}

// Fetch reads all of an artifact. The reference is host/repository@sha256:… or host/repository:tag; of it only the
// repository is used, and digest names the artifact. An index is read with everything that it lists.
func (r Registry) Fetch(ctx context.Context, ref, digest string) (*Fetched, error) {
	target, err := r.parse(ref)
	if err != nil {
		return nil, err
	}
	out := &Fetched{seen: map[string]bool{}}
	err = out.all(target.Context().Digest(digest), nil, r.options(ctx))
	return out, refused(target, err)
}

// all reads the object under a digest, and what it lists. platform is the platform that an index gives for it.
func (f *Fetched) all(at name.Digest, platform *v1.Platform, options []remote.Option) error {
	if !f.first(at) {
		return nil
	}
	found, err := remote.Get(at, options...)
	if err != nil {
		return err
	}
	f.Parts, f.Bytes = f.Parts+1, f.Bytes+int64(len(found.Manifest))
	if !found.MediaType.IsIndex() {
		return f.single(at, found, platform, options)
	}
	index, err := found.ImageIndex()
	if err != nil {
		return err
	}
	listed, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, one := range listed.Manifests {
		if err := f.all(at.Context().Digest(one.Digest.String()), one.Platform, options); err != nil {
			return err
		}
	}
	return nil
}

// first reports whether the digest was not met before: what is listed twice is read and counted once.
func (f *Fetched) first(at name.Digest) bool {
	met := f.seen[at.DigestStr()]
	f.seen[at.DigestStr()] = true
	return !met
}

// single reads the config and the layers of one manifest.
func (f *Fetched) single(at name.Digest, found *remote.Descriptor, platform *v1.Platform,
	options []remote.Option) error {
	image, err := found.Image()
	if err != nil {
		return err
	}
	listed, err := image.Manifest()
	if err != nil {
		return err
	}
	for _, part := range append([]v1.Descriptor{listed.Config}, listed.Layers...) {
		if err := f.part(at.Context().Digest(part.Digest.String()), part, options); err != nil {
			return err
		}
	}
	here := platform == nil || platform.OS == "linux" && platform.Architecture == runtime.GOARCH
	if f.Image == nil && here && listed.Config.MediaType.IsConfig() {
		f.Image = image
	}
	return nil
}

// part reads one blob whole; the client checks its digest while it does.
func (f *Fetched) part(at name.Digest, part v1.Descriptor, options []remote.Option) error {
	if !f.first(at) {
		return nil
	}
	layer, err := remote.Layer(at, options...)
	if err != nil {
		return err
	}
	body, err := layer.Compressed()
	if err != nil {
		return err
	}
	size, err := io.Copy(io.Discard, body)
	if err := errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("part %s: %w", part.Digest, err)
	}
	if size != part.Size {
		return fmt.Errorf("part %s has %d bytes, but %d are listed", part.Digest, size, part.Size)
	}
	f.Parts, f.Bytes = f.Parts+1, f.Bytes+size
	return nil
}
