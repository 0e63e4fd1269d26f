// Package server wires the control plane together: database, services, transports, workers. It holds no rules.
package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/service/triage/links"
)

// Config is everything that can be configured in the server.
type Config struct {
	DatabaseURL string
	// Listen are addresses to listen on; ListenFDs are inherited listening descriptors. NodeListenFDs are those that
	// only nodes reach: they serve nodes and nothing else, so no console and no logins.
	Listen        []string
	ListenFDs     []int
	NodeListenFDs []int
	// PublicURL is the address people and links use; GraphQLURL the one that adapters receive, NodeURL the one nodes
	// fetch artifacts from.
	PublicURL  string
	GraphQLURL string
	NodeURL    string
	// AppsURL is the address below which endpoints of apps have hosts of their own, such as https://apps.example.com;
	// empty where browsers open none. PeerURL is where the platform's other processes reach this one.
	AppsURL string
	PeerURL string
	KeysDir string
	// SecretsKeeper names the keeper of secrets by URL; empty for a local key in KeysDir.
	SecretsKeeper string
	// SecretsKeepersBefore still unwrap what they wrapped, until it is wrapped again (Rewrap).
	SecretsKeepersBefore []string
	// KeyLife is the longest life of a service account's key, and that of a key created without an end; 0: no bound.
	KeyLife time.Duration
	// PullTokens are registries that take the platform's own pull tokens: host:port.
	PullTokens []string
	// Roles are what this process does: api, worker, billing.
	Roles []string
	// BillingEvery is how often usage is booked; BillingCurrency and BillingGrace are those of tenants without a
	// billing account.
	BillingEvery    time.Duration
	BillingCurrency string
	BillingGrace    time.Duration
	// Dev allows login links, introspection and GraphiQL, on this machine alone.
	Dev bool
	// AdapterHosts and RegistryHosts are what may be dialled: IP or CIDR, with an optional port.
	AdapterHosts  []string
	RegistryHosts []string
	// AdapterCert and AdapterKey are files of the certificate that the platform shows to adapters; empty for none.
	AdapterCert, AdapterKey string
	// InsecureAdapters lets adapters off loopback that were registered without an authority go on being called.
	InsecureAdapters bool
	// SandboxHosts is where adapters that tenants registered for themselves may be besides the public Internet, in the
	// same form; only there without TLS.
	SandboxHosts []string
	// WebhookHosts is where webhooks may be sent besides the public Internet, in the same form; only there without TLS.
	WebhookHosts []string
	// InsecureRegistries are registries spoken to without TLS.
	InsecureRegistries []string
	// AlsoRegistries are hosts that artifact sources may send the platform on to: their token and blob servers.
	AlsoRegistries []string
	// MemberAddresses and MemberRanges are the pools of the members' network, as CIDR; empty keeps the stored ones.
	MemberAddresses string
	MemberRanges    string
	Origins         []string
	Connections     int
	// KeptAnswers is how many MiB of answers are kept to be shown again; 0 keeps none.
	KeptAnswers int
	StopTimeout time.Duration
	NodeGrace   time.Duration
	LogLevel    string
	// Links are the templates of the addresses of the installation's own tools.
	Links links.Templates
	// OIDC is the identity provider that people log in at.
	OIDC OIDCConfig
	// Edge configures what a request passes between the network and the API.
	Edge EdgeConfig
	// Clock is this machine's; nil means the system's. It is compared with the database's, and decides nothing.
	Clock func() time.Time `json:"-"`
	// Traces makes the process's spans; nil for none.
	Traces *telemetry.Source `json:"-"`
}

// Defaults is the configuration before flags.
func Defaults() *Config {
	return &Config{
		DatabaseURL: os.Getenv("DATABASE_URL"), KeysDir: "keys", Roles: []string{"api", "worker", "billing"},
		BillingEvery: time.Minute, BillingCurrency: "EUR",
		BillingGrace: 72 * time.Hour,
		Connections:  16, KeptAnswers: 256, StopTimeout: 10 * time.Second, NodeGrace: 5 * time.Minute, LogLevel: "info",
		KeyLife: 365 * 24 * time.Hour,
	}
}

// traces returns the maker of spans.
func (c *Config) traces() *telemetry.Source {
	if c.Traces == nil {
		return telemetry.Off()
	}
	return c.Traces
}

