package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
)

// The bounds of one reading.
const (
	readTimeout = 10 * time.Minute // of everything that is asked of a source for one artifact
	partsAtOnce = 4
	maxTries    = 3       // of a part whose transfer breaks off
	maxConfig   = 1 << 20 // bytes of an image's config, which is looked into
	chunk       = 64 << 10
)

// content is what was read of an artifact: every byte of it was checked against its digest.
type content struct {
	kind         lifecycle.ArtifactKind
	digest       string
	mediaType    string // of what it holds
	artifactType string
	platforms    []string
	parts        []part // a manifest before what it lists
}

// size is the bytes of all parts, what is listed twice counted once.
func (c *content) size() (total int64) {
	seen := make(map[string]bool, len(c.parts))
	for _, p := range c.parts {
		if !seen[p.Digest] {
			seen[p.Digest], total = true, total+p.Size
		}
	}
	return total
}

// digests are those of all parts.
func (c *content) digests() []string {
	out := make([]string, len(c.parts))
	for i, p := range c.parts {
		out[i] = p.Digest
	}
	return out
}

// reading reads one artifact from one source.
type reading struct {
	session   *fetch.Session
	manifests int64         // bytes of them so far
	bytes     *atomic.Int64 // read so far, of everything
}

// outline reads everything of an artifact but what its manifests list: all manifests, checked against their digests. A
// file is itself its only part, of a size that is not known yet.
func (r *reading) outline(ctx context.Context, digest string) (*content, error) {
	if r.session.Ref().File() {
		file := part{Role: lifecycle.PartBlob, Digest: digest, MediaType: "application/octet-stream", Size: -1}
		return &content{kind: lifecycle.ArtifactBlob, digest: digest, mediaType: file.MediaType,
			parts: []part{file}}, nil
	}
	out := &content{kind: lifecycle.ArtifactOCI, digest: digest}
	err := r.manifest(ctx, out, part{Role: lifecycle.PartManifest, Digest: digest, Size: -1}, 0)
	return out, err
}

// manifest reads one manifest and all below it.
func (r *reading) manifest(ctx context.Context, out *content, p part, depth int) error {
	data, said, err := r.session.Manifest(ctx, p.Digest)
	if err != nil {
		return failed(ctx, "manifest "+p.Digest, err)
	}
	if err := p.holds(int64(len(data)), digest.Of(data)); err != nil {
		return err
	}
	if r.manifests += int64(len(data)); r.manifests > maxManifests || depth >= maxDepth {
		return malformed("its manifests have more than %d bytes together, or are more than %d deep", maxManifests,
			maxDepth)
	}
	parsed, err := parseManifest(data)
	if err != nil {
		return err
	}
	if p.Size = int64(len(data)); p.MediaType == "" {
		if p.MediaType = parsed.MediaType; p.MediaType == "" && word(said) {
			p.MediaType = said
		}
	}
	if depth == 0 {
		out.mediaType, out.artifactType = parsed.holds(p.MediaType), parsed.ArtifactType
	}
	if parsed.isImage() {
		out.kind = lifecycle.ArtifactImage
		out.runsOn(p.Platform)
	}
	below, err := parsed.parts(p)
	if err != nil {
		return err
	}
	out.parts = append(out.parts, p)
	for _, one := range below {
		if one.Role == lifecycle.PartManifest {
			if err := r.manifest(ctx, out, one, depth+1); err != nil {
				return err
			}
			continue
		}
		out.parts = append(out.parts, one)
	}
	if len(out.parts) > maxParts {
		return malformed("it has more than %d parts", maxParts)
	}
	return nil
}

// runsOn notes a platform of an image, each once.
func (c *content) runsOn(platform string) {
	if platform != "" && len(c.platforms) < maxPlatforms && !slices.Contains(c.platforms, platform) {
		c.platforms = append(c.platforms, platform)
	}
}

