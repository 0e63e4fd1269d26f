package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/endpoint"
)

const (
	// tryLife is how long the result of a try is reused: a caller that tries again sooner gets the same.
	tryLife = 10 * time.Second
	// maxTries bounds the tries that are remembered.
	maxTries = 10_000
	// maxTryHeaders bounds the header of an app's answer, in bytes.
	maxTryHeaders = 64 << 10
)

// tryKey is what was tried.
type tryKey struct {
	member   ids.ID
	endpoint string
}

// try is the result of a try.
type try struct {
	at  time.Time
	err error
}

// Try checks that a member answers at an endpoint: at its port, or by GET of the path that the manifest names,
// which must answer 200 to 399. The app's answer is not passed on. Faults: those of Dial, UNAVAILABLE.
func (r *Relay) Try(ctx context.Context, to *endpoint.Target) error {
	at := tryKey{to.MemberID, to.Endpoint.Name}
	r.mu.Lock()
	known, ok := r.tries[at]
	r.mu.Unlock()
	if ok && time.Since(known.at) < tryLife {
		return known.err
	}
	err := r.tryOnce(ctx, to)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries == nil || len(r.tries) >= maxTries {
		r.tries = make(map[tryKey]try)
	}
	r.tries[at] = try{time.Now(), err}
	return err
}

// tryOnce tries without the remembered results.
func (r *Relay) tryOnce(ctx context.Context, to *endpoint.Target) error {
	conn, err := r.Dial(ctx, to)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if !to.Endpoint.Web() || to.Endpoint.HealthPath == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.Endpoint.Protocol+"://localhost"+
		to.Endpoint.HealthPath, nil)
	if err != nil {
		return fault.New(fault.Unavailable, "its health path cannot be requested")
	}
	web := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: maxTryHeaders,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		// The tunnel ends in the member itself; an app's own certificate is for no name that we could verify.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // #nosec G402
	defer web.CloseIdleConnections()
	response, err := web.RoundTrip(request)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.Unavailable, "it did not answer in time")
	}
	if err != nil {
		return fault.New(fault.Unavailable, "it breaks off, or does not answer with HTTP")
	}
	_ = response.Body.Close()
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return fault.New(fault.Unavailable, "its health path answers %d", response.StatusCode)
	}
	return nil
}
