package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Bounds of a connection. A body has its own deadline where it is read, and an operation its own
// where it runs; these hold what neither sees.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10 // bytes
	maxStreams    = 100      // of one HTTP/2 connection
)

// standardMetrics is where metrics are served unless another address is given: for this machine alone.
const standardMetrics = "127.0.0.1:9464"

// EdgeConfig configures what a request passes between the network and the API.
type EdgeConfig struct {
	// TLSCert and TLSKey are files; empty serves plain HTTP, as behind a proxy.
	TLSCert, TLSKey string
	// TrustedProxies are CIDR ranges, and ForwardedHeader the field that they write.
	TrustedProxies  []string
	ForwardedHeader string
	// MetricsListen are addresses that serve metrics, which the public ones never do.
	MetricsListen []string
	Limits        edge.Config
	// Introspection and Suggestions of GraphQL; both are on in development.
	Introspection, Suggestions bool
}

// bind ties the configuration to flags.
func (c *EdgeConfig) bind(flags *pflag.FlagSet) {
	c.Limits = edge.DefaultConfig()
	flags.StringVar(&c.TLSCert, "tls-cert", "", "certificate chain to serve TLS with, PEM; reloaded when it changes")
	flags.StringVar(&c.TLSKey, "tls-key", "", "private key of --tls-cert, PEM")
	flags.StringSliceVar(&c.TrustedProxies, "trusted-proxies", nil,
		"proxies that are trusted to report a caller's address and scheme: IP or CIDR, repeatable")
	flags.StringVar(&c.ForwardedHeader, "forwarded-header", edge.XForwardedFor,
		"the header that these proxies set: X-Forwarded-For (with X-Forwarded-Proto) or Forwarded")
	flags.StringSliceVar(&c.MetricsListen, "metrics-listen", []string{standardMetrics},
		`address that serves /metrics, which --listen never does, repeatable; "" for none`)
	flags.Float64Var(&c.Limits.SubjectRate, "rate-limit", c.Limits.SubjectRate,
		"operations a second of one credential, five seconds' worth at once; 0 = off")
	flags.IntVar(&c.Limits.SubjectAtOnce, "concurrency-limit", c.Limits.SubjectAtOnce,
		"operations of one credential under way; 0 = off")
	flags.Float64Var(&c.Limits.AddressRate, "rate-limit-address", c.Limits.AddressRate,
		"requests a second of one network address (IPv6: one /64); 0 = off")
	flags.IntVar(&c.Limits.AddressAtOnce, "concurrency-limit-address", c.Limits.AddressAtOnce,
		"requests of one network address under way; 0 = off")
	flags.Float64Var(&c.Limits.SocketRate, "rate-limit-sockets", c.Limits.SocketRate,
		"sockets a second that one network address may open; 0 = off")
	flags.Float64Var(&c.Limits.LoginRate, "rate-limit-logins", c.Limits.LoginRate,
		"requests a second of one network address to /auth/; 0 = off")
	flags.Float64Var(&c.Limits.DeliveryRate, "rate-limit-deliveries", c.Limits.DeliveryRate,
		"parts of artifacts a second that one network address may fetch; 0 = off")
	flags.IntVar(&c.Limits.DeliveryAtOnce, "concurrency-limit-deliveries", c.Limits.DeliveryAtOnce,
		"parts of artifacts that one network address may fetch at once; 0 = off")
	flags.BoolVar(&c.Introspection, "introspection", false, "serve GraphQL introspection (always in --dev)")
	flags.BoolVar(&c.Suggestions, "suggestions", false,
		"suggest what a misspelt name in a document may have meant (always in --dev)")
}

// complete refuses what cannot work.
func (c *EdgeConfig) complete() error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	c.ForwardedHeader = cmp.Or(c.ForwardedHeader, edge.XForwardedFor)
	_, err := edge.ParseProxies(c.TrustedProxies, c.ForwardedHeader)
	return err
}

// gate is what a request passes before the API sees it.
type gate struct {
	proxies edge.Proxies
	limits  *edge.Limits
	guesses *edge.Guesses
}

func newGate(config *EdgeConfig) (*gate, error) {
	proxies, err := edge.ParseProxies(config.TrustedProxies, cmp.Or(config.ForwardedHeader, edge.XForwardedFor))
	if err != nil {
		return nil, err
	}
	return &gate{proxies: proxies, limits: edge.NewLimits(config.Limits), guesses: edge.NewGuesses()}, nil
}

// around wraps the handler of everything: it finds the address that a request comes from, and counts the request.
func (g *gate) around(next http.Handler) http.Handler {
	return g.proxies.Handler(g.limits.Handler(next))
}

// admit counts an operation for the fingerprint of its credential. The credential is not verified yet, so that a forged
// one must not count against the subject that it names.
func (g *gate) admit(ctx context.Context) (release func(), err error) {
	return g.limits.Subject(subject(ctx))
}

