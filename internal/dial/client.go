package dial

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Bounds of a client.
const (
	maxAnswer   = 4 << 20 // bytes of a body
	maxHeader   = 64 << 10
	idlePerHost = 32
	idleAtAll   = 256
	idleTimeout = 90 * time.Second
)

// NewClient is an HTTP client that dials as To does, for at most timeout a request, body included.
// It follows no redirect: the answer that names another place is the answer. It reads at most 4 MiB
// of a body; what is longer ends in an error. Zero means no timeout but the request's own.
func NewClient(policy Policy, public bool, timeout time.Duration) *http.Client {
	return client(To(policy, public), timeout)
}

// NewTLSClient is NewClient with the configuration's TLS: the authorities that it trusts and the certificate it shows.
func NewTLSClient(policy Policy, public bool, timeout time.Duration, config *tls.Config) *http.Client {
	made := transport(To(policy, public))
	made.TLSClientConfig = config
	return clientOf(made, timeout)
}

func client(connect Func, timeout time.Duration) *http.Client {
	return clientOf(transport(connect), timeout)
}

func clientOf(made *http.Transport, timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		Transport:     &bounded{inner: made},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport has no Proxy, which means none, whatever the environment says.
func transport(connect Func) *http.Transport {
	return &http.Transport{
		DialContext: connect, TLSHandshakeTimeout: connectTimeout, MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns: idleAtAll, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
	}
}

// bounded gives out answers whose bodies end in an error at their bound.
type bounded struct{ inner *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.inner.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.ContentLength > maxAnswer {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	response.Body = &body{ReadCloser: response.Body, left: maxAnswer}
	return response, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (b *bounded) CloseIdleConnections() { b.inner.CloseIdleConnections() }

// body reads no more than its bound.
type body struct {
	io.ReadCloser
	left int64
}

// Read fails where the body goes on beyond the bound.
func (b *body) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return n, err
}
