package delivery

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
)

// Body returns the bytes of a part from an offset on, as its source gives them. done releases what they use.
//
// Faults: DIAL_REFUSED, ARTIFACT_UNAVAILABLE and UNAVAILABLE for a source that does not give what it should;
// DIGEST_MISMATCH when it gives something else.
func (s *Service) Body(ctx context.Context, p *Part, offset int64) (body io.Reader, done func(), err error) {
	credential, err := s.credential(ctx, &p.from)
	if err != nil {
		return nil, nil, err
	}
	session, err := s.Reach.Open(ctx, p.from.Kind, p.from.Region, p.ref, credential)
	if err != nil {
		return nil, nil, s.sourceFailed(ctx, err)
	}
	body, release, err := s.body(ctx, session, p, offset)
	if err != nil {
		session.Close()
		return nil, nil, err
	}
	return body, func() { release(); session.Close() }, nil
}

// body returns the bytes of a part from a session with its source. A manifest is checked against its digest before any
// of it is passed on. Of the rest only the size is checked: the node must check the digest anyway.
func (s *Service) body(
	ctx context.Context, session *fetch.Session, p *Part, offset int64,
) (body io.Reader, done func(), err error) {
	if p.role == lifecycle.PartManifest {
		return s.manifest(ctx, session, p, offset)
	}
	stream, size, err := session.Blob(ctx, p.Digest, offset)
	if err != nil {
		return nil, nil, s.sourceFailed(ctx, err)
	}
	if size >= 0 && size != p.Size {
		_ = stream.Close()
		return nil, nil, fault.New(fault.DigestMismatch,
			"the source has %d bytes under this digest, and %d are expected", size, p.Size)
	}
	return stream, func() { _ = stream.Close() }, nil
}

// manifest reads a manifest whole, within the bound of manifests in memory.
func (s *Service) manifest(
	ctx context.Context, session *fetch.Session, p *Part, offset int64,
) (body io.Reader, done func(), err error) {
	leave, err := s.manifests.enter()
	if err != nil {
		return nil, nil, err
	}
	data, _, err := session.Manifest(ctx, p.Digest)
	if err != nil {
		leave()
		return nil, nil, s.sourceFailed(ctx, err)
	}
	if digest.Of(data) != p.Digest || int64(len(data)) != p.Size {
		leave()
		return nil, nil, fault.New(fault.DigestMismatch, "the source has another manifest under this digest")
	}
	return bytes.NewReader(data[offset:]), leave, nil
}

// sourceFailed returns what a node receives where a source does not give what it should. Which source it is, and what
// it answered, is for the log.
func (s *Service) sourceFailed(ctx context.Context, err error) error {
	if fault.Is(err, fault.DialRefused) {
		s.warn(ctx, "the operator does not allow an artifact's source", err)
		return fault.New(fault.DialRefused, "the operator does not allow the platform to reach the artifact's source")
	}
	if errors.Is(err, fetch.ErrNotFound) {
		return fault.New(fault.ArtifactUnavailable, "the artifact's source does not have this part any more").
			Because(err)
	}
	s.warn(ctx, "an artifact's source does not answer as it should", err)
	return fault.New(fault.Unavailable, "the artifact's source is not available now; try again").Because(err)
}

// warn logs what must not be answered.
func (s *Service) warn(ctx context.Context, message string, err error) {
	if s.Log != nil {
		s.Log.Log(ctx, slog.LevelWarn, message, "error", err, "correlation_id", authz.Request(ctx).CorrelationID)
	}
}
