// Package gqlgen is an ordinary gqlgen server for the bench's documents: models and executor as gqlgen generates them,
// resolvers that fetch ahead what the documents select, in one round trip of prepared statements. It knows no callers.
package gqlgen

//go:generate go run github.com/99designs/gqlgen generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/rig/bench/peers"
	"github.com/gpuaas/app-platform/rig/bench/peers/gqlgen/generated"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// Role is the child that serves plain gqlgen.
const Role process.Role = "gqlgen"

// documents is how many parsed documents the server keeps.
const documents = 1000

// Main serves as a child. Commands: "address" and the measures.
func Main(ctx context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	var config peers.Config
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, nil, err
	}
	settings, err := pgxpool.ParseConfig(config.DSN)
	if err != nil {
		return nil, nil, fmt.Errorf("database address: %w", err)
	}
	settings.MaxConns = int32(config.Connections)
	settings.ConnConfig.RuntimeParams["search_path"] = peers.Schema
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	web := &http.Server{Handler: serve(pool), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	go func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "gqlgen:", err)
		}
	}()
	stop := func() {
		_ = web.Close()
		pool.Close()
	}
	return process.WithMeasures(process.Commands{
		"address": func(json.RawMessage) (any, error) { return listener.Addr().String(), nil },
	}), stop, nil
}

func serve(pool *pgxpool.Pool) http.Handler {
	server := handler.New(generated.NewExecutableSchema(generated.Config{Resolvers: &root{pool}}))
	server.AddTransport(transport.POST{})
	server.SetQueryCache(lru.New[*ast.QueryDocument](documents))
	mux := http.NewServeMux()
	mux.Handle("/graphql", server)
	return mux
}

// root has the resolvers.
type root struct{ pool *pgxpool.Pool }

// Query returns the resolvers of queries.
func (r *root) Query() generated.QueryResolver { return query{r} }

// Mutation returns the resolver of the one mutation.
func (r *root) Mutation() generated.MutationResolver { return mutation{r} }

type (
	query    struct{ *root }
	mutation struct{ *root }
)