// Bind ties the configuration to flags.
func (c *Config) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&c.DatabaseURL, "database-url", c.DatabaseURL,
		"administrator's address of the database (default $DATABASE_URL)")
	flags.StringSliceVar(&c.Listen, "listen", nil,
		"address to listen on, repeatable (default 127.0.0.1:8080 unless --listen-fd is given)")
	flags.IntSliceVar(&c.ListenFDs, "listen-fd", nil, "inherited listening descriptor, repeatable")
	flags.IntSliceVar(&c.NodeListenFDs, "node-listen-fd", nil,
		"inherited listening descriptor that only nodes reach: it serves them the API, keys and artifacts, and "+
			"neither console nor logins; repeatable")
	flags.StringVar(&c.PublicURL, "public-url", "", "address for people and links (default http://<first --listen>)")
	flags.StringVar(&c.GraphQLURL, "graphql-url", "",
		"address of the API that is sent to adapters (default <public-url>/graphql)")
	flags.StringVar(&c.NodeURL, "node-url", "",
		"address of the platform as nodes reach it, which they fetch artifacts from (default <public-url>)")
	flags.StringVar(&c.AppsURL, "apps-url", "",
		"address below which endpoints of apps have hosts of their own, such as https://apps.example.com; the "+
			"certificate covers *.apps.example.com too (default with --dev http://apps.localhost and "+
			"<public-url>'s port)")
	flags.StringVar(&c.PeerURL, "peer-url", "",
		"address at which the platform's other processes reach this very one (default the first --listen, with this "+
			"machine's name where it listens on all addresses)")
	flags.StringVar(&c.KeysDir, "keys-dir", c.KeysDir,
		"folder of the signing keys; a first key is created when it is empty")
	KeeperFlags(flags, &c.SecretsKeeper, &c.SecretsKeepersBefore)
	flags.StringSliceVar(&c.Roles, "roles", c.Roles, "what this process does: api, worker, billing")
	flags.DurationVar(&c.BillingEvery, "billing-every", c.BillingEvery, "how often the billing role books usage")
	flags.StringVar(&c.BillingCurrency, "billing-currency", c.BillingCurrency,
		"currency of tenants that have no billing account: ISO 4217")
	flags.DurationVar(&c.BillingGrace, "billing-grace", c.BillingGrace,
		"how long the periods of tenants without a billing account wait for late usage")
	flags.BoolVar(&c.Dev, "dev", false,
		"development: login links, introspection and GraphiQL; for loopback addresses only, without TLS and identity "+
			"provider")
	flags.StringSliceVar(&c.AdapterHosts, "adapter-allow", []string{"127.0.0.0/8", "::1/128"},
		"where adapters may live: IP or CIDR with an optional port, repeatable")
	flags.StringVar(&c.AdapterCert, "adapter-client-cert", "",
		"certificate chain that the platform presents to adapters that request one, PEM; reloaded when it changes")
	flags.StringVar(&c.AdapterKey, "adapter-client-key", "", "private key of --adapter-client-cert, PEM")
	flags.BoolVar(&c.InsecureAdapters, "adapter-insecure", false,
		"keep calling adapters off loopback that are registered without TLS that can be verified, until they are "+
			"registered by https")
	flags.StringSliceVar(&c.SandboxHosts, "sandbox-allow", nil,
		"where the adapters of tenants' sandboxes may be besides the public Internet, also by http: IP or CIDR with "+
			"an optional port, repeatable")
	flags.StringSliceVar(&c.RegistryHosts, "registry-allow", nil,
		"registries inside the network that artifacts may come from, besides public ones: IP or CIDR with an optional "+
			"port, repeatable")
	flags.StringSliceVar(&c.WebhookHosts, "webhook-allow", nil,
		"where webhooks may be sent besides the public Internet, also by http: IP or CIDR with an optional port, "+
			"repeatable")
	flags.StringSliceVar(&c.InsecureRegistries, "registry-insecure", nil,
		"registries that are called without TLS: host:port, repeatable")
	flags.StringSliceVar(&c.AlsoRegistries, "registry-also", nil,
		"hosts that artifact sources may redirect the platform to, such as their token and blob servers: host or "+
			"host:port, repeatable")
	flags.DurationVar(&c.KeyLife, "key-life", c.KeyLife,
		"longest life of a service account's key, and the life of one that is created without an end; 0 for no bound")
	flags.StringSliceVar(&c.PullTokens, "registry-pull-tokens", nil,
		"registries that accept the platform's own pull tokens, which its key set verifies: host:port, repeatable")
	flags.StringSliceVar(&c.Origins, "origin", nil,
		"pages of other hosts that may call the API: https://host:port, repeatable")
	flags.StringVar(&c.MemberAddresses, "member-addresses", "",
		"pool of members' addresses, a block of IPv4 that nothing else uses (default 100.64.0.0/11 in a new database)")
	flags.StringVar(&c.MemberRanges, "member-ranges", "",
		"pool of the further ranges that manifests declare, beside the other (default 100.96.0.0/11 in a new database)")
	flags.IntVar(&c.Connections, "db-connections", c.Connections, "database connections of each login role")
	flags.IntVar(&c.KeptAnswers, "kept-answers", c.KeptAnswers,
		"memory for answers that are returned again while nothing they depend on changes, in MiB; 0 keeps none")
	flags.DurationVar(&c.NodeGrace, "node-grace", c.NodeGrace,
		"how long a node may be silent before its members are lost, at least 30s")
	flags.DurationVar(&c.StopTimeout, "stop-timeout", c.StopTimeout,
		"how long requests under way may take when the server stops")
	c.bindLinks(flags)
	c.Edge.bind(flags)
	c.OIDC.bind(flags)
	flags.StringVar(&c.LogLevel, "log-level", c.LogLevel, "lowest level that is logged: debug, info, warn or error")
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
		if role != "api" && role != "worker" && role != "billing" {
			return fmt.Errorf("--roles: %q is not one of api, worker, billing", role)
		}
	}
	if err := c.completeBilling(); err != nil {
		return err
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
	c.completePeer()
	if err := errors.Join(c.completeApps(), c.Links.Check()); err != nil {
		return err
	}
	if (c.AdapterCert == "") != (c.AdapterKey == "") {
		return errors.New("--adapter-client-cert and --adapter-client-key go together")
	}
	for name, pool := range map[string]string{"--member-addresses": c.MemberAddresses,
		"--member-ranges": c.MemberRanges} {
		if block, err := netip.ParsePrefix(pool); pool != "" &&
			(err != nil || !block.Addr().Is4() || block != block.Masked()) {
			return fmt.Errorf("%s: %q is not a block of IPv4 addresses such as 100.64.0.0/11", name, pool)
		}
	}
	if err := c.OIDC.complete(); err != nil {
		return err
	}
	if err := c.developing(); err != nil {
		return err
	}
	return c.Edge.complete()
}

