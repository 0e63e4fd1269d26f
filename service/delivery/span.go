package delivery

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// span is what of a part is asked for, in bytes: from the first on, to the last, both counted from 0 and within it.
type span struct {
	from, to int64
	ranged   bool // by Range, so that it is answered as a piece
}

// length is how many bytes it has.
func (s span) length() int64 { return s.to - s.from + 1 }

// etag tells a part by what it is.
func (p *part) etag() string { return `"` + p.digest + `"` }

// rangeOf reads which piece of a part is asked for; all of it when none is, or when it is of something else. A refusal
// is answered with 416: several ranges at once, one that is malformed, and one that begins beyond the end.
func rangeOf(r *http.Request, p *part) (span, error) {
	whole := span{to: p.size - 1}
	asked := r.Header.Get("Range")
	if asked == "" {
		return whole, nil
	}
	if of := r.Header.Get("If-Range"); of != "" && of != p.etag() {
		return whole, nil
	}
	refused := fault.New(fault.InvalidArgument, "Range must be one range within the part's %d bytes, such as bytes=100- or bytes=100-199", p.size)
	text, ok := strings.CutPrefix(asked, "bytes=")
	first, last, dashed := strings.Cut(text, "-")
	if !ok || !dashed || len(r.Header.Values("Range")) > 1 {
		return span{}, refused
	}
	out := span{ranged: true, to: p.size - 1}
	if first == "" { // the last so many bytes
		tail, ok := digits(last)
		if !ok || tail == 0 || p.size == 0 {
			return span{}, refused
		}
		out.from = max(0, p.size-tail)
		return out, nil
	}
	from, ok := digits(first)
	if !ok || from >= p.size {
		return span{}, refused
	}
	out.from = from
	if last != "" {
		to, ok := digits(last)
		if !ok || to < from {
			return span{}, refused
		}
		out.to = min(to, p.size-1)
	}
	return out, nil
}

// digits reads a position; more of them than fit are beyond any end.
func digits(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil && text[0] != '+' // #nosec G115 -- 63 bits
}

// head writes the head of an answer that gives the span.
func (s span) head(w http.ResponseWriter, p *part) {
	header := w.Header()
	header.Set("Content-Type", contentType(p.mediaType))
	header.Set("Content-Length", strconv.FormatInt(s.length(), 10))
	header.Set("Accept-Ranges", "bytes")
	header.Set("ETag", p.etag())
	header.Set("Docker-Content-Digest", p.digest)
	if !s.ranged {
		w.WriteHeader(http.StatusOK)
		return
	}
	header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", s.from, s.to, p.size))
	w.WriteHeader(http.StatusPartialContent)
}

// contentType is a media type that a publisher chose, as far as it can stand in a header.
func contentType(mediaType string) string {
	if mediaType == "" || strings.ContainsFunc(mediaType, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "application/octet-stream"
	}
	return mediaType
}
