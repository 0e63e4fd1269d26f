// Package platform puts the platform together for measuring, as cmd/app-platform does, without its
// console, metrics and logins: the GraphQL handler over HTTP and WebSocket with its live groups,
// and the workers' engine and feed. The periodic reconcilers are left out, as they would find that
// none of the generated nodes has an agent.
package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/feed"
	"github.com/gpuaas/app-platform/workers/steps"
)

// Role is the child that runs the platform.
const Role process.Role = "platform"

// Config is what the platform is made of.
type Config struct {
	// DSN is the administrator's address of the database.
	DSN string
	// Keys is the folder of the signing keys, and Issuer the platform's public address.
	Keys, Issuer string
	// Connections of each login role's pool.
	Connections int
	// Work says whether operations are carried out.
	Work bool
	// Sources are hosts that artifacts come from, asked without TLS.
	Sources []string
}

// platform is the running platform.
type platform struct {
	config   Config
	log      *slog.Logger
	db       *tx.DB
	hub      *event.Hub
	ring     *token.Keyring
	denials  *audit.Denials
	accepted *accepted
	group    *errgroup.Group
}

// Main runs the platform as a child. Commands: "address" of its API, "accepted", "append", and
// the measures.
func Main(ctx context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	p := &platform{log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if err := json.Unmarshal(raw, &p.config); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p.group, ctx = errgroup.WithContext(ctx)
	address, err := p.start(ctx)
	stop := func() {
		cancel()
		if err := p.group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			p.log.Warn("the platform ended badly", "error", err)
		}
		if p.db != nil {
			p.db.Close()
		}
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return process.WithMeasures(process.Commands{
		"address":  func(json.RawMessage) (any, error) { return address, nil },
		"accepted": func(json.RawMessage) (any, error) { return p.accepted.take(), nil },
		"append":   func(arg json.RawMessage) (any, error) { return p.append(ctx, arg) },
	}), stop, nil
}

func (p *platform) start(ctx context.Context) (address string, err error) {
	if err := authz.Load(); err != nil {
		return "", err
	}
	if p.ring, err = token.LoadKeyring(p.config.Keys, p.config.Issuer); err != nil {
		return "", err
	}
	p.denials, p.accepted = audit.NewDenials(), &accepted{}
	p.db, err = tx.Open(ctx, p.config.DSN, tx.Options{Connections: p.config.Connections, Hints: p.accepted, Denials: p.denials})
	if err != nil {
		return "", err
	}
	p.hub = event.NewHub(p.db.Worker(), p.log)
	p.accepted.hub.Store(p.hub)
	p.group.Go(func() error { return p.hub.Run(ctx) })
	p.group.Go(func() error { return p.denials.Run(ctx, p.db.Worker(), p.log) })
	handler, err := p.handler(ctx)
	if err != nil {
		return "", err
	}
	if p.config.Work {
		p.group.Go(func() error { return p.work(ctx) })
	}
	return p.serve(ctx, handler)
}

// serve answers on a port of its own.
func (p *platform) serve(ctx context.Context, handler http.Handler) (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	p.group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	p.group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return listener.Addr().String(), nil
}

// work carries out operations.
func (p *platform) work(ctx context.Context) error {
	client := adapterclient.New(p.ring, dial.Loopback())
	defer client.Close()
	worker := engine.NewProcess(p.db, p.log)
	if err := worker.Register(ctx); err != nil {
		return err
	}
	runner := engine.New(engine.Config{DB: p.db, Hub: p.hub, Log: p.log, Worker: worker, Kinds: steps.Kinds(steps.Config{
		Client: client, Keys: p.ring, GraphQLURL: p.config.Issuer + "/graphql", Log: p.log,
	})})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return worker.Run(ctx) })
	group.Go(func() error { return runner.Run(ctx) })
	group.Go(func() error { return feed.New(p.db, client, worker.ID(), p.log).Run(ctx) })
	return group.Wait()
}
