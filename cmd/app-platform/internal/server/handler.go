package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/authhttp"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/transport"
	"github.com/gpuaas/app-platform/graph/transport/guard"
	"github.com/gpuaas/app-platform/graph/transport/httpapi"
	"github.com/gpuaas/app-platform/graph/transport/wsapi"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/event"
	"github.com/gpuaas/app-platform/web"
)

// maxBody bounds a request, in bytes: the largest thing the contract takes is a node task's spec of
// 512 KiB, which JSON may write twice as long.
const maxBody = 1 << 20

// handler is everything this process answers.
func (p *platform) handler(ctx context.Context, group *errgroup.Group) (http.Handler, error) {
	mux := http.NewServeMux()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.count(registry)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", p.ready)
	if p.config.has("api") {
		if err := p.api(ctx, group, mux, registry); err != nil {
			return nil, err
		}
	}
	return secure(mux), nil
}

// ready says whether the database answers.
func (p *platform) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := p.db.Ping(ctx); err != nil {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// api adds GraphQL, logins, the published keys and the console.
func (p *platform) api(ctx context.Context, group *errgroup.Group, mux *http.ServeMux, registry *prometheus.Registry) error {
	sentinel := live.NewSentinel()
	resolver, err := p.resolver(sentinel)
	if err != nil {
		return err
	}
	engine, err := transport.NewEngine(transport.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: resolver}), Present: graph.Present, Log: p.log,
		Limits: guard.Limits{Introspection: p.config.Dev}, Extensions: []graphql.HandlerExtension{graph.Extension{Resolver: resolver}},
	})
	if err != nil {
		return err
	}
	feeds, err := event.NewFeeds(ctx, p.db.Worker())
	if err != nil {
		return err
	}
	streams := &live.Server{Engine: engine, Hub: p.hub, Log: p.log, Sentinel: sentinel, Sources: resolver.Sources(feeds)}
	sockets, err := wsapi.New(wsapi.Options{
		Engine: engine, Authenticate: p.authenticate, Watch: p.watch(sentinel), Streams: streams, Context: withCorrelation,
		Subject: subject, Origins: p.config.Origins,
	})
	if err != nil {
		return err
	}
	for _, run := range []func(context.Context) error{streams.Run, sentinel.Run, sockets.Run} {
		group.Go(func() error { return run(ctx) })
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "app_platform_sockets", Help: "WebSocket connections now open.",
	}, func() float64 { return float64(sockets.Sockets()) }))
	options := httpapi.Options{
		Engine: engine, Authenticate: p.authenticate, Context: withCorrelation, Origins: p.config.Origins, WebSocket: sockets,
		BodyBytes: maxBody,
	}
	if p.config.Dev {
		options.GraphiQL = web.GraphiQL()
	}
	api, err := httpapi.New(options)
	if err != nil {
		return err
	}
	logins, err := authhttp.New(authhttp.Options{
		Identity: resolver.Identity, Origins: p.config.Origins, Log: p.log, Secure: strings.HasPrefix(p.config.PublicURL, "https://"),
	})
	if err != nil {
		return err
	}
	keys, err := p.ring.Public()
	if err != nil {
		return err
	}
	mux.Handle("/graphql", api)
	mux.HandleFunc("GET /.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		w.Header().Set("Cache-Control", "public, max-age=60")
		_, _ = w.Write(keys)
	})
	mux.Handle("/auth/", logins)
	mux.Handle("/", web.Handler())
	return nil
}

// authenticate reads the credential, without the database: each verb and read looks it up in the
// round trip of what it loads.
func (p *platform) authenticate(ctx context.Context, shown transport.Credential, r *http.Request) (context.Context, error) {
	ctx = authz.WithRequest(ctx, authz.RequestInfo{CorrelationID: transport.CorrelationID(ctx), Origin: origin(r)})
	if shown.Raw == "" {
		return ctx, fault.New(fault.Unauthenticated, "a credential is required")
	}
	credential, err := tx.ParseCredential(shown.Raw, p.ring, p.db.Now())
	if err != nil {
		return ctx, err
	}
	return tx.WithCredential(ctx, credential), nil
}

// watch ends a socket whose credential is unknown, has been revoked or is over, within the few seconds
// that the sentinel takes for a round.
func (p *platform) watch(sentinel *live.Sentinel) func(context.Context, func(wsapi.CloseReason)) func() {
	ask := func(ctx context.Context) error {
		_, err := p.db.Read(ctx)
		return err
	}
	return func(ctx context.Context, revoke func(wsapi.CloseReason)) func() {
		return sentinel.Watch(ctx, "socket", ask, func(error) {
			revoke(wsapi.CloseReason{Code: wsapi.CloseUnauthorized, Reason: "the credential is unknown, revoked or over"})
		})
	}
}

// subject is whose sockets are counted together. Nobody has verified the credential yet, so a forged
// one must not count against whom it was forged of.
func subject(ctx context.Context) string {
	credential, shown := tx.CredentialFrom(ctx)
	if !shown {
		return ""
	}
	return credential.Fingerprint()
}

// withCorrelation carries the request's id where verbs and logs look for it.
func withCorrelation(ctx context.Context, id string) context.Context {
	info := authz.Request(ctx)
	info.CorrelationID = id
	return authz.WithRequest(ctx, info)
}

// origin is the caller's address without its port.
func origin(r *http.Request) string {
	if r == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// secure adds the headers that every answer carries; the console adds its own policy.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		if strings.HasPrefix(r.URL.Path, "/graphql") || strings.HasPrefix(r.URL.Path, "/auth/") {
			header.Set("Cache-Control", "no-store")
		}
		next.ServeHTTP(w, r)
	})
}
