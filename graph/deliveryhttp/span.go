package deliveryhttp

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/delivery"
)

// span is the requested piece of a part, from its first byte to its last, both counted from 0 and within the part.
type span struct {
	from, to int64
	ranged   bool // by Range, so that it is answered with 206
}

// length returns the number of bytes.
func (s span) length() int64 { return s.to - s.from + 1 }

// etag returns the entity tag of a part: its digest.
func etag(p *delivery.Part) string { return `"` + p.Digest + `"` }

// rangeOf returns the requested piece of a part. It is the whole part where the request names no range, or where
// If-Range names something else. An error is answered with 416: several ranges at once, a malformed one, and one that
// begins beyond the end.
func rangeOf(r *http.Request, p *delivery.Part) (span, error) {
	whole := span{to: p.Size - 1}
	asked := r.Header.Get("Range")
	if asked == "" {
		return whole, nil
	}
	if of := r.Header.Get("If-Range"); of != "" && of != etag(p) {
		return whole, nil
	}
	refused := fault.New(fault.InvalidArgument,
		"Range must be one range within the part's %d bytes, such as bytes=100- or bytes=100-199", p.Size)
	text, ok := strings.CutPrefix(asked, "bytes=")
	first, last, dashed := strings.Cut(text, "-")
	if !ok || !dashed || len(r.Header.Values("Range")) > 1 {
		return span{}, refused
	}
	out := span{ranged: true, to: p.Size - 1}
	if first == "" { // the last so many bytes
		tail, ok := digits(last)
		if !ok || tail == 0 || p.Size == 0 {
			return span{}, refused
		}
		out.from = max(0, p.Size-tail)
		return out, nil
	}
	from, ok := digits(first)
	if !ok || from >= p.Size {
		return span{}, refused
	}
	out.from = from
	if last != "" {
		to, ok := digits(last)
		if !ok || to < from {
			return span{}, refused
		}
		out.to = min(to, p.Size-1)
	}
	return out, nil
}

// digits parses a position. It reports false for one that does not fit, which lies beyond any end.
func digits(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil && text[0] != '+' // #nosec G115 -- 63 bits
}

// head writes the head of the answer for the span.
func (s span) head(w http.ResponseWriter, p *delivery.Part) {
	header := w.Header()
	header.Set("Content-Type", contentType(p.MediaType))
	header.Set("Content-Length", strconv.FormatInt(s.length(), 10))
	header.Set("Accept-Ranges", "bytes")
	header.Set("ETag", etag(p))
	header.Set("Docker-Content-Digest", p.Digest)
	if !s.ranged {
		w.WriteHeader(http.StatusOK)
		return
	}
	header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", s.from, s.to, p.Size))
	w.WriteHeader(http.StatusPartialContent)
}

// contentType returns the media type that a publisher chose where it fits into a header.
func contentType(mediaType string) string {
	if mediaType == "" || strings.ContainsFunc(mediaType, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "application/octet-stream"
	}
	return mediaType
}
