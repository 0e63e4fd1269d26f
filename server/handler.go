package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/authhttp"
	"github.com/gpuaas/app-platform/graph/deliveryhttp"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/feed"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/compress"
	"github.com/gpuaas/app-platform/transport/guard"
	"github.com/gpuaas/app-platform/transport/httpapi"
	"github.com/gpuaas/app-platform/transport/wsapi"
	"github.com/gpuaas/app-platform/web"
)

// maxBody bounds a request, in bytes: the largest thing the contract takes is a node task's spec of
// 512 KiB, which JSON may write twice as long.
const maxBody = 1 << 20

// graphqlPath is where the API is.
const graphqlPath = "/graphql"

// serves are the handlers of one process: of everything, of what nodes reach on a listener of their own, and of
// metrics.
type serves struct{ all, nodes, metrics http.Handler }

// handler is what this process answers, by listener.
func (p *platform) handler(ctx context.Context, group *errgroup.Group) (*serves, error) {
	gate, err := newGate(&p.config.Edge)
	if err != nil {
		return nil, err
	}
	mux, nodes, own := http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if p.metrics == nil {
		p.metrics = metrics.New(verbs())
	}
	p.answers = compress.NewPool(runtime.GOMAXPROCS(0))
	p.count(registry)
	registry.MustRegister(gate.limits.Collector())
	registry.MustRegister(gate.guesses.Collectors()...)
	own.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	for _, each := range []*http.ServeMux{mux, nodes} {
		each.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
		each.HandleFunc("GET /readyz", p.ready)
	}
	apps := func(next http.Handler) http.Handler { return next }
	if p.config.has("api") {
		if apps, err = p.api(ctx, group, gate, mux, nodes, registry); err != nil {
			return nil, err
		}
	}
	log := &telemetry.Log{To: p.log, Metrics: p.metrics}
	return &serves{all: gate.around(apps(edge.Headers(p.hostCookies(log.Plain(mux, graphqlPath))))),
		nodes: gate.around(edge.Headers(log.Plain(nodes, graphqlPath))), metrics: own}, nil
}

// hostCookies notes on every request that browsers reach this installation by TLS, where its public address is https.
func (p *platform) hostCookies(next http.Handler) http.Handler {
	if !p.config.secure() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(transport.WithHostCookies(r.Context())))
	})
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

// api adds GraphQL, logins, the published keys and the console; for nodes, the endpoints that nodes call. It returns
// what serves the hosts of apps around the rest.
func (p *platform) api(ctx context.Context, group *errgroup.Group, gate *gate, mux, nodes *http.ServeMux,
	registry *prometheus.Registry) (apps func(http.Handler) http.Handler, err error) {
	sentinel := live.NewSentinel(p.db)
	feeds, err := event.NewFeeds(ctx, p.db.Feed())
	if err != nil {
		return nil, err
	}
	resolver, err := p.resolver(ctx, sentinel, feeds)
	if err != nil {
		return nil, err
	}
	engine, err := transport.NewEngine(transport.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: resolver}), Present: denial.Present, Log: p.log,
		Limits: guard.Limits{Introspection: p.config.Dev || p.config.Edge.Introspection}, Suggestions: p.config.Dev ||
			p.config.Edge.Suggestions, Uncompressed: graph.Uncompressed,
		Began: p.began, Ended: p.ended(&telemetry.Log{To: p.log, Caller: p.entered, Metrics: p.metrics}),
		Extensions: []graphql.HandlerExtension{telemetry.Extension{Source: p.config.traces()},
			graph.Extension{Resolver: resolver}},
	})
	if err != nil {
		return nil, err
	}
	streams := &live.Server{Engine: engine, Hub: p.hub, Log: p.log, Sentinel: sentinel, Metrics: p.metrics,
		Sources: feed.Sources(resolver.DB, resolver.Instances, feeds), Subject: p.whose}
	sockets, err := wsapi.New(wsapi.Options{
		Engine: engine, Authenticate: p.authenticate(gate), Admit: gate.admit, Watch: p.watch(sentinel),
		Streams: p.config.traces().Streams(streams),
		Context: withCorrelation, Subject: subject, Origins: p.config.Origins,
	})
	if err != nil {
		return nil, err
	}
	for _, run := range []func(context.Context) error{streams.Run, sentinel.Run, sockets.Run} {
		group.Go(func() error { return run(ctx) })
	}
	countLive(registry, sockets, streams)
	p.kept.Store(resolver.Answers())
	registry.MustRegister(resolver.Answers())
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "app_platform_break_glass_total", Help: "Uses of break-glass that came about in this process.",
	}, func() float64 { return float64(resolver.BreakGlass.Used.Load()) }))
	options := httpapi.Options{
		Engine: engine, Authenticate: p.authenticate(gate), Admit: gate.admit, Context: withCorrelation,
		Origins:   p.config.Origins,
		WebSocket: sockets, BodyBytes: maxBody, Compress: p.answers,
	}
	if p.config.Dev {
		options.GraphiQL = web.GraphiQL()
	}
	api, err := httpapi.New(options)
	if err != nil {
		return nil, err
	}
	logins, err := authhttp.New(authhttp.Options{
		Identity: resolver.Identity, Origins: p.config.Origins, Log: p.log, Secure: p.config.secure(),
		Guesses: gate.guesses, OIDC: p.config.OIDC.provider(p.config.PublicURL),
	})
	if err != nil {
		return nil, err
	}
	for _, each := range []*http.ServeMux{mux, nodes} {
		each.Handle(graphqlPath, p.config.traces().Requests(graphqlPath, p.vouched, api))
		each.HandleFunc("GET /.well-known/jwks.json", p.publish)
		each.Handle(deliveryhttp.Path, &deliveryhttp.Handler{Deliveries: resolver.Deliveries, Log: p.log,
			Stats: &p.delivered})
	}
	mux.HandleFunc("GET /schemas/manifest.v1.json", p.manifestSchema)
	mux.Handle("/auth/", logins)
	mux.Handle("/", web.Handler())
	return p.relay(ctx, group, gate, sentinel, resolver, mux, nodes, registry), nil
}

