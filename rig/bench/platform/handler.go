package platform

import (
	"context"
	"net"
	"net/http"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/delivery"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/retry"
	"github.com/gpuaas/app-platform/service/task"
	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/guard"
	"github.com/gpuaas/app-platform/transport/httpapi"
	"github.com/gpuaas/app-platform/transport/wsapi"
	"github.com/gpuaas/app-platform/workers/invoke"
)

// maxBody bounds a request, in bytes, as in the program.
const maxBody = 1 << 20

// handler is the API and the published keys.
func (p *platform) handler(ctx context.Context) (http.Handler, error) {
	resolver := p.resolver()
	engine, err := transport.NewEngine(transport.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: resolver}), Present: graph.Present, Log: p.log,
		Limits: guard.Limits{}, Extensions: []graphql.HandlerExtension{graph.Extension{Resolver: resolver}},
	})
	if err != nil {
		return nil, err
	}
	feeds, err := event.NewFeeds(ctx, p.db.Worker())
	if err != nil {
		return nil, err
	}
	sentinel := live.NewSentinel()
	streams := &live.Server{Engine: engine, Hub: p.hub, Log: p.log, Sentinel: sentinel, Sources: resolver.Sources(feeds)}
	sockets, err := wsapi.New(wsapi.Options{
		Engine: engine, Authenticate: p.authenticate, Watch: p.watch(sentinel), Streams: streams, Context: withCorrelation, Subject: subject,
	})
	if err != nil {
		return nil, err
	}
	for _, run := range []func(context.Context) error{streams.Run, sentinel.Run, sockets.Run} {
		p.group.Go(func() error { return run(ctx) })
	}
	api, err := httpapi.New(httpapi.Options{
		Engine: engine, Authenticate: p.authenticate, Context: withCorrelation, WebSocket: sockets, BodyBytes: maxBody,
	})
	if err != nil {
		return nil, err
	}
	keys, err := p.ring.Public()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/graphql", api)
	mux.Handle(delivery.Path, resolver.Deliveries)
	mux.HandleFunc("GET /.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys) })
	return secure(mux), nil
}

// resolver is the root of the API with every service.
func (p *platform) resolver() *graph.Resolver {
	policy := dial.Loopback()
	calls := invoke.New(adapterclient.New(p.ring, policy), p.ring, p.config.Issuer+"/graphql")
	instances := &instance.Service{DB: p.db, Actions: calls, Planner: calls}
	members := &member.Service{DB: p.db, Planner: calls}
	return &graph.Resolver{
		DB: p.db, Keys: p.ring, Progress: &graph.Progress{DB: p.db, Hub: p.hub},
		Identity:    &identity.Service{DB: p.db, PublicURL: p.config.Issuer},
		Catalog:     &catalog.Service{DB: p.db},
		Artifacts:   &artifact.Service{DB: p.db},
		Deliveries:  &delivery.Service{DB: p.db, Keys: p.ring, Log: p.log, Reach: fetch.Reach{Insecure: p.config.Sources}},
		Adapters:    &adapter.Service{DB: p.db, Describer: calls},
		Allocations: &allocation.Service{DB: p.db},
		Nodes:       &node.Service{DB: p.db},
		Tasks:       &task.Service{DB: p.db, Hub: p.hub},
		Instances:   instances,
		Members:     members,
		Retries:     &retry.Service{DB: p.db, Members: members.Again, Instances: instances.Again},
	}
}

// authenticate is the program's: the credential is read here and looked up with what it reads.
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

func subject(ctx context.Context) string {
	credential, _ := tx.CredentialFrom(ctx)
	return credential.ID()
}

func withCorrelation(ctx context.Context, id string) context.Context {
	info := authz.Request(ctx)
	info.CorrelationID = id
	return authz.WithRequest(ctx, info)
}

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

func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
