package e2e_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

// publishers is a registry outside of the installation, as publishers have one: with a password, and with faults when a
// test wants them.
type publishers struct {
	host   string
	inner  http.Handler
	mu     sync.Mutex
	faults map[string]fault  // by repository
	public map[string]string // folders of what everybody may read, by its name
}

// fault answers a request in the registry's place, or does not.
type fault func(inner http.Handler, w http.ResponseWriter, r *http.Request) bool

// outside is the registry that all tests of publishing use, each under a repository of its own.
var outside *publishers

const registryUser, registryPassword = "ci", "a password of the registry"

func startPublishers() (*publishers, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &publishers{host: listener.Addr().String(), faults: map[string]fault{},
		inner: registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))}
	server := &http.Server{Handler: p}
	go func() { _ = server.Serve(listener) }()
	return p, nil
}

// breaks gives a repository a fault; nil heals it.
func (p *publishers) breaks(repository string, how fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults[repository] = how
}

// ServeHTTP implements http.Handler.
func (p *publishers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.servesFile(w, r) {
		return
	}
	user, password, _ := r.BasicAuth()
	if (user != registryUser || password != registryPassword) && !p.everybodyReads(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="publishers"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	var how fault
	for repository, one := range p.faults {
		if strings.HasPrefix(r.URL.Path, "/v2/"+repository+"/") {
			how = one
		}
	}
	p.mu.Unlock()
	if how == nil || !how(p.inner, w, r) {
		p.inner.ServeHTTP(w, r)
	}
}

// opens lets everybody read the repositories below a name, and the files of a folder below /files/NAME/.
func (p *publishers) opens(name, folder string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.public == nil {
		p.public = make(map[string]string)
	}
	p.public[name] = folder
}

// everybodyReads reports whether a request reads what is open.
func (p *publishers) everybodyReads(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	parts := strings.Split(r.URL.Path, "/")
	_, open := p.public[parts[min(2, len(parts)-1)]]
	return open && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// servesFile answers a request for a file of an open folder.
func (p *publishers) servesFile(w http.ResponseWriter, r *http.Request) bool {
	below, isFile := strings.CutPrefix(r.URL.Path, "/files/")
	if !isFile {
		return false
	}
	name, file, _ := strings.Cut(below, "/")
	p.mu.Lock()
	folder := p.public[name]
	p.mu.Unlock()
	if folder == "" {
		http.NotFound(w, r)
		return true
	}
	http.ServeFileFS(w, r, os.DirFS(folder), file)
	return true
}

// isBlob says whether a request reads a blob.
func isBlob(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:")
}

// tampers answers blobs with one byte changed.
func tampers(inner http.Handler, w http.ResponseWriter, r *http.Request) bool {
	if !isBlob(r) {
		return false
	}
	answer := httptest.NewRecorder()
	inner.ServeHTTP(answer, r)
	body := answer.Body.Bytes()
	body[len(body)/2] ^= 1
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
	return true
}

// goesAway sends half of a blob, and nothing more to anybody after that.
func goesAway(inner http.Handler, w http.ResponseWriter, r *http.Request) bool {
	if isBlob(r) {
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
	}
	if !isBlob(r) && !strings.Contains(r.URL.Path, "/blobs/") {
		return false
	}
	panic(http.ErrAbortHandler) // the connection breaks
}
