package compress

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
)

// MinBytes is the size from which compressing an answer pays: a shorter one fills one packet either way.
const MinBytes = 1024

// keptBytes bounds the buffer that an idle encoder keeps.
const keptBytes = 256 << 10

// Levels are the cheapest of each coding that still find JSON's repeated names; docs/benchmarks.md has their figures.
const (
	gzipLevel   = gzip.BestSpeed
	brotliLevel = 1
)

// vary is shared by all answers. Its capacity is its length, so that an append makes a copy.
var vary = []string{"Accept-Encoding"}

// A Pool holds a fixed number of encoders of each coding, created when first needed. It is safe for concurrent use.
type Pool struct{ gzip, brotli chan *encoder }

// encoder compresses one body at a time.
type encoder struct {
	writer interface {
		io.WriteCloser
		Reset(to io.Writer)
	}
	out bytes.Buffer
}

// NewPool returns a pool that compresses at most n answers of each coding at once; compressing is work for processors,
// so more than there are gain nothing.
func NewPool(n int) *Pool {
	p := &Pool{gzip: make(chan *encoder, n), brotli: make(chan *encoder, n)}
	for range n {
		p.gzip <- nil
		p.brotli <- nil
	}
	return p
}

// Answer sends a whole answer, compressed where the request prefers that and it pays. Headers other than those of the
// coding and the length are the caller's.
func (p *Pool) Answer(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	if len(body) < MinBytes {
		Plain(w, status, body)
		return
	}
	w.Header()["Vary"] = vary
	if coding := Preferred(r.Header); coding != Identity {
		if short, ok := p.Encode(coding, body); ok {
			w.Header().Set("Content-Encoding", string(coding))
			body = short
		}
	}
	Plain(w, status, body)
}

// Plain sends a whole answer as it is.
func Plain(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; nobody is left to tell
}

// Encode returns the body in a coding, as the caller's own copy; false when it is not shorter, or no encoder is idle.
func (p *Pool) Encode(coding Encoding, body []byte) ([]byte, bool) {
	idle, fresh := p.gzip, newGzip
	if coding == Brotli {
		idle, fresh = p.brotli, newBrotli
	}
	select {
	case e := <-idle:
		if e == nil {
			e = fresh()
		}
		defer func() { idle <- e }()
		return e.encode(body)
	default:
		return nil, false
	}
}

func (e *encoder) encode(body []byte) ([]byte, bool) {
	e.out.Reset()
	e.writer.Reset(&e.out)
	_, err := e.writer.Write(body)
	if closed := e.writer.Close(); err != nil || closed != nil || e.out.Len() >= len(body) {
		return nil, false
	}
	short := bytes.Clone(e.out.Bytes())
	if e.out.Cap() > keptBytes {
		e.out = bytes.Buffer{}
	}
	return short, true
}

func newGzip() *encoder {
	writer, _ := gzip.NewWriterLevel(nil, gzipLevel) // the level is a good one
	return &encoder{writer: writer}
}

func newBrotli() *encoder { return &encoder{writer: brotli.NewWriterV2(nil, brotliLevel)} }
