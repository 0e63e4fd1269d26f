package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// ErrCorrupt says that a part on the disk did not match its name. It was removed and can be fetched again.
var ErrCorrupt = errors.New("a part in the cache was damaged")

// Lease keeps parts from being removed until it is released.
type Lease struct {
	cache    *Cache
	entries  []*entry
	released bool
}

// Release lets the parts go. It may be called again.
func (l *Lease) Release() {
	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()
	if !l.released {
		l.released = true
		l.cache.unpin(l.entries)
		close(l.cache.let)
		l.cache.let = make(chan struct{})
	}
}

// entry panics for a part that is not leased, which is the caller's mistake.
func (l *Lease) entry(part Part) *entry {
	for _, e := range l.entries {
		if e.hex == part.hex() {
			return e
		}
	}
	panic("content: the part is not leased")
}

// Begin gives the download of a part, or nil when the part is there. One task at a time downloads a part: Begin waits
// for the others until ctx ends.
func (l *Lease) Begin(ctx context.Context, part Part) (*Download, error) {
	e := l.entry(part)
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l.cache.mu.Lock()
	whole := e.whole
	l.cache.mu.Unlock()
	if whole {
		<-e.turn
		return nil, nil
	}
	download, err := l.cache.resume(e, part)
	if err != nil {
		<-e.turn
		return nil, err
	}
	return download, nil
}

// Reader reads a part that is there. At its last byte it fails with ErrCorrupt when what it read is not the part, and
// drops it.
func (l *Lease) Reader(part Part) (io.ReadCloser, error) {
	e := l.entry(part)
	file, err := os.Open(l.cache.whole(e.hex))
	if errors.Is(err, os.ErrNotExist) {
		l.drop(e)
		return nil, ErrCorrupt
	}
	if err != nil {
		return nil, fmt.Errorf("read from the cache: %w", err)
	}
	reader := &verified{file: file, sum: sha256.New(), left: part.Size, lease: l, entry: e}
	if part.Size == 0 {
		if err := reader.verify(); err != nil {
			_ = file.Close()
			return nil, err
		}
	}
	return reader, nil
}

// Bytes reads a small part whole; more than limit bytes are refused.
func (l *Lease) Bytes(part Part, limit int64) ([]byte, error) {
	if part.Size > limit {
		return nil, wire.Errorf(wire.CodeArtifactUnavailable, "%s has %d bytes, a manifest has at most %d",
			part.Digest, part.Size, limit)
	}
	reader, err := l.Reader(part)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	raw := make([]byte, part.Size)
	if _, err := io.ReadFull(reader, raw); err != nil {
		return nil, err
	}
	return raw, nil
}

func (l *Lease) drop(e *entry) {
	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()
	e.whole = false
	_ = os.Remove(l.cache.whole(e.hex))
}

// verified hashes what it reads, and returns ErrCorrupt with the last byte when the digest is wrong.
type verified struct {
	file  *os.File
	sum   hash.Hash
	left  int64
	lease *Lease
	entry *entry
}

func (v *verified) Read(into []byte) (int, error) {
	if v.left == 0 {
		return 0, io.EOF
	}
	n, err := v.file.Read(into[:min(int64(len(into)), v.left)])
	_, _ = v.sum.Write(into[:n])
	v.left -= int64(n)
	if v.left == 0 {
		return n, v.verify()
	}
	if errors.Is(err, io.EOF) { // shorter than it should be
		v.lease.drop(v.entry)
		return n, ErrCorrupt
	}
	return n, err
}

func (v *verified) verify() error {
	if hex.EncodeToString(v.sum.Sum(nil)) != v.entry.hex {
		v.lease.drop(v.entry)
		return ErrCorrupt
	}
	return nil
}

func (v *verified) Close() error { return v.file.Close() }
