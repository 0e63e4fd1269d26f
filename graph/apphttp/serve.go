package apphttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/transport"
)

// granted is a request that passes, in its context.
type granted struct {
	*grant
	caller string // the token of CallerHeader
}

type grantedKey struct{}

// errToPlatform is why an answer of an app is not passed on.
var errToPlatform = errors.New("the app redirects to the platform itself")

// serve passes a request on to the app.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name string, instance ids.ID) {
	found, leave, err := h.enter(r, name, instance)
	if err != nil {
		h.refuse(w, r, err, instance)
		return
	}
	defer leave()
	caller, err := h.caller(found, name)
	if err != nil {
		h.refuse(w, r, err, instance)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	stop := context.AfterFunc(found.ctx, func() { cancel(context.Cause(found.ctx)) })
	defer stop()
	control := http.NewResponseController(w) // the server's deadlines are for short answers
	_, _ = control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})
	ctx = context.WithValue(ctx, grantedKey{}, &granted{grant: found, caller: caller})
	h.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// caller signs who calls, for the app.
func (h *Handler) caller(found *grant, name string) (string, error) {
	to := found.target
	return h.Keys.SignCaller(token.Caller{
		Instance: to.Instance.ID, Subject: to.Actor.ID, Kind: string(to.Actor.Kind), Name: to.Actor.Name,
		Tenant: to.Instance.TenantID, Project: to.Instance.ProjectID, Endpoint: name, Permission: to.Key.String(),
	}, time.Now())
}

// newProxy makes what passes requests on.
func (h *Handler) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(out *httputil.ProxyRequest) {
			to := out.In.Context().Value(grantedKey{}).(*granted)
			out.Out.URL.Scheme = to.target.Endpoint.Protocol
			out.Out.URL.Host = fmt.Sprintf("%s:%d", to.target.MemberID.Suffix(), to.target.Endpoint.Port)
			out.Out.Host = out.In.Host
			h.strip(out.Out.Header, to.bearer)
			out.SetXForwarded()
			out.Out.Header.Set("X-Forwarded-Proto", h.Endpoints.Apps.Scheme)
			out.Out.Header.Set(CallerHeader, to.caller)
		},
		Transport: &http.Transport{
			DialContext: h.dial, MaxResponseHeaderBytes: maxHeaders, MaxIdleConnsPerHost: idleConnections,
			IdleConnTimeout: idleConnectionLife, DisableCompression: true,
			// The tunnel ends in the member itself; an app's own certificate is for no name that we could verify.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // #nosec G402
		},
		FlushInterval:  -1, // at once: answers may be streams
		ModifyResponse: h.answered,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if to, ok := r.Context().Value(grantedKey{}).(*granted); ok {
				h.failed(w, r, to, err)
			}
		},
	}
}

// dial connects to the member that the request is for.
func (h *Handler) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	to, ok := ctx.Value(grantedKey{}).(*granted)
	if !ok {
		return nil, errors.New("a connection without a grant")
	}
	return h.Relay.Dial(ctx, to.target)
}

// answered takes out of an app's answer what is not the app's to say.
func (h *Handler) answered(response *http.Response) error {
	keepCookies(response.Header)
	if towards(h.Console, response.Header.Get("Location")) {
		return errToPlatform
	}
	return nil
}

// failed answers in the place of an app that did not.
func (h *Handler) failed(w http.ResponseWriter, r *http.Request, to *granted, err error) {
	ctx := r.Context()
	if cause := context.Cause(ctx); cause != nil {
		if refused, ok := fault.As(cause); ok {
			h.refuse(w, r, refused, to.target.Instance.ID)
		}
		return // else the caller has gone
	}
	if _, ok := fault.As(err); !ok {
		h.Log.InfoContext(ctx, "an app did not answer", "app_instance_id", to.target.Instance.ID, "endpoint",
			to.target.Endpoint.Name, "error", err, "correlation_id", transport.CorrelationID(ctx))
		err = fault.New(fault.Unavailable, "the app's answer cannot be passed on: %s", plain(err))
	}
	h.refuse(w, r, err, to.target.Instance.ID)
}

// plain says what was wrong with an app's answer, without a word of the answer.
func plain(err error) string {
	if errors.Is(err, errToPlatform) {
		return "it redirects to the platform itself"
	}
	return "it breaks off, is not HTTP, or has more than 64 KiB of headers"
}
