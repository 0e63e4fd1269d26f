package volumefiles

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxHeader bounds the header of a request on a stream, in bytes.
	maxHeader = 32 << 10
	// headerPatience is how long the platform may take to send it.
	headerPatience = 15 * time.Second
)

// Serve serves the one HTTP request of a stream, and returns when it is answered or the stream has ended.
func Serve(ctx context.Context, conn net.Conn, handler http.Handler) {
	ended := make(chan struct{})
	var once sync.Once
	served := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerPatience, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		BaseContext: func(net.Listener) context.Context {
			return ctx
		},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				once.Do(func() { close(ended) })
			}
		},
	}
	served.SetKeepAlivesEnabled(false)
	_ = served.Serve(&single{conn: conn, ended: ended})
	_ = served.Close()
}

// single is a listener with one connection; it ends with it.
type single struct {
	conn  net.Conn
	ended chan struct{}
}

// Accept implements net.Listener.
func (s *single) Accept() (net.Conn, error) {
	if conn := s.conn; conn != nil {
		s.conn = nil
		return conn, nil
	}
	<-s.ended
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (*single) Close() error { return nil }

// Addr implements net.Listener.
func (*single) Addr() net.Addr { return &net.UnixAddr{Name: "tunnel", Net: "unix"} }
