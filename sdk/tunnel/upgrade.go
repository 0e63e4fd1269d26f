package tunnel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxRefusal bounds what is read of an answer that refuses, in bytes.
const maxRefusal = 16 << 10

// Dial requests an upgrade to Protocol at an http or https address, with token as the bearer. The connection stays
// after ctx ends. An error that the platform answered is a *Refusal.
func Dial(ctx context.Context, address, token string, transport http.RoundTripper) (io.ReadWriteCloser, error) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("tunnel: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	live, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	defer cancel()
	request = request.WithContext(live)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", Protocol)
	request.Header.Set("Authorization", "Bearer "+token)
	first := firstHTTP(transport)
	response, err := first.RoundTrip(request)
	if !stop() && err == nil {
		_ = response.Body.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("tunnel: %w", err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer end()
		defer closeIdle(first)
		defer func() { _ = response.Body.Close() }()
		return nil, refusalOf(response)
	}
	conn, ok := response.Body.(io.ReadWriteCloser)
	if !ok {
		end()
		return nil, errors.New("tunnel: the connection cannot be written to")
	}
	return &dialled{ReadWriteCloser: conn, end: end}, nil
}

// dialled ends its request when it is closed.
type dialled struct {
	io.ReadWriteCloser
	end func()
}

func (d *dialled) Close() error {
	defer d.end()
	return d.ReadWriteCloser.Close()
}

// firstHTTP is the transport without HTTP/2, which knows no upgrade of a connection. One that is not the standard
// library's is taken as it is.
func firstHTTP(transport http.RoundTripper) http.RoundTripper {
	if transport == nil {
		transport = http.DefaultTransport
	}
	known, ok := transport.(*http.Transport)
	if !ok {
		return transport
	}
	first := known.Clone()
	first.Protocols = new(http.Protocols)
	first.Protocols.SetHTTP1(true)
	first.ForceAttemptHTTP2, first.TLSNextProto = false, nil
	return first
}

// closeIdle closes what a transport for one connection has left open.
func closeIdle(transport http.RoundTripper) {
	if idle, ok := transport.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

// refusalOf reads the platform's envelope of an error.
func refusalOf(response *http.Response) error {
	var envelope struct {
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if json.Unmarshal(body, &envelope) == nil && len(envelope.Errors) > 0 {
		first := envelope.Errors[0]
		return &Refusal{Code: first.Extensions.Code, Message: first.Message}
	}
	return fmt.Errorf("tunnel: the platform answered %s", response.Status)
}

// Wanted reports whether r requests an upgrade to Protocol.
func Wanted(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), Protocol) &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// Accept takes over the connection of a request for the upgrade, and answers that the upgrade is granted. The caller
// closes the connection.
func Accept(w http.ResponseWriter) (net.Conn, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over the connection: %w", err)
	}
	_ = conn.SetDeadline(time.Time{})
	_, err = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + Protocol +
		"\r\n\r\n"))
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("grant the upgrade: %w", err)
	}
	return &accepted{Conn: conn, read: buffered.Reader}, nil
}

// accepted reads first what the server had read of the connection already.
type accepted struct {
	net.Conn
	read *bufio.Reader
}

func (a *accepted) Read(p []byte) (int, error) {
	if a.read != nil && a.read.Buffered() > 0 {
		return a.read.Read(p)
	}
	a.read = nil
	return a.Conn.Read(p)
}

// CloseWrite ends the writing alone, where the connection can.
func (a *accepted) CloseWrite() error {
	if half, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return a.Conn.Close()
}
