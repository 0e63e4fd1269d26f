// Package adapterclient is the platform's side of the adapter contract: signed requests to addresses
// that the operator's dial policy allows, with bounded bodies and no redirects. It knows the wire
// types and nothing of the platform's rows.
package adapterclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Bounds of a call.
const (
	callTimeout  = 15 * time.Second // one answer, unless the call says otherwise
	actTimeout   = 30 * time.Second // an action's answer
	feedMargin   = 10 * time.Second // beyond what the feed was asked to wait
	maxErrorText = 500
)

// Target is an adapter to call: its registered name, which is the audience of every request, its
// base address, and the PEM certificates that alone vouch for it by https, empty for none. The address of a
// Sandbox was chosen by a tenant.
type Target struct {
	Name, URL, Authority string
	Sandbox              bool
}

// Trace ties a call to what caused it.
type Trace struct {
	CorrelationID, Traceparent string
	// About are the fields of the call's line that say whose it is and what it is about. They are not sent.
	About []slog.Attr
}

// Client calls adapters. It is safe for concurrent use.
type Client struct {
	// Log takes a line for each call; nil for none. It is set before the first call.
	Log *slog.Logger
	// Metrics counts calls; nil for none. It is set before the first call.
	Metrics *metrics.Set

	clients *clients
	keys    *token.Keyring

	mu      sync.Mutex
	signer  *adapter.Signer
	signing string // id of the signer's key
}

// New returns a client that signs with the ring's key and dials what the policy allows, and nothing
// else: an adapter has no right to the public Internet either. Off this machine it calls adapters of a pinned authority
// alone.
func New(keys *token.Keyring, policy dial.Policy) *Client { return NewTrusting(keys, policy, Trust{}) }

// NewTrusting is New for an operator that shows a certificate, or lets adapters without TLS go on.
func NewTrusting(keys *token.Keyring, policy dial.Policy, trust Trust) *Client {
	return &Client{keys: keys, clients: newClients(policy, trust)}
}

// Close gives idle connections back.
func (c *Client) Close() { c.clients.close() }

// Kind is the kind of failure that a call met.
type Kind string

// The kinds of failure.
const (
	// Unavailable: no answer, or one that says to try again.
	Unavailable Kind = "unavailable"
	// Rejected: the adapter refused, for a reason that stays (422).
	Rejected Kind = "rejected"
	// Conflict: another specification or a newer attempt is known there (409).
	Conflict Kind = "conflict"
	// Missing: the adapter does not know what was requested (404).
	Missing Kind = "missing"
	// Unsupported: the adapter does not plan (404, 405 or 501 of a plan).
	Unsupported Kind = "unsupported"
	// Invalid: the answer is outside of the contract.
	Invalid Kind = "invalid"
	// Forbidden: the address is outside of the dial policy.
	Forbidden Kind = "forbidden"
	// Insecure: the adapter is off this machine, and nothing proves that it is the one that is meant.
	Insecure Kind = "insecure"
)

// Error is a call that did not succeed.
type Error struct {
	Kind   Kind
	Target Target
	Status int               // 0 without an answer
	Body   adapter.ErrorBody // as far as there was one
	Err    error             // for the log
}

