package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// accepted are the manifests that are understood.
const accepted = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, " +
	"application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json"

// Ref is what the session was opened for.
func (s *Session) Ref() Ref { return s.ref }

// Close ends the session's connections.
func (s *Session) Close() { s.hangUp() }

// Resolve returns the digest that the reference is pinned by, or that its tag points to at this moment; empty for a
// file. ErrNotFound when the tag does not exist.
func (s *Session) Resolve(ctx context.Context) (string, error) {
	if s.ref.Tag == "" {
		return s.ref.Digest, nil
	}
	response, err := s.ask(ctx, http.MethodHead, s.base+"manifests/"+s.ref.Tag, header(accepted), http.StatusOK,
		http.StatusMethodNotAllowed)
	if err != nil {
		return "", err
	}
	_ = response.Body.Close()
	if told := response.Header.Get("Docker-Content-Digest"); response.StatusCode == http.StatusOK &&
		digest.Valid(told) {
		return told, nil
	}
	data, _, err := s.Manifest(ctx, s.ref.Tag) // a registry that does not say it: the bytes do
	if err != nil {
		return "", err
	}
	return digest.Of(data), nil
}

// Manifest returns a manifest's bytes as they are, at most MaxManifest, by its digest or tag. They are checked against
// nothing. ErrNotFound when it does not exist; a file has none.
func (s *Session) Manifest(ctx context.Context, reference string) (data []byte, mediaType string, err error) {
	if s.ref.File() {
		return nil, "", ErrNotFound
	}
	response, err := s.ask(ctx, http.MethodGet, s.base+"manifests/"+reference, header(accepted), http.StatusOK)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err = whole(response.Body, MaxManifest)
	return data, response.Header.Get("Content-Type"), err
}

// Size returns how long a part is, in bytes, as the source reports it without sending it; -1 when it does not report
// it. ErrNotFound when it has no such part.
func (s *Session) Size(ctx context.Context, digest string, role lifecycle.PartRole) (int64, error) {
	address := s.blob(digest)
	if role == lifecycle.PartManifest {
		address = s.base + "manifests/" + digest
	}
	response, err := s.ask(ctx, http.MethodHead, address, header(accepted+", */*"), http.StatusOK)
	if err != nil {
		return 0, err
	}
	return response.ContentLength, response.Body.Close()
}

// Blob streams what lies under a digest, or a file, from an offset in bytes on. size is the whole's, -1 when the source
// does not report it. The offset is requested by Range; from a source that knows none, what lies before it is read and
// dropped. The caller closes what it gets, and checks it against the digest.
func (s *Session) Blob(ctx context.Context, digest string, offset int64) (out io.ReadCloser, size int64, err error) {
	ctx = context.WithValue(ctx, streamed{}, true)
	out, size, err = s.from(ctx, digest, offset, offset > 0)
	if offset > 0 && errors.Is(err, statusError(http.StatusRequestedRangeNotSatisfiable)) { // some know no open range
		return s.from(ctx, digest, offset, false)
	}
	return out, size, err
}

// from requests a blob from an offset on, by Range or without.
func (s *Session) from(ctx context.Context, digest string, offset int64, ranged bool) (io.ReadCloser, int64, error) {
	asked := header("*/*")
	if ranged {
		asked.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	response, err := s.ask(ctx, http.MethodGet, s.blob(digest), asked, http.StatusOK, http.StatusPartialContent,
		http.StatusRequestedRangeNotSatisfiable)
	if err != nil {
		return nil, 0, err
	}
	size, err := position(response, offset)
	if err != nil {
		_ = response.Body.Close()
		return nil, 0, err
	}
	if response.StatusCode == http.StatusRequestedRangeNotSatisfiable { // there is nothing beyond the offset
		_ = response.Body.Close()
		return http.NoBody, size, nil
	}
	return response.Body, size, nil
}

// position makes the body begin at the offset, and returns the whole's size.
func position(response *http.Response, offset int64) (size int64, err error) {
	said := response.Header.Get("Content-Range")
	switch response.StatusCode {
	case http.StatusPartialContent:
		var from, to int64
		span, total, ok := strings.Cut(strings.TrimPrefix(said, "bytes "), "/")
		if _, err := fmt.Sscanf(span, "%d-%d", &from, &to); err != nil || !ok || from != offset || offset == 0 {
			return 0, errors.New("the source returned another range than was requested")
		}
		return number(total), nil
	case http.StatusRequestedRangeNotSatisfiable:
		if size = number(strings.TrimPrefix(said, "bytes */")); offset == 0 || size != offset {
			return 0, statusError(response.StatusCode)
		}
		return size, nil
	}
	size = response.ContentLength
	if offset == 0 {
		return size, nil
	}
	if size >= 0 && size < offset {
		return 0, errors.New("the source has fewer bytes than were read before")
	}
	if _, err := io.CopyN(io.Discard, response.Body, offset); err != nil {
		return 0, fmt.Errorf("read up to where it broke off: %w", err)
	}
	return size, nil
}

// number reads a size; -1 when the text is not one.
func number(text string) int64 {
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 0 {
		return -1
	}
	return size
}

// blob returns the address of a digest in the repository, or of the file.
func (s *Session) blob(digest string) string {
	if s.ref.File() {
		return s.base
	}
	return s.base + "blobs/" + digest
}

// Beside returns the small file whose address is the file's with a suffix, at most limit bytes. ErrNotFound when it
// does not exist, as for what lies in a registry.
func (s *Session) Beside(ctx context.Context, suffix string, limit int64) ([]byte, error) {
	if !s.ref.File() {
		return nil, ErrNotFound
	}
	response, err := s.ask(ctx, http.MethodGet, s.base+suffix, header("*/*"), http.StatusOK)
	if s.kind == lifecycle.SourceS3 && errors.Is(err, statusError(http.StatusForbidden)) {
		return nil, ErrNotFound // what a store answers of an absent object to those who may not list
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return whole(response.Body, min(limit, MaxManifest))
}

// whole reads a bounded answer.
func whole(from io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("the answer is larger than %d bytes", limit)
	}
	return data, nil
}

func header(accept string) http.Header {
	return http.Header{"Accept": {accept}, "Accept-Encoding": {"identity"}}
}
