package fetch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/content"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// partsAtOnce bounds the parts of one artifact that are fetched at once, and downloadsAtOnce those of the node.
	partsAtOnce     = 3
	downloadsAtOnce = 8
)

// Fetcher fetches for all tasks of a node.
type Fetcher struct {
	cache *content.Cache
	open  Opener
	http  *http.Client
	log   *slog.Logger
	slots chan struct{}
}

// Opener opens the delivery of a task. It asks again while the platform is away, until ctx ends; its errors carry a
// code.
type Opener func(ctx context.Context, taskID string) (gql.ArtifactDelivery, error)

// New makes a Fetcher. A nil transport is the default one.
func New(cache *content.Cache, open Opener, transport http.RoundTripper, log *slog.Logger) *Fetcher {
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for the platform alone
	}}
	return &Fetcher{cache: cache, open: open, http: client, log: log, slots: make(chan struct{}, downloadsAtOnce)}
}

// Wanted is what a task is to have.
type Wanted struct {
	TaskID string
	// Digest is the artifact's, `sha256:…`.
	Digest string
	// Platform is which image of an index; empty for the node's own.
	Platform string
	// Accept is called once the artifact's parts are known, before its layers are fetched.
	Accept func(*Artifact) error
	// Progress gets how many bytes are there and how many there will be, often and by several goroutines.
	Progress func(done, total int64)
}

// Artifact is one that is whole in the cache until it is released.
type Artifact struct {
	// Kind is what sort of thing it is.
	Kind gql.ArtifactKind
	// Manifest is the one that was chosen; of a blob it is nil.
	Manifest *Descriptor
	// Parts are the manifest, its config and its layers, or the one file of a blob; Layers are the last of them.
	Parts  []Descriptor
	Layers []Descriptor

	session *session
	lease   *content.Lease
}

// Fetched is how many bytes came over the network for this task.
func (a *Artifact) Fetched() int64 { return a.session.fetched.Load() }

// Bytes is the size of all parts, each counted once.
func (a *Artifact) Bytes() int64 { return size(a.Parts) }

func size(parts []Descriptor) (total int64) {
	seen := map[string]bool{}
	for _, part := range parts {
		if !seen[part.Digest] {
			seen[part.Digest] = true
			total += part.Size
		}
	}
	return total
}

// Release lets the cache do as it likes with the parts.
func (a *Artifact) Release() { a.lease.Release() }

// Read hands the part's bytes to use, verifying them: the last of them fails when they are not the part. Then the part
// is fetched again and use is called again, so that it must not keep what failed.
func (a *Artifact) Read(ctx context.Context, part Descriptor, use func(io.Reader) error) error {
	for range maxWrong {
		err := a.read(part, use)
		if !errors.Is(err, content.ErrCorrupt) {
			return err
		}
		a.session.fetcher.log.WarnContext(ctx, "a part in the cache was damaged and is fetched again", "digest",
			part.Digest)
		if err := a.session.ensure(ctx, a.lease, part); err != nil {
			return err
		}
	}
	return mismatch(part)
}

func (a *Artifact) read(part Descriptor, use func(io.Reader) error) error {
	bytes, err := a.lease.Reader(part.Part())
	if err != nil {
		return err
	}
	defer bytes.Close()
	return use(bytes)
}

// session is one task's fetching.
type session struct {
	fetcher *Fetcher
	wanted  Wanted
	fetched atomic.Int64
	done    atomic.Int64
	total   atomic.Int64

	mu       sync.Mutex
	delivery gql.ArtifactDelivery
}

// Fetch brings the artifact into the cache, whole and verified, and keeps it there until it is released. It goes on
// until ctx ends; its errors carry a code, but for those of ctx.
func (f *Fetcher) Fetch(ctx context.Context, wanted Wanted) (*Artifact, error) {
	s := &session{fetcher: f, wanted: wanted}
	if _, err := s.renew(ctx, ""); err != nil {
		return nil, err
	}
	found, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	if wanted.Accept != nil {
		if err := wanted.Accept(found); err != nil {
			return nil, err
		}
	}
	if found.lease, err = f.cache.Lease(ctx, cached(found.Parts)); err != nil {
		return nil, err
	}
	s.done.Store(0)
	s.total.Store(found.Bytes())
	if err := s.all(ctx, found); err != nil {
		found.lease.Release()
		return nil, err
	}
	return found, nil
}

func cached(parts []Descriptor) []content.Part {
	all := make([]content.Part, len(parts))
	for i, part := range parts {
		all[i] = part.Part()
	}
	return all
}

func (s *session) all(ctx context.Context, found *Artifact) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	seen := map[string]bool{}
	for _, part := range found.Parts {
		if !seen[part.Digest] {
			seen[part.Digest] = true
			group.Go(func() error { return s.ensure(ctx, found.lease, part) })
		}
	}
	return group.Wait()
}

// describe finds the artifact's manifest and parts. Of an index it follows the wanted platform alone.
func (s *session) describe(ctx context.Context) (*Artifact, error) {
	self := Descriptor{Digest: s.wanted.Digest, MediaType: s.delivery.MediaType, Size: -1}
	for _, part := range s.delivery.Parts {
		if part.Digest == s.wanted.Digest {
			self.Size, self.MediaType = int64(part.SizeBytes), part.MediaType
		}
	}
	if s.delivery.Digest != s.wanted.Digest || self.Size < 0 {
		return nil, unavailable("the platform does not deliver the artifact %s, but another one", s.wanted.Digest)
	}
	found := &Artifact{Kind: s.delivery.Kind, session: s}
	if found.Kind == gql.ArtifactKindBlob {
		found.Parts, found.Layers = []Descriptor{self}, []Descriptor{self}
		return found, nil
	}
	platform := s.wanted.Platform
	if platform == "" {
		platform = hostPlatform()
	}
	for range maxDepth {
		read, err := s.manifest(ctx, self)
		if err != nil {
			return nil, err
		}
		if !read.index(self) {
			found.Manifest, found.Parts, found.Layers = &self, read.parts(self), read.Layers
			return found, nil
		}
		if self, err = read.pick(platform); err != nil {
			return nil, err
		}
	}
	return nil, unavailable("the artifact is an index of indexes, more than %d deep", maxDepth)
}

// manifest reads one. Its lease ends before the next begins: a task that keeps space while it waits for more could wait
// for ever.
func (s *session) manifest(ctx context.Context, of Descriptor) (document, error) {
	if of.Size > maxManifest {
		return document{}, unavailable("the manifest %s has %d bytes, the limit is %d", of.Digest, of.Size,
			maxManifest)
	}
	lease, err := s.fetcher.cache.Lease(ctx, []content.Part{of.Part()})
	if err != nil {
		return document{}, err
	}
	defer lease.Release()
	for range maxWrong {
		if err := s.ensure(ctx, lease, of); err != nil {
			return document{}, err
		}
		raw, err := lease.Bytes(of.Part(), maxManifest)
		if errors.Is(err, content.ErrCorrupt) {
			continue
		}
		if err != nil {
			return document{}, err
		}
		return parse(raw, of)
	}
	return document{}, mismatch(of)
}
