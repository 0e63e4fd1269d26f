// Package server wires the control plane together: database, services, transports, workers. It
// holds no rules.
package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Config is everything the server can be told.
type Config struct {
	DatabaseURL string
	// Listen are addresses to listen on; ListenFDs are inherited listening descriptors.
	Listen    []string
	ListenFDs []int
	// PublicURL is the address people and links use; GraphQLURL the one adapters are told, NodeURL the one nodes fetch
	// artifacts from.
	PublicURL  string
	GraphQLURL string
	NodeURL    string
	KeysDir    string
	// SecretsKeeper names the keeper of secrets by URL; empty for a local key in KeysDir.
	SecretsKeeper string
	// SecretsKeepersBefore still unwrap what they wrapped, until it was wrapped anew.
	SecretsKeepersBefore []string
	// PullTokens are registries that take the platform's own pull tokens: host:port.
	PullTokens []string
	// Roles are what this process does: api, worker.
	Roles []string
	// Dev allows one-time logins, introspection and GraphiQL.
	Dev bool
	// AdapterHosts and RegistryHosts are what may be dialled: IP or CIDR, with an optional port.
	AdapterHosts  []string
	RegistryHosts []string
	// WebhookHosts is where webhooks may be sent besides the public Internet, in the same form; only there without TLS.
	WebhookHosts []string
	// InsecureRegistries are registries spoken to without TLS.
	InsecureRegistries []string
	// AlsoRegistries are hosts that artifact sources may send the platform on to: their token and blob servers.
	AlsoRegistries []string
	Origins        []string
	Connections    int
	StopTimeout    time.Duration
	LogLevel       string
	// OIDC is the identity provider that people log in at.
	OIDC OIDCConfig
	// Edge is what stands between the network and the API.
	Edge EdgeConfig
}

// Defaults is the configuration before flags.
func Defaults() *Config {
	return &Config{
		DatabaseURL: os.Getenv("DATABASE_URL"), KeysDir: "keys", Roles: []string{"api", "worker"},
		Connections: 16, StopTimeout: 10 * time.Second, LogLevel: "info",
	}
}

// Bind ties the configuration to flags.
func (c *Config) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&c.DatabaseURL, "database-url", c.DatabaseURL, "administrator's address of the database (default $DATABASE_URL)")
	flags.StringSliceVar(&c.Listen, "listen", nil, "address to listen on, repeatable (default 127.0.0.1:8080 unless --listen-fd is given)")
	flags.IntSliceVar(&c.ListenFDs, "listen-fd", nil, "inherited listening descriptor, repeatable")
	flags.StringVar(&c.PublicURL, "public-url", "", "address that people and links use (default http://<first --listen>)")
	flags.StringVar(&c.GraphQLURL, "graphql-url", "", "address of the API that adapters are told (default <public-url>/graphql)")
	flags.StringVar(&c.NodeURL, "node-url", "", "address of the platform as nodes reach it, which they fetch artifacts from (default <public-url>)")
	flags.StringVar(&c.KeysDir, "keys-dir", c.KeysDir, "folder of the signing keys; a first key is made when it is empty")
	KeeperFlags(flags, &c.SecretsKeeper, &c.SecretsKeepersBefore)
	flags.StringSliceVar(&c.Roles, "roles", c.Roles, "what this process does: api, worker")
	flags.BoolVar(&c.Dev, "dev", false, "development: one-time logins, introspection and GraphiQL")
	flags.StringSliceVar(&c.AdapterHosts, "adapter-allow", []string{"127.0.0.0/8", "::1/128"}, "where adapters may live: IP or CIDR with an optional port, repeatable")
	flags.StringSliceVar(&c.RegistryHosts, "registry-allow", nil, "registries inside the network that artifacts may come from, besides public ones: IP or CIDR with an optional port, repeatable")
	flags.StringSliceVar(&c.WebhookHosts, "webhook-allow", nil, "where webhooks may be sent besides the public Internet, there by http too: IP or CIDR with an optional port, repeatable")
	flags.StringSliceVar(&c.InsecureRegistries, "registry-insecure", nil, "registries spoken to without TLS: host:port, repeatable")
	flags.StringSliceVar(&c.AlsoRegistries, "registry-also", nil, "hosts that artifact sources may send the platform on to, such as their token and blob servers: host or host:port, repeatable")
	flags.StringSliceVar(&c.PullTokens, "registry-pull-tokens", nil, "registries that take the platform's own pull tokens, as its key set verifies them: host:port, repeatable")
	flags.StringSliceVar(&c.Origins, "origin", nil, "pages of other hosts that may call the API: https://host:port, repeatable")
	flags.IntVar(&c.Connections, "db-connections", c.Connections, "database connections of each login role")
	flags.DurationVar(&c.StopTimeout, "stop-timeout", c.StopTimeout, "how long requests under way may take when the server stops")
	c.Edge.bind(flags)
	c.OIDC.bind(flags)
	flags.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
}

// KeeperFlags ties the keepers of secrets to flags.
func KeeperFlags(flags *pflag.FlagSet, first *string, previous *[]string) {
	flags.StringVar(first, "secrets-keeper", "", "keeper that wraps the keys of secrets, by URL: hashivault://, awskms://, gcpkms://, azurekeyvault:// (default a local key in --keys-dir)")
	flags.StringArrayVar(previous, "secrets-keeper-previous", nil, `keeper that has wrapped until now and still unwraps, by URL, or "local"; repeatable, at most 7`)
}

// Level is the lowest level that is logged.
func (c *Config) Level() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return slog.LevelInfo
	}
	return level
}

// complete fills what follows from the rest and refuses what cannot work.
func (c *Config) complete() error {
	if c.DatabaseURL == "" {
		return errors.New("--database-url or DATABASE_URL is required")
	}
	if len(c.Listen) == 0 && len(c.ListenFDs) == 0 {
		c.Listen = []string{"127.0.0.1:8080"}
	}
	for _, role := range c.Roles {
		if role != "api" && role != "worker" {
			return fmt.Errorf("--roles: %q is neither api nor worker", role)
		}
	}
	if c.PublicURL == "" && len(c.Listen) > 0 {
		c.PublicURL = "http://" + c.Listen[0]
	}
	if c.PublicURL == "" {
		return errors.New("--public-url is required with --listen-fd alone")
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.GraphQLURL == "" {
		c.GraphQLURL = c.PublicURL + "/graphql"
	}
	if c.NodeURL == "" {
		c.NodeURL = c.PublicURL
	}
	c.NodeURL = strings.TrimRight(c.NodeURL, "/")
	if err := c.OIDC.complete(); err != nil {
		return err
	}
	return c.Edge.complete()
}

func (c *Config) has(role string) bool {
	for _, r := range c.Roles {
		if r == role {
			return true
		}
	}
	return false
}

// listeners opens the addresses and takes over the inherited descriptors.
func (c *Config) listeners() ([]net.Listener, error) {
	var open []net.Listener
	for _, address := range c.Listen {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return open, fmt.Errorf("listen: %w", err)
		}
		open = append(open, listener)
	}
	for _, fd := range c.ListenFDs {
		file := os.NewFile(uintptr(fd), fmt.Sprintf("listener-%d", fd))
		listener, err := net.FileListener(file)
		if err != nil {
			return open, fmt.Errorf("--listen-fd %d: %w", fd, err)
		}
		_ = file.Close() // the listener holds a copy
		open = append(open, listener)
	}
	return open, nil
}
