package httpapi

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"log/slog"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/compress"
)

// Options configure a Handler.
type Options struct {
	// Engine runs the operations. Required.
	Engine *transport.Engine
	// Authenticate checks the credential, which may be empty (SourceNone), and returns the
	// context that resolvers see. An error is presented; a code other than FORBIDDEN,
	// UNAVAILABLE, RATE_LIMITED or DEADLINE_EXCEEDED is answered as UNAUTHENTICATED. Required.
	Authenticate func(ctx context.Context, credential transport.Credential, r *http.Request) (context.Context, error)
	// Context, when set, carries the correlation id on in the caller's own way.
	Context func(ctx context.Context, correlationID string) context.Context
	// Admit, when set, is called once the caller is authenticated, with its context, and may refuse
	// for the number of its operations; release is called once the request is answered. An error is
	// presented like one of Authenticate.
	Admit func(ctx context.Context) (release func(), err error)
	// BodyBytes bounds a request body; 128 KiB.
	BodyBytes int64
	// BodyTimeout bounds how long a body may take to arrive, since its caller may not be verified yet; 30 s.
	BodyTimeout time.Duration
	// Origins are pages of other hosts that may use the session cookie ("https://host:port").
	Origins []string
	// WebSocket serves upgrade requests; nil refuses them with 405.
	WebSocket http.Handler
	// Compress, when set, compresses answers that Engine.Compressible allows, for clients that prefer it.
	Compress *compress.Pool
	// GraphiQL serves the development page to browsers that prefer text/html; nil in production.
	GraphiQL http.Handler
}

// Handler serves POST /graphql. It is safe for concurrent use.
type Handler struct{ options Options }

// New checks the options and makes a handler.
func New(options Options) (*Handler, error) {
	if options.Engine == nil {
		return nil, errors.New("graphql over HTTP: Engine is missing")
	}
	if options.Authenticate == nil {
		return nil, errors.New("graphql over HTTP: Authenticate is missing")
	}
	if options.BodyBytes <= 0 {
		options.BodyBytes = 128 << 10
	}
	if options.BodyTimeout <= 0 {
		options.BodyTimeout = 30 * time.Second
	}
	return &Handler{options}, nil
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && h.get(w, r) {
		return
	}
	id := transport.RequestCorrelationID(r)
	ctx := h.options.Engine.Begin(transport.WithCorrelationID(r.Context(), id))
	if h.options.Context != nil {
		ctx = h.options.Context(ctx, id)
	}
	w.Header().Set(transport.CorrelationHeader, id)
	media, accepted := negotiate(r.Header)
	if !accepted {
		media = MediaJSON // some words are better than none
	}
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer h.recovered(ctx, w)
	ctx, release, failed := h.admit(ctx, w, r, accepted)
	defer release()
	var params *graphql.RawParams
	if failed == nil {
		params, failed = h.params(w, r)
	}
	if failed != nil {
		h.fail(ctx, w, failed)
		return
	}
	h.run(ctx, w, r, params, media)
}

// get hands a GET to the upgrade or to the development page. false: it is neither.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case h.options.WebSocket != nil && websocket.IsWebSocketUpgrade(r):
		h.options.WebSocket.ServeHTTP(w, r)
	case h.options.GraphiQL != nil && prefersHTML(r.Header):
		h.options.GraphiQL.ServeHTTP(w, r)
	default:
		return false
	}
	return true
}

// admit checks everything that can be refused before the document is looked at, the
// cheapest first; the body of a caller we do not know is not read.
func (h *Handler) admit(ctx context.Context, w http.ResponseWriter, r *http.Request,
	accepted bool) (admitted context.Context, release func(), failed *failure) {
	release = func() {}
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return ctx, release, refuse(http.StatusMethodNotAllowed, transport.CodeMethodNotAllowed, "use POST")
	case !accepted:
		return ctx, release, refuse(http.StatusNotAcceptable, transport.CodeNotAcceptable,
			"answers are "+MediaResponse+" or "+MediaJSON)
	case !jsonBody(r):
		return ctx, release, refuse(http.StatusUnsupportedMediaType, transport.CodeMediaType,
			"the request body must be "+MediaJSON+" in UTF-8")
	case r.ContentLength > h.options.BodyBytes:
		return ctx, release, tooLarge(w)
	}
	ctx, failed = h.authenticate(ctx, w, r)
	if failed != nil || h.options.Admit == nil {
		return ctx, release, failed
	}
	given, err := h.options.Admit(ctx)
	if err != nil {
		return ctx, release, h.unauthenticated(ctx, w, err)
	}
	return ctx, given, nil
}

