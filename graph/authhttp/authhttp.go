// Package authhttp serves login and logout. People log in at an identity provider, by the OpenID
// Connect code flow with PKCE: GET /auth/oidc/start sends the browser there (for a command line it first shows a
// page of consent, which POST /auth/oidc/start takes), GET /auth/oidc/callback
// takes it back with a session, or sends a command line a one-time code. GET /auth/oidc/accept shows an invitation, and
// POST begins the login that accepts it. POST /auth/login turns such a code, or in development one of a login link,
// into a session; POST /auth/refresh gives a session a new secret, POST /auth/logout ends one, and GET /auth/methods
// lists the ways to log in. POST /auth/token exchanges a service account's key for a short-lived token.
//
// A browser gets its session as an HttpOnly, SameSite=Strict cookie and only when its own page
// asks; a command line gets a token. Failed logins of one address are limited, so that codes cannot
// be guessed, and an answer never says why a code does not work.
package authhttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/transport"
)

// maxBody bounds a request body, in bytes.
const maxBody = 4 << 10

// Options configure a Handler.
type Options struct {
	// Identity redeems codes and ends sessions. Required.
	Identity *identity.Service
	// Log takes what must not be answered. Required.
	Log *slog.Logger
	// Origins are pages of other hosts that may log in with a cookie ("https://host:port").
	Origins []string
	// Secure marks cookies for TLS and for this host alone also where this server itself does not speak TLS, as
	// behind a proxy.
	Secure bool
	// OIDC is the identity provider; nil without one.
	OIDC *OIDC
	// Guesses slows down clients that guess codes; nil counts the guesses at this handler alone.
	Guesses *edge.Guesses
}

// Handler serves what lies below /auth/. It is safe for concurrent use.
type Handler struct {
	options  Options
	provider *provider // nil when there is none
	mux      *http.ServeMux
}

// New returns a handler.
func New(options Options) (*Handler, error) {
	if options.Identity == nil || options.Log == nil {
		return nil, errors.New("logins over HTTP: Identity and Log are required")
	}
	if options.Guesses == nil {
		options.Guesses = edge.NewGuesses()
	}
	h := &Handler{options: options, mux: http.NewServeMux()}
	h.mux.HandleFunc("POST /auth/login", h.login)
	h.mux.HandleFunc("POST /auth/logout", h.logout)
	h.mux.HandleFunc("POST /auth/refresh", h.refresh)
	h.mux.HandleFunc("POST /auth/token", h.exchange)
	h.mux.HandleFunc("GET /auth/methods", h.methods)
	h.mux.HandleFunc("GET /auth/oidc/start", h.start)
	h.mux.HandleFunc("POST /auth/oidc/start", h.consented)
	h.mux.HandleFunc("GET /auth/oidc/accept", h.invitation)
	h.mux.HandleFunc("POST /auth/oidc/accept", h.accept)
	h.mux.HandleFunc("GET /auth/oidc/callback", h.callback)
	if options.OIDC != nil {
		h.provider = newProvider(*options.OIDC)
	}
	return h, nil
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := transport.RequestCorrelationID(r)
	w.Header().Set(transport.CorrelationHeader, id)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	ctx := r.Context()
	if h.options.Secure {
		ctx = transport.WithHostCookies(ctx)
	}
	ctx = authz.WithRequest(ctx, authz.RequestInfo{CorrelationID: id, Origin: edge.Address(r), Agent: r.UserAgent()})
	h.mux.ServeHTTP(w, r.WithContext(transport.WithCorrelationID(ctx, id)))
}

// loginRequest is the body of POST /auth/login.
type loginRequest struct {
	Code   string `json:"code"`
	Client string `json:"client"`
	// Verifier proves that the command line which shows the code has begun the login.
	Verifier string `json:"verifier"`
}

func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	in, err := h.read(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	attempt := edge.Attempt{Address: edge.Address(r), Secret: in.Code}
	if err := h.options.Guesses.Check(attempt); err != nil {
		edge.Refuse(w, r, err)
		return
	}
	session, err := h.redeem(r.Context(), in)
	if err != nil {
		if fault.Is(err, fault.Unauthenticated) {
			h.options.Guesses.Failed(attempt)
		}
		h.fail(w, r, err)
		return
	}
	if in.Client == "browser" {
		http.SetCookie(w, h.cookie(r, session.Token, session.ExpiresAt))
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, http.StatusOK, map[string]any{"token": session.Token, "expiresAt": session.ExpiresAt})
}

func (h *Handler) redeem(ctx context.Context, in loginRequest) (*identity.Session, error) {
	if in.Verifier != "" {
		return h.options.Identity.RedeemBound(ctx, in.Code, in.Verifier)
	}
	return h.options.Identity.RedeemLogin(ctx, in.Code)
}

// read takes the body of a login: one small JSON object, from our own page when it is a browser's.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (in loginRequest, err error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return in, fault.New(fault.UnsupportedMediaType, "the body must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if over := new(http.MaxBytesError); errors.As(err, &over) {
		return in, fault.New(fault.MessageTooLarge, "the body may have at most %d bytes", maxBody)
	}
	if err != nil || json.Unmarshal(body, &in) != nil {
		return in, fault.New(fault.RequestInvalid, "the body must be one JSON object with code and client")
	}
	switch in.Client {
	case "cli":
	case "browser":
		if !transport.SameOrigin(r, h.options.Origins) {
			return in, fault.New(fault.Forbidden, "a browser logs in from the platform's own pages only")
		}
	default:
		return in, fault.New(fault.InvalidArgument, "client must be cli or browser").At("client")
	}
	if in.Code == "" {
		return in, fault.New(fault.InvalidArgument, "code must be given").At("code")
	}
	return in, nil
}

// logout ends the caller's session, whatever it was, and takes the cookie back.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	credential, refused := transport.RequestCredential(r)
	if refused != nil {
		h.fail(w, r, fault.New(fault.Unauthenticated, "the credential is malformed"))
		return
	}
	if credential.Source == transport.SourceCookie && !transport.SameOrigin(r, h.options.Origins) {
		h.fail(w, r, fault.New(fault.Forbidden, "the session cookie is accepted from the platform's own pages only"))
		return
	}
	if err := h.options.Identity.EndSession(r.Context(), credential.Raw); err != nil {
		h.fail(w, r, err)
		return
	}
	gone := h.cookie(r, "", time.Unix(0, 0))
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	w.WriteHeader(http.StatusNoContent)
}

func (h *Handler) cookie(r *http.Request, value string, expires time.Time) *http.Cookie {
	return &http.Cookie{Name: transport.CookieName(r, transport.SessionCookie), Value: value, Path: "/",
		Expires: expires, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: transport.HostCookies(r)}
}

// fail answers the one error envelope, in the shape of a GraphQL answer; what is not a fault is logged and answered as
// INTERNAL.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	h.failWith(w, r, err, map[string]any{})
}

// failWith is fail with more beside the envelope.
func (h *Handler) failWith(w http.ResponseWriter, r *http.Request, err error, body map[string]any) {
	id := transport.CorrelationID(r.Context())
	refused := fault.From(err)
	h.logFailure(r.Context(), refused, err)
	reasons := refused.Reasons
	if reasons == nil {
		reasons = []fault.Reason{}
	}
	body["errors"] = []any{map[string]any{
		"message": refused.Message,
		"extensions": map[string]any{
			"code": refused.Code, "correlation_id": id, "retryable": refused.CanRetry(), "reasons": reasons,
		},
	}}
	answer(w, refused.HTTPStatus(), body)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller may have gone
}