// fill reads all that the manifests list and checks it against its digests; for what was read before it only checks
// that the source still has it. Each digest is read once, a few at a time, through small buffers.
func (r *reading) fill(ctx context.Context, c *content, known map[string]bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	var seen sync.Map
	var lock sync.Mutex
	for i := range c.parts {
		p := &c.parts[i]
		if _, before := seen.LoadOrStore(p.Digest, p.Size); p.Role == lifecycle.PartManifest || before {
			continue
		}
		group.Go(func() error {
			if known[p.Digest] && !p.platformWanted {
				return r.ask(ctx, p)
			}
			data, err := r.read(ctx, p)
			if err != nil || !p.platformWanted {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			c.runsOn(configPlatform(data))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return agree(c.parts)
}

// agree refuses a digest that is listed with two sizes: one of them is not its own.
func agree(parts []part) error {
	sizes := make(map[string]int64, len(parts))
	for _, p := range parts {
		if size, before := sizes[p.Digest]; before && size != p.Size {
			return malformed("part %s is listed with %d and with %d bytes", p.Digest, size, p.Size)
		}
		sizes[p.Digest] = p.Size
	}
	return nil
}

// ask makes sure that the source still has a part that was read before.
func (r *reading) ask(ctx context.Context, p *part) error {
	size, err := r.session.Size(ctx, p.Digest, p.Role)
	if err != nil {
		return failed(ctx, "part "+p.Digest, err)
	}
	if size >= 0 && size != p.Size {
		return p.mismatch("has %d bytes and should have %d", size, p.Size)
	}
	return nil
}

// read reads a part whole, and goes on where a transfer broke off. It keeps the bytes of a small config, and sets a
// size that was not known.
func (r *reading) read(ctx context.Context, p *part) ([]byte, error) {
	hasher, kept := sha256.New(), &bytes.Buffer{}
	var into io.Writer = hasher
	if p.platformWanted && p.Size <= maxConfig {
		into = io.MultiWriter(hasher, kept)
	}
	var done int64
	for try := 1; ; try++ {
		n, err := r.stream(ctx, p, done, into)
		done += n
		if err == nil {
			break
		}
		if _, told := fault.As(err); told || try == maxTries || n == 0 {
			return nil, failed(ctx, "part "+p.Digest, err)
		}
	}
	if err := p.holds(done, digest.Sum(hasher)); err != nil {
		return nil, err
	}
	p.Size = done
	return kept.Bytes(), nil
}

var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// stream reads on from an offset, no further than one byte beyond what the part should have.
func (r *reading) stream(ctx context.Context, p *part, offset int64, into io.Writer) (int64, error) {
	body, size, err := r.session.Blob(ctx, p.Digest, offset)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	most := p.Size
	if most < 0 {
		most = maxPart
	} else if size >= 0 && size != most {
		return 0, p.mismatch("has %d bytes and should have %d", size, most)
	}
	buffer, _ := buffers.Get().(*[chunk]byte)
	defer buffers.Put(buffer)
	return io.CopyBuffer(into, io.LimitReader(counted{body, r.bytes}, most-offset+1), buffer[:])
}

// counted adds up what is read.
type counted struct {
	io.Reader
	total *atomic.Int64
}

// Read reads on.
func (c counted) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	c.total.Add(int64(n))
	return n, err
}

// holds compares what was read with what the part should be.
func (p *part) holds(size int64, digest string) error {
	switch {
	case p.Size >= 0 && size > p.Size:
		return p.mismatch("has more than the %d bytes that it should have", p.Size)
	case p.Size >= 0 && size < p.Size:
		return p.mismatch("has %d bytes and should have %d", size, p.Size)
	case digest != p.Digest:
		return p.mismatch("has other bytes: their digest is %s", digest)
	}
	return nil
}

func (p *part) mismatch(format string, args ...any) *fault.Fault {
	return fault.New(fault.DigestMismatch, "%s %s %s", strings.ToLower(string(p.Role)), p.Digest,
		fmt.Sprintf(format, args...))
}

// failed returns the fault of a source that did not give what was requested. It has what the source reported, and no
// address within the network.
func failed(ctx context.Context, what string, err error) error {
	if refused, ok := fault.As(err); ok {
		return refused
	}
	switch {
	case errors.Is(context.Cause(ctx), errTooLong):
		return fault.New(fault.ArtifactUnavailable, "the source took longer than %s", readTimeout).
			Because(err).Retry(true)
	case errors.Is(err, fetch.ErrNotFound):
		return fault.New(fault.ArtifactUnavailable, "the source does not give the artifact: it does not have %s",
			what).Because(err)
	}
	return fault.New(fault.ArtifactUnavailable, "the source does not give the artifact: %s: %s", what,
		fetch.Told(err)).Because(err).Retry(true)
}

// errTooLong ends a reading.
var errTooLong = errors.New("the reading took too long")
