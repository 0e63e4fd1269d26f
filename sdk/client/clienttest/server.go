package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// maxBody bounds the bytes that the stand-in reads of a request.
const maxBody = 4 << 20

// Object is a GraphQL object, by the SDL's field names.
type Object = map[string]any

// Call is one root field of a program's request.
type Call struct {
	// Context ends with the request, or with the subscription.
	Context context.Context
	// Field is the root field's name.
	Field string
	// Args are its arguments, coerced by the SDL, with the arguments' own defaults; whole numbers
	// are json.Number or int64.
	Args map[string]any
	// Header is the header of the request or upgrade.
	Header http.Header
}

// Input returns the argument named input.
func (c Call) Input() Object {
	input, _ := c.Args["input"].(map[string]any)
	return input
}

// A Resolver answers a query or mutation field: an Object, a list or a scalar, or anything that
// marshals to one. A *Fault becomes the error envelope.
type Resolver func(Call) (any, error)

// A Stream answers a subscription field: it emits values until it returns. nil completes the
// subscription, a *Fault ends it with an error, a *Close closes the socket with a code, ErrDrop
// cuts the connection.
type Stream func(call Call, emit func(any) error) error

// Fault is a refusal in the platform's envelope.
type Fault struct {
	// Code is a code of the catalogue.
	Code string
	// Message states what is wrong.
	Message string
	// Retryable is whether the same request may succeed later.
	Retryable bool
	// Reasons are the causes: objects with code, message and path.
	Reasons []Object
}

// Error returns the code and the message.
func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// Close ends a socket with a close code and reason.
type Close struct {
	// Code is the close code, such as 4403.
	Code int
	// Reason is the close reason.
	Reason string
}

// Error returns the reason.
func (c *Close) Error() string { return c.Reason }

// ErrDrop, returned by a Stream, cuts the TCP connection as a crash would.
var ErrDrop = errors.New("cut the connection")

// Server is the stand-in. Its methods are safe for concurrent use.
type Server struct {
	// URL is its address, http://127.0.0.1:PORT.
	URL string

	t         testing.TB
	schema    *ast.Schema
	http      *httptest.Server
	mu        sync.Mutex
	resolvers map[string]Resolver
	streams   map[string]Stream
	login     func(code string) (string, time.Time, error)
	intercept func(http.ResponseWriter, *http.Request) bool
	token     string
	calls     []Call
	sockets   sync.WaitGroup
	ctx       context.Context
}

// New starts a stand-in for the SDL files that the pattern matches; it stops with the test.
func New(t testing.TB, schemaPattern string) *Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		t: t, schema: loadSchema(t, schemaPattern), ctx: ctx,
		resolvers: map[string]Resolver{}, streams: map[string]Stream{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /graphql", s.serveHTTP)
	mux.HandleFunc("GET /graphql", s.serveSocket)
	mux.HandleFunc("POST /auth/login", s.serveLogin)
	mux.HandleFunc("POST /auth/token", s.serveExchange)
	mux.HandleFunc(
		"POST /auth/logout", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	)
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.front(mux, w, r) }))
	s.URL = s.http.URL
	t.Cleanup(func() {
		cancel()
		s.http.Close()
		s.sockets.Wait()
	})
	return s
}

// loadSchema loads the SDL files that the pattern matches.
func loadSchema(t testing.TB, pattern string) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no SDL files match %q: %v", pattern, err)
	}
	sources := make([]*ast.Source, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: file, Input: string(text)})
	}
	schema, err := gqlparser.LoadSchema(sources...)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// Handle sets the answer of a field of Query or Mutation.
func (s *Server) Handle(field string, resolver Resolver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolvers[field] = resolver
}

// HandleStream sets the values of a field of Subscription.
func (s *Server) HandleStream(field string, stream Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[field] = stream
}

// HandleLogin sets the answer of POST /auth/login: a token and when it expires.
func (s *Server) HandleLogin(login func(code string) (string, time.Time, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login = login
}

// RequireToken makes every GraphQL request without this bearer token UNAUTHENTICATED.
func (s *Server) RequireToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Intercept sets a function that gets each request first and reports whether it has answered it, in
// the role of a proxy, an overload or an outage.
func (s *Server) Intercept(intercept func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = intercept
}

// Calls returns the root fields requested so far, in order.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// CallsOf returns the calls of one root field so far, in order.
func (s *Server) CallsOf(field string) []Call {
	var found []Call
	for _, call := range s.Calls() {
		if call.Field == field {
			found = append(found, call)
		}
	}
	return found
}

func (s *Server) record(call Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

// front sets the correlation id and lets Intercept go first.
func (s *Server) front(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if id := r.Header.Get("X-Correlation-Id"); id != "" {
		w.Header().Set("X-Correlation-Id", id)
	}
	s.mu.Lock()
	intercept := s.intercept
	s.mu.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	next.ServeHTTP(w, r)
}

func (s *Server) authenticated(authorization string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token == "" || authorization == "Bearer "+s.token
}

// serveLogin answers a login of the command line with the token of HandleLogin.
func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request) {
	var input struct{ Code, Client string }
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil || input.Client != "cli" {
		s.refuse(w, r, http.StatusBadRequest, &Fault{Code: "REQUEST_INVALID", Message: "not a login"})
		return
	}
	s.mu.Lock()
	login := s.login
	s.mu.Unlock()
	if login == nil {
		s.refuse(w, r, http.StatusNotFound, &Fault{Code: "NOT_FOUND", Message: "no logins here"})
		return
	}
	token, expiresAt, err := login(input.Code)
	if err != nil {
		s.refuse(w, r, http.StatusUnauthorized, err)
		return
	}
	s.answer(w, http.StatusOK, Object{"token": token, "expiresAt": expiresAt})
}

// serveExchange answers every exchange with the same token.
func (s *Server) serveExchange(w http.ResponseWriter, r *http.Request) {
	var input struct {
		GrantType string `json:"grant_type"`
		Scope     string `json:"scope"`
	}
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil || input.GrantType != "client_credentials" {
		s.refuse(w, r, http.StatusBadRequest, &Fault{Code: "REQUEST_INVALID", Message: "not an exchange"})
		return
	}
	s.answer(
		w,
		http.StatusOK,
		Object{
			"access_token": "a.short.token", "token_type": "Bearer", "expires_at": "2026-11-20T11:15:00Z",
			"scope": input.Scope,
		},
	)
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	s.answer(w, status, Object{"errors": []Object{envelope(err, nil, r.Header.Get("X-Correlation-Id"))}})
}

func (s *Server) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/graphql-response+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// envelope returns a GraphQL error with the platform's extensions.
func envelope(err error, path []any, correlationID string) Object {
	fault := &Fault{Code: "INTERNAL", Message: err.Error()}
	errors.As(err, &fault)
	reasons := fault.Reasons
	if reasons == nil {
		reasons = []Object{}
	}
	wire := Object{"message": fault.Message, "extensions": Object{
		"code": fault.Code, "correlation_id": correlationID, "retryable": fault.Retryable, "reasons": reasons,
	}}
	if path != nil {
		wire["path"] = path
	}
	return wire
}
