package e2e_test

import (
	"io"
	"net"
	"net/http"
)

// delivery is what a receiver of webhooks was sent.
type delivery struct {
	header http.Header
	body   []byte
}

// receiver takes webhooks on this machine.
type receiver struct {
	host string
	got  chan delivery
}

// hooks is the receiver that the installation may send to.
var hooks *receiver

func startReceiver() (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{host: listener.Addr().String(), got: make(chan delivery, 1_000)}
	server := &http.Server{Handler: r}
	go func() { _ = server.Serve(listener) }()
	return r, nil
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	select {
	case r.got <- delivery{header: request.Header.Clone(), body: body}:
	default: // nobody looks any more
	}
}
