package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/apphttp"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/reach"
	"github.com/gpuaas/app-platform/graph/scrape"
	"github.com/gpuaas/app-platform/graph/volumehttp"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
	"github.com/gpuaas/app-platform/service/endpoint"
)

// completeApps fills the address of apps, and refuses one at which an app could get at the console's cookies.
func (c *Config) completeApps() error {
	public, err := url.Parse(c.PublicURL)
	if err != nil {
		return fmt.Errorf("--public-url: %w", err)
	}
	if c.AppsURL == "" && c.Dev {
		c.AppsURL = (&url.URL{Scheme: "http", Host: hostPort("apps.localhost", public.Port())}).String()
	}
	if c.AppsURL == "" {
		return nil
	}
	apps, err := url.Parse(strings.TrimRight(c.AppsURL, "/"))
	if err != nil || apps.Host == "" || apps.Path != "" || apps.Scheme != "http" && apps.Scheme != "https" ||
		net.ParseIP(apps.Hostname()) != nil {
		return fmt.Errorf("--apps-url: %q is not an address like https://apps.example.com, by host name", c.AppsURL)
	}
	if strings.HasSuffix("."+public.Hostname(), "."+apps.Hostname()) {
		return fmt.Errorf("--apps-url: the console at %s would be one of the apps' hosts: choose another name for them",
			c.PublicURL)
	}
	c.AppsURL = apps.String()
	return nil
}

// completePeer fills where this process is reached: at its own listener, since behind the public address is any
// process.
func (c *Config) completePeer() {
	if c.PeerURL != "" || len(c.Listen) == 0 {
		return
	}
	host, port, err := net.SplitHostPort(c.Listen[0])
	if err != nil {
		return
	}
	if address := net.ParseIP(host); host == "" || address != nil && address.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return
		}
	}
	c.PeerURL = "http://" + net.JoinHostPort(host, port)
	if c.Edge.TLSCert != "" {
		c.PeerURL = "https://" + net.JoinHostPort(host, port)
	}
}

// hostPort is a host with a port, if there is one.
func hostPort(host, port string) string {
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// endpoints holds the verbs by which people reach what runs.
func (p *platform) endpoints() *endpoint.Service {
	service := &endpoint.Service{DB: p.db, Keys: p.ring, SSH: p.ssh, Process: p.process, Address: p.config.PeerURL}
	if p.config.AppsURL != "" {
		service.Apps, _ = url.Parse(p.config.AppsURL) // completeApps has read it
	}
	return service
}

// relay adds what agents, peers and programs connect to, and returns what serves the hosts of apps around next.
func (p *platform) relay(ctx context.Context, group *errgroup.Group, gate *gate, sentinel *live.Sentinel,
	resolver *graph.Resolver, mux, nodes *http.ServeMux,
	registry *prometheus.Registry) func(http.Handler) http.Handler {
	relay := &reach.Relay{Endpoints: resolver.Endpoints, Keys: p.ring, Sentinel: sentinel, Log: p.log,
		Origins: p.config.Origins}
	resolver.Endpoints.Try = relay.Try
	resolver.MemberLogs.Open = func(ctx context.Context, tenant, node, member ids.ID) (io.ReadWriteCloser, error) {
		return relay.Open(ctx, tenant, node, tunnel.Open{Kind: nodelogs.Kind, MemberID: string(member)})
	}
	resolver.MemberMetrics.Open = func(ctx context.Context, tenant, node, member ids.ID) (io.ReadWriteCloser, error) {
		return relay.Open(ctx, tenant, node, tunnel.Open{Kind: nodemetrics.Kind, MemberID: string(member)})
	}
	group.Go(func() error { return relay.Run(ctx) })
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "app_platform_streams", Help: "Connections of people to members that are now open through this process.",
	}, func() float64 { return float64(relay.Streams()) }))
	for _, each := range []*http.ServeMux{mux, nodes} {
		each.Handle("GET "+tunnel.NodePath, relay.Nodes(p.authenticate(gate)))
	}
	mux.Handle("GET "+scrape.Path, &scrape.Handler{Members: resolver.MemberMetrics, Authenticate: p.authenticate(gate),
		Log: p.log})
	mux.Handle("GET "+tunnel.PeerPath, relay.Peers())
	mux.Handle("GET "+tunnel.ConnectPath, relay.Connections(p.authenticate(gate)))
	mux.Handle("GET "+tunnel.ExecPath, relay.Commands(p.authenticate(gate)))
	mux.Handle(volumefiles.Prefix, &volumehttp.Handler{Volumes: resolver.Storage, Relay: relay, Sentinel: sentinel,
		Authenticate: p.authenticate(gate), Origins: p.config.Origins, Log: p.log})
	console, _ := url.Parse(p.config.PublicURL) // completeApps has read it
	return func(next http.Handler) http.Handler {
		return apphttp.New(apphttp.Options{Endpoints: resolver.Endpoints, Relay: relay, Keys: p.ring,
			Sentinel: sentinel, Authenticate: p.authenticate(gate), Console: console, Log: p.log}, next)
	}
}
