package drills_test

import (
	"net"
	"net/http"
	"sync"
)

// outsider is a server on this machine that is not the platform's: a receiver of webhooks, or a source of files. What
// it answers is set by the drill.
type outsider struct {
	mu     sync.Mutex
	answer http.HandlerFunc
	host   string
}

// hooks receives webhooks, and files serves artifacts.
var hooks, files outsider

// start listens, and returns the address.
func (o *outsider) start() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	o.host = listener.Addr().String()
	server := &http.Server{Handler: o} // #nosec G112 -- of a test
	go func() { _ = server.Serve(listener) }()
	return o.host
}

// answers sets what it answers.
func (o *outsider) answers(with http.HandlerFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = with
}

// ServeHTTP implements http.Handler.
func (o *outsider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	answer := o.answer
	o.mu.Unlock()
	if answer != nil {
		answer(w, r)
	}
}
