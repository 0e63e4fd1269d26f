package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/sshca"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/graph/deliveryhttp"
	"github.com/gpuaas/app-platform/graph/kept"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/migrations"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport/compress"
	"github.com/gpuaas/app-platform/workers/meter"
	"github.com/gpuaas/app-platform/workers/reconcile/stats"
	hooks "github.com/gpuaas/app-platform/workers/webhook"
)

// Migrate brings the database up to this version.
func Migrate(ctx context.Context, dsn string) error {
	if dsn == "" {
		return fmt.Errorf("--database-url or DATABASE_URL is required")
	}
	return migrations.Up(ctx, dsn)
}

// Bootstrap creates the first operator and returns a one-time login code.
func Bootstrap(ctx context.Context, dsn, email, name string) (string, error) {
	if dsn == "" {
		return "", fmt.Errorf("--database-url or DATABASE_URL is required")
	}
	made, err := identity.Bootstrap(ctx, dsn, email, name)
	if err != nil {
		return "", err
	}
	return made.Code, nil
}

// platform is what the roles of one process share.
type platform struct {
	config  *Config
	log     *slog.Logger
	db      *tx.DB
	hub     *event.Hub
	ring    *token.Keyring
	ssh     *sshca.Authorities
	vault   *custody.Vault
	trust   adapterclient.Trust
	denials *audit.Denials
	process string       // names this process among its peers
	found   stats.Stats  // by the reconcilers, when this process works
	sent    hooks.Stats  // of webhooks, likewise
	metered meter.Stats  // of usage, likewise
	metrics *metrics.Set // of requests and of all that this process does
	// delivered counts the parts of artifacts that nodes fetched here.
	delivered deliveryhttp.Stats
	answers   *compress.Pool // compresses what this process answers
	kept      atomic.Pointer[kept.Answers]
}

// Server is one process of the platform, opened and not yet serving: its listeners accept, its database is
// migrated and connected.
type Server struct {
	platform  *platform
	listeners []net.Listener
	nodes     []net.Listener // which serve nodes alone
}

// Run serves until ctx ends, and then stops in order: no new work, work under way handed over or
// finished, connections closed.
func Run(ctx context.Context, config *Config, log *slog.Logger) error {
	server, err := Open(ctx, config, log)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// Open checks the configuration, opens the listeners, migrates the database and connects to it. What Open returns must
// be run: Run closes it.
func Open(ctx context.Context, config *Config, log *slog.Logger) (*Server, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	if err := authz.Load(); err != nil {
		return nil, fmt.Errorf("permission policy: %w", err)
	}
	listeners, nodes, err := config.listeners()
	if err != nil {
		return nil, errors.Join(err, closeAll(listeners), closeAll(nodes))
	}
	p, err := open(ctx, config, log)
	if err != nil {
		return nil, errors.Join(err, closeAll(listeners), closeAll(nodes))
	}
	return &Server{platform: p, listeners: listeners, nodes: nodes}, nil
}

// closeAll closes listeners that nothing serves.
func closeAll(listeners []net.Listener) error {
	var failed error
	for _, listener := range listeners {
		failed = errors.Join(failed, listener.Close())
	}
	return failed
}

// Addresses returns the addresses that the server listens on, host:port, in the order of the configuration.
func (s *Server) Addresses() []string {
	addresses := make([]string, len(s.listeners))
	for i, listener := range s.listeners {
		addresses[i] = listener.Addr().String()
	}
	return addresses
}

// Answers returns what the running server answers people's reads from; nil before it runs and for one without the API.
func (s *Server) Answers() *kept.Answers { return s.platform.kept.Load() }

// DB returns the server's database and Hub what receives its hints, so that a measurement can write, and watch commits,
// in the server's own process.
func (s *Server) DB() *tx.DB { return s.platform.db }

// Hub returns the receiver of the database's hints.
func (s *Server) Hub() *event.Hub { return s.platform.hub }

// Run serves until ctx ends, and then stops in order. It closes the database.
func (s *Server) Run(ctx context.Context) error {
	p := s.platform
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.db.KeepTime(ctx) })
	group.Go(func() error { return p.hub.Run(ctx) })
	group.Go(func() error { return p.denials.Run(ctx, p.db.Worker(), p.log) })
	group.Go(func() error { return p.reloadKeys(ctx) })
	if p.config.has("worker") {
		group.Go(func() error { return p.work(ctx) })
	}
	if p.config.has("billing") {
		group.Go(func() error { return p.bill(ctx) })
	}
	if err := p.serve(ctx, group, s.listeners, s.nodes); err != nil {
		cancel() // what runs already must end before the database closes
		return whyNot(err, p.await(ctx, group))
	}
	return p.await(ctx, group)
}

// whyNot is why a server did not begin. It drops ended where that is context.Canceled: this is only the consequence, as
// the tasks beside it were canceled for err.
func whyNot(err, ended error) error {
	if errors.Is(ended, context.Canceled) {
		return err
	}
	return errors.Join(err, ended)
}

// await waits for the end of all that runs, and closes the database. A process whose clock is off gets skewMost from
// when that was found: what still runs then ends with the process, as when it is killed.
func (p *platform) await(ctx context.Context, running *errgroup.Group) error {
	ended := make(chan error, 1)
	go func() {
		err := running.Wait()
		p.db.Close()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	var bound <-chan time.Time // for ever, unless
	if errors.Is(context.Cause(ctx), tx.ErrSkew) {
		bound = time.After(skewMost)
	}
	select {
	case err := <-ended:
		return err
	case <-bound:
		p.log.Error("work under way did not end in time; it is aborted", "after", skewMost)
		return context.Cause(ctx)
	}
}

// open connects to the migrated database and makes the hub that receives its hints.
func open(ctx context.Context, config *Config, log *slog.Logger) (*platform, error) {
	ring, err := token.LoadKeyring(config.KeysDir, config.PublicURL)
	if err != nil {
		return nil, err
	}
	authorities, err := sshca.Load(config.KeysDir)
	if err != nil {
		return nil, err
	}
	vault, err := custody.Open(ctx, config.SecretsKeeper, config.KeysDir, config.SecretsKeepersBefore...)
	if err != nil {
		return nil, err
	}
	if err := migrations.Up(ctx, config.DatabaseURL); err != nil {
		return nil, err
	}
	if err := migrations.MemberPools(ctx, config.DatabaseURL, config.MemberAddresses, config.MemberRanges); err != nil {
		return nil, err
	}
	trust, err := config.adapterTrust(log)
	if err != nil {
		return nil, err
	}
	p := &platform{config: config, log: log, ring: ring, ssh: authorities, vault: vault, trust: trust,
		denials: audit.NewDenials(), metrics: metrics.New(verbs()), process: rand.Text()}
	p.db, err = tx.Open(ctx, config.DatabaseURL, p.database())
	if err != nil {
		return nil, err
	}
	p.hub = event.NewHub(p.db.Worker(), log)
	p.db.SetHints(p.hub)
	return p, nil
}

// database returns how the database is opened.
func (p *platform) database() tx.Options {
	return tx.Options{
		Connections: p.config.Connections, Denials: p.denials, Now: p.config.Clock,
		Tracer: p.config.traces().Statements(),
		Began: func(generation int64) {
			p.log.Warn("the database is on another server or timeline than before: a new generation begins; cursors "+
				"from what it lost are expired", "generation", generation)
		},
	}
}
