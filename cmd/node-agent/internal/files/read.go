package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// openRegular opens a regular file to read. A pipe is opened without waiting for a writer, and refused.
func (q *request) openRegular() (*os.File, os.FileInfo, error) {
	file, err := q.root.OpenFile(q.path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = unix.EISDIR
	case !info.Mode().IsRegular():
		err = unix.ENXIO
	default:
		return file, info, nil
	}
	_ = file.Close()
	return nil, nil, err
}

// tag is the ETag of a file: it changes when the bytes do.
func tag(info os.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf(`"%x-%x-%x-%x"`, stat.Ino, stat.Size, stat.Mtim.Nano(), stat.Ctim.Nano())
}

// read answers with a file's bytes or its properties. Where the request wants it, the trailer has the digest of the
// whole file: what a range leaves out before it is read for that.
func (q *request) read(w http.ResponseWriter, r *http.Request) error {
	if strings.Contains(r.Header.Get("Range"), ",") {
		return refusal("INVALID_ARGUMENT", "Range: request one range")
	}
	file, info, err := q.openRegular()
	if err != nil {
		return err
	}
	defer file.Close()
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("ETag", tag(info))
	if r.Method != http.MethodGet || r.Header.Get(volumefiles.WantReprDigest) != volumefiles.WantSHA256 {
		http.ServeContent(w, r, "", info.ModTime(), file)
		return nil
	}
	digesting := &digesting{ResponseWriter: w, file: file, size: info.Size()}
	http.ServeContent(digesting, r, "", info.ModTime(), file)
	if digesting.sum == nil {
		return nil // no bytes were wanted, such as after a condition that does not hold
	}
	if after, err := file.Stat(); err != nil || tag(after) != tag(info) || digesting.err != nil {
		panic(http.ErrAbortHandler) // it was written meanwhile: nobody takes this for the file
	}
	if digesting.passed == info.Size() {
		header.Set(volumefiles.ReprDigest, volumefiles.Digest(digesting.sum.Sum(nil)).String())
	}
	return nil
}

// digesting computes the digest of what passes, and of the part of the file before it.
type digesting struct {
	http.ResponseWriter
	file   io.ReaderAt
	size   int64
	sum    hash.Hash
	passed int64
	err    error
}

// WriteHeader reads the bytes of the file that come before those of the answer.
func (d *digesting) WriteHeader(status int) {
	if status == http.StatusOK || status == http.StatusPartialContent {
		var from, to, size int64
		if status == http.StatusPartialContent {
			_, d.err = fmt.Sscanf(d.Header().Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size)
		}
		d.sum = sha256.New()
		n, err := io.CopyBuffer(d.sum, io.NewSectionReader(d.file, 0, from), make([]byte, bufferSize))
		d.passed, d.err = n, errors.Join(d.err, err)
		d.Header().Del("Content-Length") // a trailer needs an answer in chunks
		d.Header().Set("Trailer", volumefiles.ReprDigest)
	}
	d.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on.
func (d *digesting) Write(p []byte) (int, error) {
	n, err := d.ResponseWriter.Write(p)
	if d.sum != nil {
		_, _ = d.sum.Write(p[:n])
		d.passed += int64(n)
	}
	d.err = errors.Join(d.err, err)
	return n, err
}
