package content

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// Download is a part on its way, owned by one goroutine.
type Download struct {
	cache  *Cache
	entry  *entry
	part   Part
	file   *disk
	sum    hash.Hash
	offset int64
}

// resume opens what there is of the part and hashes it, so that it is fetched from there on.
func (c *Cache) resume(e *entry, part Part) (*Download, error) {
	file, err := openDisk(c.partial(e.hex))
	if err != nil {
		return nil, diskError(err)
	}
	d := &Download{cache: c, entry: e, part: part, file: file, sum: sha256.New()}
	d.offset, err = io.CopyBuffer(struct{ io.Writer }{d.sum}, struct{ io.Reader }{file.plain}, make([]byte, Buffer))
	if err == nil && d.offset > part.Size {
		err = d.Reset()
	}
	if err != nil {
		file.close()
		return nil, diskError(err)
	}
	return d, nil
}

func diskError(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return wire.Errorf(wire.CodeDiskFull, "the node's cache: %v", err)
	}
	return fmt.Errorf("the node's cache: %w", err)
}

// Offset is how many bytes are there.
func (d *Download) Offset() int64 { return d.offset }

// Reset discards what came, so that the download begins at its first byte again.
func (d *Download) Reset() error {
	d.offset = 0
	d.sum.Reset()
	return d.file.plain.Truncate(0)
}

// WriteError is a failure of the node's own disk while a part came, as opposed to one of where it came from.
type WriteError struct{ error }

// Unwrap gives what failed.
func (e WriteError) Unwrap() error { return e.error }

// Copy appends what comes, hashing and writing it while more comes, and reports what was read to progress. It stops at
// the part's size and returns whether more would have come. Its error is of the reading, or a WriteError, after which
// the download can only be closed.
func (d *Download) Copy(from io.Reader, progress func(bytes int64)) (longer bool, err error) {
	w := d.file.writer(d.offset, d.part.Size-d.offset, d.sum)
	for at := d.offset; err == nil && at < d.part.Size; {
		piece, ok := w.piece()
		if !ok {
			break
		}
		var n int
		// The first piece of a download that continues ends where a block does, so that the others begin there.
		n, err = fill(piece[:min(int64(len(piece))-at%block, d.part.Size-at)], from, progress)
		at += int64(n)
		w.full <- piece[:n]
	}
	var failed error
	if d.offset, failed = w.finish(); failed != nil {
		return false, WriteError{diskError(failed)}
	}
	if err == nil && d.offset == d.part.Size {
		longer, err = more(from)
	}
	return longer, ended(err)
}

// fill reads until the piece is full or nothing more comes.
func fill(piece []byte, from io.Reader, progress func(bytes int64)) (n int, err error) {
	for n < len(piece) && err == nil {
		var came int
		came, err = from.Read(piece[n:])
		n += came
		if came > 0 {
			progress(int64(came))
		}
	}
	return n, err
}

// more says whether there is more to read.
func more(from io.Reader) (bool, error) {
	var one [1]byte
	for {
		if n, err := from.Read(one[:]); n > 0 || err != nil {
			return n > 0, err
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Finish verifies the part, syncs it, and gives it its name. A wrong one is emptied, and genuine is false.
func (d *Download) Finish() (genuine bool, err error) {
	if d.offset != d.part.Size || hex.EncodeToString(d.sum.Sum(nil)) != d.entry.hex {
		return false, d.Reset()
	}
	if err := d.file.plain.Sync(); err != nil {
		return false, diskError(err)
	}
	whole := d.cache.whole(d.entry.hex)
	if err := os.Rename(d.cache.partial(d.entry.hex), whole); err != nil {
		return false, diskError(err)
	}
	if err := durable.SyncDir(filepath.Dir(whole)); err != nil {
		return false, diskError(err)
	}
	d.cache.mu.Lock()
	defer d.cache.mu.Unlock()
	d.entry.whole = true
	return true, nil
}

// Close lets the next one have its turn. What came is kept for it, unless it is nothing.
func (d *Download) Close() {
	d.file.close()
	if d.offset == 0 {
		_ = os.Remove(d.cache.partial(d.entry.hex))
	}
	<-d.entry.turn
}
