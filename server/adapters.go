package server

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/edge"
)

// adapterTrust is how adapters off this machine are known to be the ones that are meant.
func (c *Config) adapterTrust(log *slog.Logger) (adapterclient.Trust, error) {
	sandbox, err := dial.ParsePolicy(strings.Join(c.SandboxHosts, ","))
	if err != nil {
		return adapterclient.Trust{}, fmt.Errorf("--sandbox-allow: %w", err)
	}
	trust := adapterclient.Trust{Insecure: c.InsecureAdapters, Sandbox: sandbox}
	if c.InsecureAdapters {
		log.Warn("--adapter-insecure: adapters off loopback are called without TLS that proves who answers; register " +
			"them by https with their authority, and leave the flag out")
	}
	if c.AdapterCert == "" {
		return trust, nil
	}
	shown, err := edge.LoadCertificates(c.AdapterCert, c.AdapterKey, log)
	if err != nil {
		return trust, fmt.Errorf("--adapter-client-cert: %w", err)
	}
	trust.Certificate = shown.Current
	return trust, nil
}