// Error is for the log.
func (e *Error) Error() string {
	text := fmt.Sprintf("adapter %s: %s", e.Target.Name, e.Kind)
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Body.Code != "" {
		text += ": " + e.Body.Error()
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// As finds the Error in err's chain.
func As(err error) (*Error, bool) {
	var found *Error
	ok := errors.As(err, &found)
	return found, ok
}

// call is one request and where its answer goes.
type call struct {
	name          string // of its span and its line in the log
	method, path  string
	body          any // nil for none
	platformToken string
	trace         Trace
	timeout       time.Duration
}

// do sends a call and decodes an answer of 200 or 202 into out. It is a span of whatever is traced in ctx.
func (c *Client) do(ctx context.Context, target Target, one call, out any) (status int, err error) {
	ctx, span := telemetry.Start(ctx, "adapter "+one.name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("adapter", target.Name)))
	began := time.Now()
	status, err = c.exchange(ctx, target, one, out)
	telemetry.End(span, outcome(err))
	took := time.Since(began)
	c.Metrics.Call(ctx, one.name, outcome(err), took)
	if refused, ok := As(err); ok && refused.Body.Code == adapter.CodeStaleFence {
		c.Metrics.Fenced(metrics.FenceDispatch)
	}
	c.record(ctx, target, one, status, took, err)
	return status, err
}

// outcome names what a call met; "" when it succeeded.
func outcome(err error) string {
	if failed, ok := As(err); ok {
		return string(failed.Kind)
	}
	if err != nil {
		return string(Unavailable)
	}
	return ""
}

// record writes a call's line. What is read again and again is for debugging. Neither addresses nor answers are in it.
func (c *Client) record(ctx context.Context, target Target, one call, status int, took time.Duration, err error) {
	level := slog.LevelInfo
	if one.method == http.MethodGet {
		level = slog.LevelDebug
	}
	if c.Log == nil || !c.Log.Enabled(ctx, level) {
		return
	}
	c.Log.LogAttrs(ctx, level, "adapter call", append(slices.Clip(one.trace.About),
		slog.String("correlation_id", one.trace.CorrelationID), telemetry.TraceID(ctx),
		slog.String("adapter", target.Name),
		slog.String("call", one.name), slog.Int("status", status), slog.String("code", outcome(err)),
		telemetry.Milliseconds(took))...)
}

// exchange is do without the span, the metrics and the line in the log.
func (c *Client) exchange(ctx context.Context, target Target, one call, out any) (status int, err error) {
	timeout := one.timeout
	if timeout == 0 {
		timeout = callTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := c.request(ctx, target, one)
	if err != nil {
		return 0, &Error{Kind: Invalid, Target: target, Err: err}
	}
	by, err := c.clients.of(target, request.URL)
	if err != nil {
		return 0, err
	}
	response, err := by.Do(request)
	if err != nil {
		return 0, unreachable(target, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, adapter.MaxBody+1))
	if err != nil {
		return 0, unreachable(target, err)
	}
	if len(body) > adapter.MaxBody {
		return 0, &Error{Kind: Invalid, Target: target, Status: response.StatusCode,
			Err: fmt.Errorf("the answer is longer than %d bytes", adapter.MaxBody)}
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusAccepted {
		return response.StatusCode, refused(target, response.StatusCode, body)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return response.StatusCode, &Error{Kind: Invalid, Target: target, Status: response.StatusCode, Err: err}
	}
	return response.StatusCode, nil
}

func (c *Client) request(ctx context.Context, target Target, one call) (*http.Request, error) {
	base, err := url.Parse(target.URL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") || base.User != nil {
		return nil, errors.New("the adapter's address is not an http or https URL")
	}
	var body []byte
	if one.body != nil {
		if body, err = json.Marshal(one.body); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		if len(body) > adapter.MaxBody {
			return nil, fmt.Errorf("the request is longer than %d bytes", adapter.MaxBody)
		}
	}
	request, err := http.NewRequestWithContext(ctx, one.method, strings.TrimSuffix(target.URL, "/")+one.path,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if one.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	setUnlessEmpty(request.Header, adapter.HeaderCorrelation, one.trace.CorrelationID)
	setUnlessEmpty(request.Header, adapter.HeaderTraceparent, one.trace.Traceparent)
	telemetry.Carry(ctx, request.Header)
	setUnlessEmpty(request.Header, adapter.HeaderPlatformToken, one.platformToken)
	return request, c.sign(request, target, body)
}

func (c *Client) sign(request *http.Request, target Target, body []byte) error {
	signer, err := c.signerNow()
	if err != nil {
		return err
	}
	return signer.SignRequest(request, target.Name, body)
}

// signerNow returns the signer of the ring's first key, which is created once for each key.
func (c *Client) signerNow() (*adapter.Signer, error) {
	key, id := c.keys.SigningKey()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signer != nil && c.signing == id {
		return c.signer, nil
	}
	signer, err := adapter.NewSigner(c.keys.Issuer(), id, key)
	if err == nil {
		c.signer, c.signing = signer, id
	}
	return signer, err
}

func setUnlessEmpty(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}

func unreachable(target Target, err error) *Error {
	var refused *dial.Refused
	if errors.As(err, &refused) {
		return &Error{Kind: Forbidden, Target: target, Err: err}
	}
	var unknown *tls.CertificateVerificationError
	if errors.As(err, &unknown) {
		return &Error{Kind: Insecure, Target: target,
			Err: fmt.Errorf("its certificate is not one that the pinned authority vouches for: %w", unknown.Err)}
	}
	return &Error{Kind: Unavailable, Target: target, Err: err}
}

// refused reads an answer that is not a success.
func refused(target Target, status int, body []byte) *Error {
	e := &Error{Kind: Invalid, Target: target, Status: status}
	if json.Unmarshal(body, &e.Body) != nil {
		e.Body = adapter.ErrorBody{}
	}
	switch {
	case status == http.StatusUnprocessableEntity:
		e.Kind = Rejected
	case status == http.StatusConflict:
		e.Kind = Conflict
	case status == http.StatusNotFound:
		e.Kind = Missing
	case status >= 500 || status == http.StatusTooManyRequests || e.Body.Retryable:
		e.Kind = Unavailable
	}
	return e
}

func clip(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + "…"
}
