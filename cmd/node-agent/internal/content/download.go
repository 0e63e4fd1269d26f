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

// buffers is how many pieces of a download are in memory at once: some are hashed while one is written and the next comes.
const buffers = 4

// Download is a part on its way, owned by one goroutine.
type Download struct {
	cache  *Cache
	entry  *entry
	part   Part
	file   *os.File
	sum    hash.Hash
	offset int64
}

// resume opens what there is of the part and hashes it, so that it is fetched from there on.
func (c *Cache) resume(e *entry, part Part) (*Download, error) {
	file, err := os.OpenFile(c.partial(e.hex), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, diskError(err)
	}
	d := &Download{cache: c, entry: e, part: part, file: file, sum: sha256.New()}
	d.offset, err = io.CopyBuffer(struct{ io.Writer }{d.sum}, struct{ io.Reader }{file}, make([]byte, Buffer))
	if err == nil && d.offset > part.Size {
		err = d.Reset()
	}
	if err != nil {
		_ = file.Close()
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

// Reset begins anew.
func (d *Download) Reset() error {
	d.offset = 0
	d.sum.Reset()
	_, err := d.file.Seek(0, io.SeekStart)
	return errors.Join(err, d.file.Truncate(0))
}

// WriteError is a failure of the node's own disk while a part came, as opposed to one of where it came from.
type WriteError struct{ error }

// Unwrap gives what failed.
func (e WriteError) Unwrap() error { return e.error }

// Copy appends what comes, hashing it beside writing, and tells progress of each piece. It stops at the part's size and says
// whether more would have come. Its error is of the reading, or a WriteError.
func (d *Download) Copy(from io.Reader, progress func(bytes int64)) (longer bool, err error) {
	free, full := make(chan []byte, buffers), make(chan []byte, buffers)
	hashed := make(chan struct{})
	for range buffers {
		free <- make([]byte, Buffer)
	}
	go func() {
		defer close(hashed)
		for piece := range full {
			_, _ = d.sum.Write(piece)
			free <- piece[:cap(piece)]
		}
	}()
	defer func() {
		close(full)
		<-hashed
	}()
	for {
		buffer := <-free
		if d.offset == d.part.Size {
			n, err := from.Read(buffer[:1])
			for n == 0 && err == nil {
				n, err = from.Read(buffer[:1])
			}
			return n > 0, ended(err)
		}
		n, err := from.Read(buffer[:min(int64(len(buffer)), d.part.Size-d.offset)])
		if n > 0 {
			full <- buffer[:n]
			if _, err := d.file.WriteAt(buffer[:n], d.offset); err != nil {
				return false, WriteError{diskError(err)}
			}
			d.offset += int64(n)
			progress(int64(n))
		} else {
			free <- buffer
		}
		if err != nil {
			return false, ended(err)
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Finish verifies the part, syncs it, and gives it its name. One that is not what it should be is removed: false.
func (d *Download) Finish() (genuine bool, err error) {
	if d.offset != d.part.Size || hex.EncodeToString(d.sum.Sum(nil)) != d.entry.hex {
		return false, d.Reset()
	}
	if err := d.file.Sync(); err != nil {
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
	_ = d.file.Close()
	if d.offset == 0 {
		_ = os.Remove(d.cache.partial(d.entry.hex))
	}
	<-d.entry.turn
}
