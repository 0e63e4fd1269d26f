package authhttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/gpuaas/app-platform/graph/authhttp"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/logincode"
	"github.com/gpuaas/app-platform/service/identity"
)

const (
	clientID, clientSecret = "app-platform", "a shared secret"
	password               = "correct horse"
)

// people are those whom the provider knows.
type people struct {
	mu   sync.Mutex
	byID map[string]*storage.User
}

func (p *people) add(subject, email string, verified bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID[subject] = &storage.User{ID: subject, Username: subject, Password: password, FirstName: "Ann",
		LastName: "Other", Email: email, EmailVerified: verified}
}

// GetUserByID implements storage.UserStore.
func (p *people) GetUserByID(id string) *storage.User {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byID[id]
}

// GetUserByUsername implements storage.UserStore.
func (p *people) GetUserByUsername(name string) *storage.User { return p.GetUserByID(name) }

// ExampleClientID implements storage.UserStore.
func (p *people) ExampleClientID() string { return "service" }

// opened is a real OpenID provider, and the platform that people log in to with it.
type opened struct {
	*bench
	people   *people
	provider *httptest.Server
	store    *storage.Storage
	// forge, when set, changes an ID token on its way from the provider.
	forge atomic.Pointer[func(raw string) string]
	// away makes the provider answer nothing but failures.
	away atomic.Bool
}

func withProvider(t *testing.T) *opened {
	t.Helper()
	o := &opened{people: &people{byID: map[string]*storage.User{}}}
	var provider, platform atomic.Pointer[http.Handler]
	serve := func(of *atomic.Pointer[http.Handler]) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			(*of.Load()).ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		return server
	}
	o.provider = serve(&provider)
	server := serve(&platform)

	log := slog.New(slog.DiscardHandler)
	o.store = storage.NewStorageWithClients(o.people, map[string]*storage.Client{
		clientID: storage.WebClient(clientID, clientSecret, server.URL+"/auth/oidc/callback"),
	})
	real := o.between(exampleop.SetupServer(o.provider.URL, o.store, log, false))
	provider.Store(&real)

	kit := platformtest.New(t)
	service := &identity.Service{DB: kit.DB, Keys: kit.Ring, PublicURL: server.URL}
	logins, err := authhttp.New(authhttp.Options{Identity: service, Log: log, OIDC: &authhttp.OIDC{
		Issuer: o.provider.URL, ClientID: clientID, ClientSecret: clientSecret, Name: "Example",
		RedirectURL: server.URL + "/auth/oidc/callback",
	}})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/auth/", logins)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the console") })
	handler := http.Handler(mux)
	platform.Store(&handler)
	o.bench = &bench{Server: server, kit: kit, identity: service, t: t}
	return o
}

// between is a proxy in front of the provider: on demand it is away, or forges ID tokens.
func (o *opened) between(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forge := o.forge.Load()
		if o.away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		if forge == nil || r.URL.Path != "/oauth/token" {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		var body map[string]any
		if json.Unmarshal(answer.Body.Bytes(), &body) == nil && body["id_token"] != nil {
			body["id_token"] = (*forge)(body["id_token"].(string))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Code)
		_ = json.NewEncoder(w).Encode(body)
	})
}

// key is the provider's own signing key.
func (o *opened) key() op.SigningKey {
	key, err := o.store.SigningKey(o.t.Context())
	require.NoError(o.t, err)
	return key
}

// resigned changes claims of the ID tokens to come, and signs them with the provider's own key.
func (o *opened) resigned(change map[string]any) func(string) string {
	key := o.key()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: key.SignatureAlgorithm(),
		Key: jose.JSONWebKey{Key: key.Key(), KeyID: key.ID()}}, nil)
	require.NoError(o.t, err)
	return func(raw string) string {
		parsed, err := jwt.ParseSigned(raw, []jose.SignatureAlgorithm{key.SignatureAlgorithm()})
		if err != nil {
			return err.Error()
		}
		claims := map[string]any{}
		if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
			return err.Error()
		}
		for name, value := range change {
			claims[name] = value
			if value == nil {
				delete(claims, name)
			}
		}
		text, err := jwt.Signed(signer).Claims(claims).Serialize()
		if err != nil {
			return err.Error()
		}
		return text
	}
}