// malformed is the answer to a credential that is refused without the database: a bad checksum, a bad signature. A
// token that was valid and has expired does not count as a guess.
func (g *gate) malformed(attempt edge.Attempt, err error) error {
	if !fault.Is(err, fault.Unauthenticated) {
		return err
	}
	if wait := g.guesses.Check(attempt); wait != nil {
		return wait
	}
	g.guesses.Failed(attempt)
	return err
}

// subject is whose operations and sockets are counted together.
func subject(ctx context.Context) string {
	credential, shown := tx.CredentialFrom(ctx)
	if !shown {
		return ""
	}
	return credential.Fingerprint()
}

// whose names the subject of an authorised subscription: the person or account, whichever credential was shown.
func (p *platform) whose(ctx context.Context) string {
	if actor := p.caller(ctx); actor != nil {
		return string(actor.Kind) + " " + string(actor.ID)
	}
	return subject(ctx)
}

// heldKey is the context key of whether the credential was found valid since the request or socket began.
type heldKey struct{}

// entered returns the caller once the credential was found valid. Its id alone proves nothing: anyone may show it.
func (p *platform) entered(ctx context.Context) *authz.Actor {
	if held, ok := ctx.Value(heldKey{}).(*atomic.Bool); ok && held.Load() {
		return p.caller(ctx)
	}
	return nil
}

// caller returns the caller by the credential's id, or nil when that is not known.
func (p *platform) caller(ctx context.Context) *authz.Actor {
	if credential, shown := tx.CredentialFrom(ctx); shown {
		return p.db.Seen(credential)
	}
	return nil
}

// newServer is an HTTP server whose every wait has an end.
func (p *platform) newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeader, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
}

// serve answers HTTP on every listener, nodes alone on theirs, and metrics on theirs. A worker alone serves health and
// metrics.
func (p *platform) serve(ctx context.Context, group *errgroup.Group, listeners, nodes []net.Listener) error {
	serves, err := p.handler(ctx, group)
	if err != nil {
		return err
	}
	server := p.newServer(serves.all)
	serve := server.Serve
	if p.config.Edge.TLSCert != "" {
		certificates, err := edge.LoadCertificates(p.config.Edge.TLSCert, p.config.Edge.TLSKey, p.log)
		if err != nil {
			return err
		}
		server.TLSConfig = certificates.Config()
		p.metrics.Ends("edge", func() time.Time { return certificates.Current().Leaf.NotAfter })
		serve = func(listener net.Listener) error { return server.ServeTLS(listener, "", "") }
	}
	for _, listener := range listeners {
		p.log.Info("serving", "address", listener.Addr().String(), "tls", server.TLSConfig != nil)
		group.Go(func() error { return ended(serve(listener)) })
	}
	group.Go(func() error { return p.shutDown(ctx, server) })
	for _, listener := range nodes {
		p.serveApart(ctx, group, "serving nodes", listener, serves.nodes)
	}
	for _, address := range p.config.Edge.MetricsListen {
		listener, err := p.listenMetrics(address)
		if err != nil {
			return fmt.Errorf("--metrics-listen: %w", err)
		}
		p.serveApart(ctx, group, "serving metrics", listener, serves.metrics)
	}
	return nil
}

// serveApart answers on a listener that is not the public one, by plain HTTP.
func (p *platform) serveApart(ctx context.Context, group *errgroup.Group, what string, listener net.Listener,
	handler http.Handler) {
	own := p.newServer(handler)
	p.log.Info(what, "address", listener.Addr().String())
	group.Go(func() error { return ended(own.Serve(listener)) })
	group.Go(func() error { return p.shutDown(ctx, own) })
}

// listenMetrics opens an address for metrics. A second server of one machine, started without an address for metrics,
// takes a free port instead of the standard one.
func (p *platform) listenMetrics(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if address == standardMetrics && errors.Is(err, syscall.EADDRINUSE) {
		p.log.Warn("the standard address of metrics is in use; a free port is used: give --metrics-listen", "standard",
			standardMetrics)
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return listener, err
}

// ended is why a server stopped; nil when it was shut down.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// shutDown waits for the end of ctx, and then for the requests under way, for a while.
func (p *platform) shutDown(ctx context.Context, server *http.Server) error {
	<-ctx.Done()
	within := p.stopWithin(context.Cause(ctx))
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := server.Shutdown(stopping); err == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	p.log.Warn("requests under way did not end in time; their connections are closed", "after", within)
	return server.Close()
}

// A process whose clock is off must have stopped within ten seconds. It is found within three.
const (
	skewStop = 3 * time.Second // for requests under way
	skewMost = 5 * time.Second // for all that runs
)

// stopWithin is how long requests under way get when the process stops for the cause.
func (p *platform) stopWithin(cause error) time.Duration {
	if errors.Is(cause, tx.ErrSkew) {
		return min(p.config.StopTimeout, skewStop)
	}
	return p.config.StopTimeout
}
