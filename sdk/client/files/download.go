package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// Download copies a file of the volume to a path of this machine. The file gets its name when it is complete and has
// the digest that the node reports. Until then its bytes are beside it, as `.NAME.HASH.part`, and the next download of
// the same file goes on with them.
func (v *Volume) Download(ctx context.Context, path, to string) error {
	last := int64(-1)
	return v.tries(ctx, func() (moved bool, err error) {
		info, err := v.Stat(ctx, path)
		if err != nil {
			return false, err
		}
		if info.Size < 0 {
			return false, errors.New("the platform does not state how large the file is")
		}
		part := v.part(path, to, info)
		file, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return false, err
		}
		defer func() { _ = file.Close() }()
		from, err := v.take(ctx, path, file, info)
		moved, last = from > last && last >= 0, from
		if err == nil {
			err = errors.Join(file.Sync(), file.Chmod(0o644), os.Rename(part, to))
		} else if client.CodeOf(err) == client.CodeDigestMismatch || client.CodeOf(err) == client.CodeConflict {
			_ = os.Remove(part)
		}
		return moved, err
	})
}

// part is where a file waits until all of it is there. Another file, or the same with other bytes, waits elsewhere.
func (v *Volume) part(path, to string, info Info) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d", v.Client.Server(), v.ID, path, info.Tag,
		info.Size))
	return filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+"."+hex.EncodeToString(sum[:6])+".part")
}

// take reads what is missing of a file, and compares its digest. It returns with how much it began.
func (v *Volume) take(ctx context.Context, path string, file *os.File, info Info) (from int64, err error) {
	have, err := file.Stat()
	if err != nil {
		return 0, err
	}
	from = have.Size()
	if from > info.Size {
		from = 0
	}
	if from == info.Size && from > 0 {
		from-- // the digest comes with at least a byte
	}
	if err := file.Truncate(from); err != nil {
		return from, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, &stopping{ctx, io.NewSectionReader(file, 0, from)}); err != nil {
		return from, err
	}
	header := http.Header{"If-Match": {info.Tag}, volumefiles.WantReprDigest: {volumefiles.WantSHA256}}
	if from > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := v.send(ctx, http.MethodGet, v.address(path, false), nil, 0, header)
	if err != nil {
		if refused, ok := client.AsError(err); ok && refused.Code == client.CodeConflict {
			refused.Retryable = true // it has changed since, and is begun again
		}
		return from, err
	}
	defer func() { _ = resp.Body.Close() }()
	if from > 0 && resp.StatusCode != http.StatusPartialContent {
		return from, broken(errors.New("the rest of the file was requested, but all of it was returned"))
	}
	return from, v.receive(resp, file, sum, from, info.Size)
}

// receive writes the bytes of an answer behind those that are there.
func (v *Volume) receive(resp *http.Response, file *os.File, sum hash.Hash, from, size int64) error {
	body := &counting{Reader: io.LimitReader(resp.Body, size-from+1), done: from, total: size, tell: v.Progress}
	n, err := io.Copy(io.MultiWriter(&local{io.NewOffsetWriter(file, from)}, sum), body)
	var own *localError
	switch {
	case errors.As(err, &own):
		return own.error
	case err != nil:
		return broken(err)
	case from+n != size:
		return broken(fmt.Errorf("%d of %d bytes arrived", from+n, size))
	}
	wanted, err := volumefiles.ParseDigest(resp.Trailer.Get(volumefiles.ReprDigest))
	if err != nil {
		return broken(errors.New("the answer has no digest"))
	}
	if found := volumefiles.Digest(sum.Sum(nil)); found != wanted {
		return &client.Error{Code: client.CodeDigestMismatch, Message: fmt.Sprintf(
			"the file that arrived has the digest %s and not %s, and is deleted: download it again", found, wanted)}
	}
	return nil
}

// local marks the errors of this machine's disk, to distinguish them from those of the connection.
type local struct{ io.Writer }

type localError struct{ error }

func (l *local) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	if err != nil {
		err = &localError{err}
	}
	return n, err
}
