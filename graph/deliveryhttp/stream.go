package deliveryhttp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/service/delivery"
)

const (
	// bufferSize is how much of a part is in memory at a time, in bytes.
	bufferSize = 256 << 10
	// nodePatience is how long a node may accept no bytes before its connection is cut.
	nodePatience = 30 * time.Second
)

// buffers are reused: at most as many are in use as there are deliveries at once.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// stream answers with the span. The connection is cut when the source breaks off, or when the node accepts no more.
func (h *Handler) stream(ctx context.Context, w http.ResponseWriter, p *delivery.Part, wanted span, from io.Reader) {
	stats := h.Stats
	if stats == nil {
		stats = &Stats{}
	}
	stats.UnderWay.Add(1)
	defer stats.UnderWay.Add(-1)
	control := http.NewResponseController(w)
	// The server's deadlines are for short answers; here each buffer has its own.
	_ = control.SetReadDeadline(time.Time{})
	wanted.head(w, p)
	err := pass(w, control, io.LimitReader(from, wanted.length()), wanted.length(), &stats.Bytes)
	if err == nil {
		stats.Parts.Add(1)
		return
	}
	stats.Broken.Add(1)
	if ctx.Err() == nil {
		h.note(ctx, slog.LevelWarn, "the delivery of a part of an artifact broke off", err)
	}
	panic(http.ErrAbortHandler)
}

// counter counts the bytes that were passed on.
type counter interface{ Add(n int64) int64 }

// pass copies exactly length bytes.
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
