package web

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/gpuaas/app-platform/transport/compress"
)

// consolePolicy allows the console what it needs and no more: scripts and connections of its own origin only. The
// component library creates style elements with the nonce of the page; nothing else inline is allowed.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-" + noncePlace +
	"'; img-src 'self' data:; " +
	"font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors " +
	"'none'; " +
	"object-src 'none'"

// noncePlace marks, in a policy and in a page, where the nonce of the response is inserted.
const noncePlace = "CSP_NONCE"

// graphiqlPolicy also allows what GraphiQL's editor needs: inline styles, workers of the same origin and a font in a
// data URL. The page is served in development only.
const graphiqlPolicy = "default-src 'none'; script-src 'self'; worker-src 'self' blob:; style-src 'self' " +
	"'unsafe-inline'; " +
	"img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

const (
	// minCoded is the size in bytes below which a file is not worth compressing.
	minCoded = 1024
	// brotliLevel takes a tenth of a second for the frame's largest file; the best level two seconds for 7 % less.
	brotliLevel = 9
)

// notBuilt is the page that is served when the console was not built into the binary.
const notBuilt = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Console not built</title>
<body style="font-family:sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem;line-height:1.5">
<h1>The console is not built</h1><p>This binary was compiled without it. Run
<code>cd web &amp;&amp; npm ci &amp;&amp; npm run build</code>, then build the server again. The API is served at <code>/graphql</code>.</p></body></html>`

// Handler serves the console: its files by path, and index.html for every other path, so that the router in the
// page finds it. Only GET and HEAD are answered. A path below /assets/ that does not exist is 404, never the index.
func Handler() http.Handler { return newSite(built(), "index.html", consolePolicy) }

// GraphiQL serves the GraphiQL page at any path that it is mounted on. Its assets are served by Handler.
func GraphiQL() http.Handler { return newPage(built(), "graphiql.html", graphiqlPolicy) }

// site serves a tree of files, and an index for every path that is not a file.
type site struct {
	files  map[string]*file
	index  string
	policy string
}

// file is one file ready to be sent.
type file struct {
	name         string
	body         []byte
	etag         string
	mediaType    string
	gzip, brotli form
}

// form is a compressed file. The first request for it compresses it. It has no body where that saves nothing.
type form struct {
	once sync.Once
	body []byte
}

// newSite reads the tree once; its size is bounded by the binary that embeds it.
func newSite(tree fs.FS, index, policy string) *site {
	files := map[string]*file{}
	_ = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return nil //nolint:nilerr // an unreadable entry is not served
		}
		if body, err := fs.ReadFile(tree, name); err == nil {
			files[name] = newFile(name, body)
		}
		return nil
	})
	return &site{files: files, index: index, policy: policy}
}

// newPage returns a site that serves one page at every path.
func newPage(tree fs.FS, page, policy string) *site {
	body, err := fs.ReadFile(tree, page)
	if err != nil {
		return &site{files: map[string]*file{}, index: page, policy: policy}
	}
	return &site{files: map[string]*file{page: newFile(page, body)}, index: page, policy: policy}
}

// newFile returns a file with its media type and its strong entity tag.
func newFile(name string, body []byte) *file {
	sum := sha256.Sum256(body)
	return &file{
		name:      name,
		body:      body,
		etag:      `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
		mediaType: mediaType(name),
	}
}

// mediaType returns the media type by the name only, not by the tables of the machine: every machine serves the same.
func mediaType(name string) string {
	known := map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml", ".json": "application/json", ".ttf": "font/ttf", ".woff2": "font/woff2",
		".png": "image/png",
	}
	if found, ok := known[path.Ext(name)]; ok {
		return found
	}
	if found := mime.TypeByExtension(path.Ext(name)); found != "" {
		return found
	}
	return "application/octet-stream"
}

// ServeHTTP serves the file of the path, or the index.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	nonce := rand.Text()
	s.secure(w.Header(), nonce)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if found, ok := s.files[name]; ok && name != s.index {
		found.serve(w, r)
		return
	}
	if strings.HasPrefix(name, "assets/") {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	s.serveIndex(w, r, nonce)
}

// serveIndex serves the index, or the page that explains how to build the console. The index is small and contains the
// nonce of this response, so no client may cache it.
func (s *site) serveIndex(w http.ResponseWriter, r *http.Request, nonce string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if found, ok := s.files[s.index]; ok {
		page := bytes.ReplaceAll(found.body, []byte(noncePlace), []byte(nonce))
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(page)
		}
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(notBuilt))
}

// secure sets the headers of every response.
func (s *site) secure(h http.Header, nonce string) {
	h.Set("Content-Security-Policy", strings.ReplaceAll(s.policy, noncePlace, nonce))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
}

// serve sends the file, compressed where the client accepts it, or 304 when the client has it.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.mediaType)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(f.name, "assets/") { // its name contains a hash of its content
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, etag := f.body, f.etag
	coding := compress.Preferred(r.Header)
	if coded := f.coded(coding); coded != nil {
		body, etag = coded, strings.TrimSuffix(f.etag, `"`)+"-"+string(coding)+`"`
		h.Set("Content-Encoding", string(coding))
	}
	h.Set("ETag", etag)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(body))
}

// coded returns the file in a content coding, or nil where that saves nothing.
func (f *file) coded(coding compress.Encoding) []byte {
	switch coding {
	case compress.Gzip:
		return f.gzip.of(f, func(w io.Writer) (io.WriteCloser, error) {
			return gzip.NewWriterLevel(w, gzip.BestCompression)
		})
	case compress.Brotli:
		return f.brotli.of(f, func(w io.Writer) (io.WriteCloser, error) {
			return brotli.NewWriterLevel(w, brotliLevel), nil
		})
	default:
		return nil
	}
}

// of returns the file as an encoder makes it.
func (m *form) of(f *file, encoder func(io.Writer) (io.WriteCloser, error)) []byte {
	m.once.Do(func() {
		if len(f.body) < minCoded || strings.HasPrefix(f.mediaType, "font/woff2") ||
			strings.HasPrefix(f.mediaType, "image/png") {
			return
		}
		var out bytes.Buffer
		w, err := encoder(&out)
		if err != nil {
			return
		}
		if _, err := w.Write(f.body); err != nil || w.Close() != nil || out.Len() >= len(f.body) {
			return
		}
		m.body = out.Bytes()
	})
	return m.body
}