// developing refuses --dev where other machines reach the server: an administrator's login link logs in as anyone of a
// tenant.
func (c *Config) developing() error {
	if !c.Dev {
		return nil
	}
	if c.secure() {
		return errors.New("--dev is for this machine only, and --public-url is https: leave --dev out; the " +
			"bootstrap's code logs the first operator in without it")
	}
	if c.OIDC.Issuer != "" {
		return errors.New("--dev is for this machine only, and --oidc-issuer is given: leave --dev out; people log " +
			"in at the identity provider")
	}
	if address, err := url.Parse(c.PublicURL); err != nil || !adapterclient.Loopback(address.Hostname()) {
		return fmt.Errorf("--dev is for this machine only, and --public-url is %s: leave --dev out, or take a "+
			"loopback address", c.PublicURL)
	}
	return nil
}

// completeBilling refuses what cannot be billed by.
func (c *Config) completeBilling() error {
	if _, err := money.Minor(c.BillingCurrency); err != nil && c.has("billing") {
		return fmt.Errorf("--billing-currency: %w", err)
	}
	if c.has("billing") && c.BillingEvery <= 0 {
		return errors.New("--billing-every must be more than 0")
	}
	return nil
}

// secure reports whether people reach the installation by TLS.
func (c *Config) secure() bool { return strings.HasPrefix(c.PublicURL, "https://") }

func (c *Config) has(role string) bool {
	for _, r := range c.Roles {
		if r == role {
			return true
		}
	}
	return false
}

// listeners opens the addresses and takes over the inherited descriptors; nodes are those that serve nodes alone. In
// development the addresses must be loopback ones, whatever their names are.
func (c *Config) listeners() (open, nodes []net.Listener, err error) {
	for _, address := range c.Listen {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return open, nodes, fmt.Errorf("listen: %w", err)
		}
		open = append(open, listener)
	}
	for _, fd := range c.ListenFDs {
		listener, err := inherited("--listen-fd", fd)
		if err != nil {
			return open, nodes, err
		}
		open = append(open, listener)
	}
	for _, fd := range c.NodeListenFDs {
		listener, err := inherited("--node-listen-fd", fd)
		if err != nil {
			return open, nodes, err
		}
		nodes = append(nodes, listener)
	}
	for _, listener := range open {
		if at, tcp := listener.Addr().(*net.TCPAddr); c.Dev && tcp && !at.IP.IsLoopback() {
			return open, nodes, fmt.Errorf("--dev is for this machine only, and the server would listen on %s: leave "+
				"--dev out, or listen on 127.0.0.1", at)
		}
	}
	return open, nodes, nil
}

// inherited takes over a listening descriptor.
func inherited(flag string, fd int) (net.Listener, error) {
	file := os.NewFile(uintptr(fd), fmt.Sprintf("listener-%d", fd))
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("%s %d: %w", flag, fd, err)
	}
	_ = file.Close() // the listener holds a copy
	return listener, nil
}