// params reads and parses the body.
func (h *Handler) params(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, *failure) {
	body, failed := read(w, r, h.options.BodyBytes, h.options.BodyTimeout)
	if failed != nil {
		return nil, failed
	}
	params, failed := parse(body)
	if failed == nil {
		params.Headers = r.Header
	}
	return params, failed
}

func (h *Handler) authenticate(ctx context.Context, w http.ResponseWriter, r *http.Request) (context.Context,
	*failure) {
	credential, refused := transport.RequestCredential(r)
	if refused != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return ctx, &failure{http.StatusUnauthorized, refused}
	}
	if credential.Source == transport.SourceCookie && !transport.SameOrigin(r, h.options.Origins) {
		return ctx, refuse(http.StatusForbidden, transport.CodeForbidden,
			"the session cookie is accepted from the platform's own pages only")
	}
	authenticated, err := h.options.Authenticate(ctx, credential, r)
	if err == nil {
		return authenticated, nil
	}
	return ctx, h.unauthenticated(ctx, w, err)
}

// unauthenticated is the answer to a credential that was not taken, or to a caller that may do nothing now.
func (h *Handler) unauthenticated(ctx context.Context, w http.ResponseWriter, err error) *failure {
	shown := h.options.Engine.PresentCredentialError(ctx, err)
	status := credentialStatus(transport.Code(shown))
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if own := new(transport.Error); errors.As(err, &own) {
		own.SetRetryAfter(w.Header())
	}
	return &failure{status, shown}
}

func credentialStatus(code string) int {
	switch code {
	case transport.CodeForbidden:
		return http.StatusForbidden
	case transport.CodeRateLimited:
		return http.StatusTooManyRequests
	case transport.CodeUnavailable, transport.CodeDeadlineExceeded:
		return http.StatusServiceUnavailable
	default:
		return http.StatusUnauthorized
	}
}

func (h *Handler) run(ctx context.Context, w http.ResponseWriter, r *http.Request, params *graphql.RawParams,
	media string) {
	op, list := h.options.Engine.Prepare(ctx, params)
	if list == nil && op.Operation.Operation == ast.Subscription {
		list = gqlerror.List{h.options.Engine.Present(ctx,
			transport.Refuse(transport.CodeDocumentInvalid, "subscriptions are served over WebSocket only"))}
	}
	if list != nil {
		h.write(ctx, w, &graphql.Response{Errors: list}, requestErrorStatus(media))
		return
	}
	response := h.options.Engine.Run(ctx, op)
	status := http.StatusOK
	if response.Data == nil {
		status = requestErrorStatus(media)
	}
	body, status := h.encode(ctx, response, status)
	if h.options.Compress != nil && len(body) >= compress.MinBytes && h.options.Engine.Compressible(op) {
		h.options.Compress.Answer(w, r, status, body)
		return
	}
	compress.Plain(w, status, body)
}

// requestErrorStatus returns 400 for the new media type. For the legacy one the specification
// keeps 200, since a proxy before such a client may own the other statuses.
func requestErrorStatus(media string) int {
	if media == MediaResponse {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func (h *Handler) fail(ctx context.Context, w http.ResponseWriter, failed *failure) {
	shown := new(gqlerror.Error)
	if !errors.As(failed.err, &shown) {
		shown = h.options.Engine.Present(ctx, failed.err)
	}
	h.write(ctx, w, &graphql.Response{Errors: gqlerror.List{shown}}, failed.status)
}

// write answers with a response that holds no data, and so is not compressed.
func (h *Handler) write(ctx context.Context, w http.ResponseWriter, response *graphql.Response, status int) {
	body, status := h.encode(ctx, response, status)
	compress.Plain(w, status, body)
}

// encode ends the operation, and returns its answer with the status that it then has.
func (h *Handler) encode(ctx context.Context, response *graphql.Response, status int) ([]byte, int) {
	h.options.Engine.End(ctx, response.Errors)
	body, err := transport.Encode(response)
	if err == nil {
		return body, status
	}
	h.options.Engine.Log().ErrorContext(ctx, "the answer could not be encoded", slog.Any("error", err))
	return []byte(`{"errors":[{"message":"internal error","extensions":{"code":"INTERNAL"}}]}`),
		http.StatusInternalServerError
}

// recovered answers a panic outside the resolvers (in Authenticate, say).
func (h *Handler) recovered(ctx context.Context, w http.ResponseWriter) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	h.options.Engine.Log().ErrorContext(ctx, "panic in the transport", slog.Any("panic", cause),
		slog.String("correlation_id", transport.CorrelationID(ctx)), slog.String("stack", string(debug.Stack())))
	h.fail(ctx, w, refuse(http.StatusInternalServerError, transport.CodeInternal, "internal error"))
}
