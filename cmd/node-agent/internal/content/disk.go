package content

import (
	"errors"
	"hash"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// Buffer is the size of the pieces in which parts are read and written, in bytes.
	Buffer = 1 << 20
	// pieces is how many of them a download has: one is filled while another is hashed and one before it is written.
	pieces = 4
	// block is what direct writes are aligned to, in memory and in the file: no disk's block is larger.
	block = 4 << 10
)

// disk is a file that is written once, from its end on. It is written past the page cache where the filesystem has that
// (ADR 0030): the copy into the cache and the writing back are processor time that the node's own work has better use
// for, and a large part would drive that work's files out of memory.
type disk struct {
	plain  *os.File
	direct *os.File // nil where the filesystem has none
}

// openDisk opens the file, making it where it is missing.
func openDisk(name string) (*disk, error) {
	plain, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	direct, err := os.OpenFile(name, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		direct = nil
	}
	return &disk{plain, direct}, nil
}

// writeAt writes p: whole blocks at a block's boundary directly, and everything else through the page cache.
func (d *disk) writeAt(p []byte, at int64) error {
	n := 0
	if whole := len(p) &^ (block - 1); d.direct != nil && at%block == 0 && whole > 0 {
		var err error
		if n, err = d.direct.WriteAt(p[:whole], at); errors.Is(err, unix.EINVAL) {
			err = d.direct.Close() // this filesystem lets it be opened, and no more
			d.direct = nil
		}
		if err != nil {
			return err
		}
	}
	if n == len(p) {
		return nil
	}
	_, err := d.plain.WriteAt(p[n:], at+int64(n))
	return err
}

func (d *disk) close() {
	_ = d.plain.Close()
	if d.direct != nil {
		_ = d.direct.Close()
	}
}

// newPiece returns an aligned buffer of whole blocks for direct writes, for at most most bytes.
func newPiece(most int64) []byte {
	size := int(min(Buffer, (most+block-1)&^(block-1)))
	raw := make([]byte, size+block)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (block - 1) // #nosec G103 -- for its alignment alone
	return raw[skip : skip+size : skip+size]
}

// writer hashes pieces and writes them, each in their order and in a goroutine of its own, until the first that cannot
// be written:
//
//	free ──▶ filled by the reader ──▶ full ──▶ hash ──▶ hashed ──▶ write ──▶ free
type writer struct {
	disk    *disk
	free    chan []byte
	full    chan []byte
	hashed  chan []byte
	failed  chan struct{} // closed when err is
	ended   chan struct{}
	err     error
	written int64 // where the file's end is
}

// writer writes what is left from the offset on; sum has all that is before.
func (d *disk) writer(offset, left int64, sum hash.Hash) *writer {
	channel := func() chan []byte { return make(chan []byte, pieces) }
	w := &writer{
		disk: d, written: offset, free: channel(), full: channel(), hashed: channel(), failed: make(chan struct{}),
		ended: make(chan struct{}),
	}
	for n := range int64(pieces) {
		if n*Buffer < left {
			w.free <- newPiece(left)
		}
	}
	go w.hash(sum)
	go w.write()
	return w
}

func (w *writer) hash(sum hash.Hash) {
	defer close(w.hashed)
	for piece := range w.full {
		_, _ = sum.Write(piece)
		w.hashed <- piece
	}
}

func (w *writer) write() {
	defer close(w.ended)
	for piece := range w.hashed {
		if w.err != nil {
			continue
		}
		if w.err = w.disk.writeAt(piece, w.written); w.err != nil {
			close(w.failed)
			continue
		}
		w.written += int64(len(piece))
		w.free <- piece[:cap(piece)]
	}
}

// piece gives one to fill; none when writing has failed.
func (w *writer) piece() (free []byte, ok bool) {
	select {
	case free = <-w.free:
		return free, true
	case <-w.failed:
		return nil, false
	}
}

// finish waits until all is hashed and written, and says where the file ends.
func (w *writer) finish() (offset int64, err error) {
	close(w.full)
	<-w.ended
	return w.written, w.err
}
