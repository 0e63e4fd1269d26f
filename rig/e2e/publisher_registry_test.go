package e2e_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
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
	faults map[string]fault // by repository
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
	if user, password, _ := r.BasicAuth(); user != registryUser || password != registryPassword {
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
