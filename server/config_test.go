package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

// In development an administrator of a tenant logs in as anyone of it, by a link: only this machine may reach such a
// server.
func TestDevelopmentIsRefusedWhereOthersReach(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"an https address":     func(c *Config) { c.PublicURL = "https://localhost:8443" },
		"another host's name":  func(c *Config) { c.PublicURL = "http://gpu.example.com" },
		"another address":      func(c *Config) { c.PublicURL = "http://10.0.0.7:8080" },
		"an identity provider": func(c *Config) { c.OIDC.Issuer, c.OIDC.ClientID = "https://id.example.com", "x" },
	} {
		config := Defaults()
		config.DatabaseURL, config.Listen, config.PublicURL, config.Dev = "postgres://x", []string{"127.0.0.1:0"},
			"http://127.0.0.1:8080", true
		require.NoError(t, config.complete(), name)
		change(config)
		require.ErrorContains(t, config.complete(), "--dev", name)
		config.Dev = false
		require.NoError(t, config.complete(), name)
	}
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		config := &Config{Listen: []string{address}, Dev: true}
		open, nodes, err := config.listeners()
		require.ErrorContains(t, err, "--dev", address)
		require.NoError(t, closeAll(append(open, nodes...)))
		config.Dev = false
		open, _, err = config.listeners()
		require.NoError(t, err)
		require.NoError(t, closeAll(open))
	}
	open, _, err := (&Config{Listen: []string{"127.0.0.1:0", "localhost:0"}, Dev: true}).listeners()
	require.NoError(t, err)
	require.NoError(t, closeAll(open))
}

func TestTheFirstOperatorLogsInWithoutDevelopment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, err := identity.Bootstrap(t.Context(), b.DSN, "root@example.test", "Root")
	require.NoError(t, err)
	response, err := http.Post(b.url+"/auth/login", "application/json",
		strings.NewReader(`{"code": "`+first.Code+`", "client": "cli"}`))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestTheListenerOfNodesHasNeitherConsoleNorLogins(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	config := Defaults()
	config.DatabaseURL, config.PublicURL, config.Listen, config.Dev = kit.DSN, "http://127.0.0.1:8080",
		[]string{"127.0.0.1:0"}, true
	require.NoError(t, config.complete())
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	p := &platform{config: config, log: slog.New(slog.DiscardHandler), db: kit.DB, hub: kit.Hub, ring: kit.Ring,
		vault: vault}
	all, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nodes, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	require.NoError(t, p.serve(ctx, group, []net.Listener{all}, []net.Listener{nodes}))
	for path, want := range map[string][2]int{
		"/auth/methods": {http.StatusOK, http.StatusNotFound}, "/": {http.StatusOK, http.StatusNotFound},
		"/metrics": {http.StatusNotFound, http.StatusNotFound},
		"/healthz": {http.StatusOK, http.StatusOK}, "/.well-known/jwks.json": {http.StatusOK, http.StatusOK},
	} {
		for i, listener := range []net.Listener{all, nodes} {
			response, err := http.Get("http://" + listener.Addr().String() + path)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			// what else there is, is the console's, which tests' binaries may lack
			if path != "/" && path != "/metrics" || i == 1 {
				require.Equal(t, want[i], response.StatusCode, path)
			}
		}
	}
	response, err := http.Post("http://"+nodes.Addr().String()+"/graphql", "application/json",
		strings.NewReader(`{"query":"{ viewer { actor { id } } }"}`))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, "the API is there, and wants a credential")
	cancel()
	require.NoError(t, group.Wait())
}