// browser is a person's browser; with holds, it stops in front of the platform's callback.
type browser struct {
	*http.Client
	o *opened
	// holds keeps the callback's address instead of going there.
	holds bool
	held  string
}

func (o *opened) browser() *browser {
	jar, err := cookiejar.New(nil)
	require.NoError(o.t, err)
	b := &browser{o: o}
	b.Client = &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Port() == portOf(o.t, o.URL) && r.URL.Path == "/auth/oidc/callback" && b.holds {
			b.held = r.URL.String()
			return http.ErrUseLastResponse
		}
		if r.URL.Hostname() == "127.0.0.1" && r.URL.Port() != portOf(o.t, o.URL) &&
			r.URL.Port() != portOf(o.t, o.provider.URL) {
			return http.ErrUseLastResponse // a command line would wait there
		}
		return nil
	}}
	return b
}

func portOf(t *testing.T, address string) string {
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	return parsed.Port()
}

// get follows an address to where it ends.
func (b *browser) get(address string) (*http.Response, string) {
	request, err := http.NewRequestWithContext(b.o.t.Context(), http.MethodGet, address, nil)
	require.NoError(b.o.t, err)
	request.Header.Set("Accept", "text/html,application/xhtml+xml")
	request.Header.Set("User-Agent", "Browser/1 "+strings.Repeat("x", 200))
	return b.do(request)
}

func (b *browser) do(request *http.Request) (*http.Response, string) {
	response, err := b.Do(request)
	require.NoError(b.o.t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(b.o.t, err)
	return response, string(body)
}

// login goes all the way: start, the provider's form, and back; it answers where the browser ended.
func (b *browser) login(subject, query string) *http.Response {
	page, form := b.get(b.o.URL + "/auth/oidc/start" + query)
	return b.proceed(subject, page, form)
}

// agree goes all the way for a command line: the page that asks, the person's click, the provider's form, and back.
func (b *browser) agree(subject string, port int, bound string) *http.Response {
	fields := url.Values{"cli": {fmt.Sprint(port)}, "challenge": {bound}}
	asked, text := b.get(b.o.URL + "/auth/oidc/start?" + fields.Encode())
	require.Equal(b.o.t, http.StatusOK, asked.StatusCode)
	require.Contains(b.o.t, text, logincode.Of(bound))
	request, err := http.NewRequestWithContext(b.o.t.Context(), http.MethodPost, b.o.URL+"/auth/oidc/start",
		strings.NewReader(fields.Encode()))
	require.NoError(b.o.t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", b.o.URL)
	request.Header.Set("Accept", "text/html")
	page, form := b.do(request)
	return b.proceed(subject, page, form)
}

// accept sends the form of an invitation's page from an origin, and goes on as login does.
func (b *browser) accept(subject, code, origin string) *http.Response {
	page, form := b.sends(code, origin)
	return b.proceed(subject, page, form)
}

// sends sends the form of an invitation's page, and goes as far as the provider's form.
func (b *browser) sends(code, origin string) (*http.Response, string) {
	fields := url.Values{"invitation": {code}}
	request, err := http.NewRequestWithContext(b.o.t.Context(), http.MethodPost, b.o.URL+"/auth/oidc/accept",
		strings.NewReader(fields.Encode()))
	require.NoError(b.o.t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "text/html")
	request.Header.Set("Origin", origin)
	return b.do(request)
}

// proceed fills in the provider's form, if the browser ended there.
func (b *browser) proceed(subject string, page *http.Response, form string) *http.Response {
	id := page.Request.URL.Query().Get("authRequestID")
	if id == "" {
		return page // it ended before the provider's form
	}
	require.Contains(b.o.t, form, "password")
	fields := url.Values{"username": {subject}, "password": {password}, "id": {id}}
	request, err := http.NewRequestWithContext(b.o.t.Context(), http.MethodPost, b.o.provider.URL+"/login/username",
		bytes.NewBufferString(fields.Encode()))
	require.NoError(b.o.t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", "Browser/1 "+strings.Repeat("x", 200))
	ended, _ := b.do(request)
	return ended
}

// session is the browser's session cookie; "" when it has none.
func (b *browser) session() string {
	at, err := url.Parse(b.o.URL)
	require.NoError(b.o.t, err)
	for _, cookie := range b.Jar.Cookies(at) {
		if cookie.Name == "gpuaas_session" {
			return cookie.Value
		}
	}
	return ""
}
