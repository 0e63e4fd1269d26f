package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
)

// guard lets requests out to the named hosts alone, in the scheme that the operator configures for each, and reads no
// more than MaxManifest of an answer that is not streamed.
type guard struct {
	inner *http.Transport
	reach Reach
	hosts []string // the source's own first
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if !slices.Contains(g.hosts, request.URL.Host) {
		return nil, fault.New(fault.DialRefused,
			"the source redirected the platform to %.100s, which the operator does not allow", request.URL.Host)
	}
	if scheme := g.reach.scheme(request.URL.Host); request.URL.Scheme != scheme {
		return nil, errors.New("the source is reached over " + scheme + " only")
	}
	response, err := g.inner.RoundTrip(request)
	if err != nil || request.Context().Value(streamed{}) != nil {
		return response, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, MaxManifest+1), response.Body}
	return response, nil
}

// CloseIdleConnections lets a client end its connections.
func (g *guard) CloseIdleConnections() { g.inner.CloseIdleConnections() }

// streamed marks the context of a request whose answer may have any length.
type streamed struct{}

// statusError is the status of an answer that is not an expected one.
type statusError int

// Error returns what the source answered.
func (e statusError) Error() string {
	switch int(e) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("the source refuses access (%d)", int(e))
	case http.StatusTooManyRequests:
		return "the source limits the rate of requests (429)"
	}
	return fmt.Sprintf("the source answered %d", int(e))
}

// Is makes 404 and 410 ErrNotFound.
func (e statusError) Is(target error) bool {
	return target == ErrNotFound && (int(e) == http.StatusNotFound || int(e) == http.StatusGone)
}

// unreachable distinguishes an error on the way to the source from one in its answer.
func unreachable(err error) bool {
	var network net.Error
	var asked *url.Error
	return errors.As(err, &asked) || errors.As(err, &network)
}

// ask sends a request and returns the answer if its status is expected. It gives up when nothing comes for as long as
// the session's patience, of the body too.
func (s *Session) ask(ctx context.Context, method, address string, header http.Header, expected ...int) (*http.Response,
	error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(s.patience, func() { cancel(errSilent) })
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		watch.Stop()
		cancel(nil)
		return nil, fmt.Errorf("call the source: %w", err)
	}
	request.Header = header
	response, err := s.client.Do(request)
	watch.Stop()
	if err != nil {
		defer cancel(nil)
		if refused, ok := fault.As(err); ok {
			return nil, refused
		}
		return nil, silentOr(ctx, err)
	}
	response.Body = &body{inner: response.Body, ctx: ctx, cancel: cancel, watch: watch, patience: s.patience}
	if !slices.Contains(expected, response.StatusCode) {
		_ = response.Body.Close()
		return nil, statusError(response.StatusCode)
	}
	return response, nil
}

// body is an answer's body that ends in an error when the source falls silent.
type body struct {
	inner    io.ReadCloser
	ctx      context.Context
	cancel   context.CancelCauseFunc
	watch    *time.Timer
	patience time.Duration
}

// Read reads on; the time between two reads does not count as the source's silence.
func (b *body) Read(into []byte) (int, error) {
	b.watch.Reset(b.patience)
	n, err := b.inner.Read(into)
	b.watch.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = silentOr(b.ctx, err)
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.watch.Stop()
	b.cancel(nil)
	return b.inner.Close()
}

func silentOr(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// Told returns the part of an error for the user that named the source: the source's answer, and nothing of addresses.
func Told(err error) string {
	var answered statusError
	switch {
	case errors.As(err, &answered):
		return answered.Error()
	case errors.Is(err, errSilent):
		return errSilent.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the source broke off in the middle"
	case unreachable(err):
		return "the source cannot be reached"
	}
	return "the source answered something that is not understood"
}
