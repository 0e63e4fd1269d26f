package files

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// Upload copies a file of this machine to a path of the volume, with the permission bits of mode. It reads the file
// once for its digest, and goes on where an earlier upload of the same bytes to the same path broke off.
func (v *Volume) Upload(ctx context.Context, file *os.File, path string, mode os.FileMode) error {
	size, digest, err := digestOf(ctx, file)
	if err != nil {
		return err
	}
	header := http.Header{volumefiles.ReprDigest: {digest.String()},
		volumefiles.UploadLength: {strconv.FormatInt(size, 10)}}
	last := int64(-1)
	return v.tries(ctx, func() (moved bool, err error) {
		from, err := v.uploaded(ctx, path, header)
		if err != nil {
			return false, err
		}
		moved, last = from > last && last >= 0, from
		return moved, v.bring(ctx, file, path, mode, digest, volumefiles.Part{From: from, Length: size - from,
			Total: size})
	})
}

// uploaded is how much of an upload is there.
func (v *Volume) uploaded(ctx context.Context, path string, header http.Header) (int64, error) {
	resp, err := v.send(ctx, http.MethodHead, v.address(path, false), nil, 0, header)
	if refused(err) {
		return 0, nil // the request that brings the bytes is told why
	}
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()
	return volumefiles.Number(resp.Header.Get(volumefiles.UploadOffset))
}

// bring sends all that is missing.
func (v *Volume) bring(ctx context.Context, file *os.File, path string, mode os.FileMode, digest volumefiles.Digest,
	part volumefiles.Part) error {
	if part.Length < 0 {
		return fmt.Errorf("the volume has %d bytes of this upload, which has only %d", part.From, part.Total)
	}
	header := http.Header{volumefiles.ReprDigest: {digest.String()}, "Expect": {"100-continue"}}
	if part.Length < part.Total {
		header.Set("Content-Range", part.String())
	}
	if part.Length == 0 {
		header.Del("Expect")
	}
	query := url.Values{volumefiles.ModeQuery: {strconv.FormatUint(uint64(mode.Perm()), 8)}}
	body := &counting{Reader: io.NewSectionReader(file, part.From, part.Length), done: part.From, total: part.Total,
		tell: v.Progress}
	resp, err := v.send(ctx, http.MethodPut, v.address(path, false)+"?"+query.Encode(), body, part.Length, header)
	if err == nil {
		return resp.Body.Close()
	}
	if refused, ok := client.AsError(err); ok && refused.Code == client.CodeConflict {
		refused.Retryable = true // another request brings it, such as one of ours whose end the node has not seen yet
	}
	return err
}

// digestOf reads a file of this machine for its size and its digest.
func digestOf(ctx context.Context, file *os.File) (size int64, digest volumefiles.Digest, err error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", file.Name())
	}
	if err != nil {
		return 0, digest, err
	}
	sum := sha256.New()
	size, err = io.Copy(sum, &stopping{ctx, io.NewSectionReader(file, 0, info.Size())})
	return size, volumefiles.Digest(sum.Sum(nil)), err
}

// stopping is a reader that ends with a context.
type stopping struct {
	ctx context.Context
	io.Reader
}

func (s *stopping) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// counting reports how much was read.
type counting struct {
	io.Reader
	done, total int64
	tell        func(done, total int64)
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.done += int64(n)
	if c.tell != nil && n > 0 {
		c.tell(c.done, c.total)
	}
	return n, err
}
