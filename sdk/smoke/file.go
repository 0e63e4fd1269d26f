package smoke

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
)

// maxFile bounds a file that is fetched.
const maxFile = 1 << 40

// file fetches a file by https and checks its bytes.
func (r *Report) file(ctx context.Context, subject Subject) {
	digest, size, err := fetched(ctx, subject.Ref)
	if !r.note("fetched", err, fmt.Sprintf("%d bytes", size)) {
		return
	}
	switch {
	case digest != subject.Digest:
		err = fmt.Errorf("its bytes have the digest %s", digest)
	case subject.Bytes > 0 && size != subject.Bytes:
		err = fmt.Errorf("it has %d bytes, but %d are expected", size, subject.Bytes)
	}
	r.note("digest", err, subject.Digest)
}

func fetched(ctx context.Context, address string) (digest string, size int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", 0, fmt.Errorf("the server answers %s", response.Status)
	}
	sum := sha256.New()
	size, err = io.Copy(sum, io.LimitReader(response.Body, maxFile))
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), size, err
}