// manifestSchema writes the JSON Schema of manifest documents, for editors and other tools.
func (p *platform) manifestSchema(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/schema+json")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	p.answers.Answer(w, r, http.StatusOK, manifest.DocumentSchema())
}

// publish writes the keys that verify our tokens, as they are now.
func (p *platform) publish(w http.ResponseWriter, r *http.Request) {
	keys, err := p.ring.Public()
	if err != nil {
		http.Error(w, "the keys cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(token.PublishedFor.Seconds())))
	p.answers.Answer(w, r, http.StatusOK, keys)
}

// authenticate reads the credential, without the database: each verb and read looks it up in the
// round trip of what it loads.
func (p *platform) authenticate(gate *gate) func(context.Context, transport.Credential, *http.Request) (context.Context,
	error) {
	return func(ctx context.Context, shown transport.Credential, r *http.Request) (context.Context, error) {
		ctx = authz.WithRequest(ctx, authz.RequestInfo{CorrelationID: transport.CorrelationID(ctx),
			Origin: edge.Address(r)})
		if shown.Raw == "" {
			return ctx, fault.New(fault.Unauthenticated, "a credential is required")
		}
		attempt := edge.Attempt{Address: edge.Address(r), Secret: shown.Raw}
		credential, err := tx.ParseCredential(shown.Raw, p.ring, p.db.Now())
		if err != nil {
			err = gate.malformed(attempt, err)
			p.stranger(ctx, err, "")
			return ctx, err
		}
		held := &atomic.Bool{}
		ctx = context.WithValue(ctx, heldKey{}, held)
		if credential.Hash() == nil { // a signed token is no guess: its signature was right
			ctx = tx.WithOutcome(ctx, func(entered bool) {
				held.Store(entered)
				if !entered {
					p.stranger(ctx, fault.New(fault.Unauthenticated, ""), credential.RowID())
				}
			})
		} else {
			attempt.Credential = credential.ID()
			if err := gate.guesses.Check(attempt); err != nil {
				return ctx, err
			}
			ctx = tx.WithOutcome(ctx, func(entered bool) {
				held.Store(entered)
				gate.guesses.Outcome(attempt, entered)
				if !entered {
					p.stranger(ctx, fault.New(fault.Unauthenticated, ""), "")
				}
			})
		}
		return tx.WithCredential(ctx, credential), nil
	}
}

// stranger records a request with a credential that is not valid; repeats from one address are counted in one row. Only
// a signed token shows whose it was.
func (p *platform) stranger(ctx context.Context, err error, object ids.ID) {
	refused, ok := fault.As(err)
	if !ok { // it was not looked at
		return
	}
	p.db.Deny(tx.Denial{Request: authz.Request(ctx), Action: "authenticate", Code: string(refused.Code),
		ObjectID: string(object), At: p.db.Now()})
}

// watch ends a socket whose credential is unknown, was revoked or has expired, within the few seconds that the sentinel
// takes for a round.
func (p *platform) watch(sentinel *live.Sentinel) func(context.Context, func(wsapi.CloseReason)) func() {
	ask := func(ctx context.Context) error {
		_, err := p.db.Read(ctx)
		return err
	}
	return func(ctx context.Context, revoke func(wsapi.CloseReason)) func() {
		return sentinel.WatchProved(ctx, "socket", tx.CallerSubject(), ask, func(error) {
			revoke(*wsapi.Refused(string(fault.Unauthenticated), "the credential is unknown, revoked or expired"))
		})
	}
}

// withCorrelation carries the request's id where verbs and logs look for it.
func withCorrelation(ctx context.Context, id string) context.Context {
	info := authz.Request(ctx)
	info.CorrelationID = id
	return authz.WithRequest(ctx, info)
}
