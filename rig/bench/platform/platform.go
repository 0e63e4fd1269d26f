// Package platform runs the product's own server as a child of the benchmark: the composition of package server, edge,
// console and reconcilers included. Two things are set apart from what an operator would run: the edge's limits are out
// of reach, since one machine is every caller, and the child reports when each operation was accepted.
package platform

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"

	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/server"
)

// Role is the child that runs the platform.
const Role process.Role = "platform"

// outOfReach bounds rates and counts that no benchmark meets: the edge counts every request, and refuses none.
const outOfReach = 1 << 30

// Config holds the platform's configuration.
type Config struct {
	// DSN is the administrator's address of the database.
	DSN string
	// Keys is the folder of the signing keys, and Issuer the platform's public address.
	Keys, Issuer string
	// Connections of each login role's pool.
	Connections int
	// Work says whether operations are carried out.
	Work bool
	// KeepNothing has every read served from the database, as if it were the first of its kind.
	KeepNothing bool
	// Sources are hosts that artifacts come from, reached without TLS.
	Sources []string
	// Certificate and Key are files to serve TLS with; empty for plain HTTP.
	Certificate, Key string
}

// Answers are how many reads the platform served with a kept answer, and how many from the database.
type Answers struct{ Shown, Read int64 }

// platform is the running platform.
type platform struct {
	db       *tx.DB
	accepted accepted
}

// Main runs the platform as a child. Commands: "address" of its API, "accepted", "answers", "append", and
// the measures.
func Main(ctx context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var config Config
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, nil, err
	}
	p := &platform{}
	ctx, cancel := context.WithCancel(ctx)
	opened, err := server.Open(ctx, config.server(), log)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	p.db, p.accepted.hub = opened.DB(), opened.Hub()
	p.db.SetHints(&p.accepted)
	ended := make(chan error, 1)
	go func() { ended <- opened.Run(ctx) }()
	stop := func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			log.Error("the platform ended with an error", "error", err)
		}
	}
	address := opened.Addresses()[0]
	return process.WithMeasures(process.Commands{
		"address":  func(json.RawMessage) (any, error) { return address, nil },
		"accepted": func(json.RawMessage) (any, error) { return p.accepted.take(), nil },
		"answers": func(json.RawMessage) (any, error) {
			return Answers{Shown: opened.Answers().Shown(), Read: opened.Answers().Fresh()}, nil
		},
		"append": func(arg json.RawMessage) (any, error) { return p.append(ctx, arg) },
	}), stop, nil
}

// server returns the configuration of the product's server.
func (c *Config) server() *server.Config {
	config := server.Defaults()
	config.DatabaseURL, config.KeysDir, config.PublicURL = c.DSN, c.Keys, c.Issuer
	config.Listen, config.Connections = []string{"127.0.0.1:0"}, c.Connections
	config.AdapterHosts, config.InsecureRegistries = []string{"127.0.0.0/8"}, c.Sources
	config.RegistryHosts = []string{"127.0.0.0/8"}
	config.Edge.TLSCert, config.Edge.TLSKey = c.Certificate, c.Key
	config.Edge.Limits = edge.Config{
		SubjectRate: outOfReach, SubjectAtOnce: outOfReach, AddressRate: outOfReach, AddressAtOnce: outOfReach,
		SocketRate: outOfReach,
		LoginRate:  outOfReach, DeliveryRate: outOfReach, DeliveryAtOnce: outOfReach,
	}
	if c.KeepNothing {
		config.KeptAnswers = 0
	}
	if !c.Work {
		config.Roles = []string{"api"}
	}
	return config
}
