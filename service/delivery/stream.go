package delivery

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
)

const (
	// bufferSize is all that is held of a part at a time, in bytes.
	bufferSize = 256 << 10
	// nodePatience is how long a node may take no bytes before it is given up.
	nodePatience = 30 * time.Second
)

// buffers are reused: at most as many are in use as there are deliveries at once.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// body is the bytes of a part from an offset on, as its source gives them; done gives back what they hold. A manifest
// is held against its digest before any of it is passed on. The rest is held against it on the node, which must do so
// anyway; here only its size is.
func (s *Service) body(ctx context.Context, session *fetch.Session, p *part, offset int64) (body io.Reader, done func(), err error) {
	if p.role != lifecycle.PartManifest {
		stream, size, err := session.Blob(ctx, p.digest, offset)
		if err != nil {
			return nil, nil, s.sourceFailed(ctx, err)
		}
		if size >= 0 && size != p.size {
			_ = stream.Close()
			return nil, nil, fault.New(fault.DigestMismatch, "the source has %d bytes under this digest where there were %d", size, p.size)
		}
		return stream, func() { _ = stream.Close() }, nil
	}
	leave, err := s.held.enter()
	if err != nil {
		return nil, nil, err
	}
	data, _, err := session.Manifest(ctx, p.digest)
	if err != nil {
		leave()
		return nil, nil, s.sourceFailed(ctx, err)
	}
	if digest.Of(data) != p.digest || int64(len(data)) != p.size {
		leave()
		return nil, nil, fault.New(fault.DigestMismatch, "the source has another manifest under this digest")
	}
	return bytes.NewReader(data[offset:]), leave, nil
}

// stream answers with the span. When the source breaks off, or the node takes nothing any more, the connection is cut.
func (s *Service) stream(ctx context.Context, w http.ResponseWriter, p *part, wanted span, from io.Reader) {
	stats := s.Stats
	if stats == nil {
		stats = &Stats{}
	}
	stats.UnderWay.Add(1)
	defer stats.UnderWay.Add(-1)
	control := http.NewResponseController(w)
	// The server's deadlines are for answers that are short; here each buffer has its own.
	_ = control.SetReadDeadline(time.Time{})
	wanted.head(w, p)
	err := pass(w, control, io.LimitReader(from, wanted.length()), wanted.length(), &stats.Bytes)
	if err == nil {
		stats.Parts.Add(1)
		return
	}
	stats.Broken.Add(1)
	if ctx.Err() == nil {
		s.note(ctx, slog.LevelWarn, "the delivery of a part of an artifact broke off", err)
	}
	panic(http.ErrAbortHandler)
}

// counter takes how much was passed on.
type counter interface{ Add(n int64) int64 }

// pass copies exactly so many bytes.
func pass(w io.Writer, control *http.ResponseController, from io.Reader, length int64, passed counter) error {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	var renewed time.Time
	for length > 0 {
		n, err := from.Read(buffer[:])
		if n > 0 {
			if now := time.Now(); now.Sub(renewed) > time.Second {
				_ = control.SetWriteDeadline(now.Add(nodePatience))
				renewed = now
			}
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			passed.Add(int64(n))
			length -= int64(n)
		}
		if errors.Is(err, io.EOF) && length > 0 {
			return io.ErrUnexpectedEOF
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}
