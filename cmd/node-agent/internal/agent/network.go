package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/network"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
)

// networkWait is how long one question for the network waits for a change; less than a call may take.
const networkWait = 15 * time.Second

// openNetwork opens the members' network on this node. Where it cannot, it returns the reason.
func (a *Agent) openNetwork(ctx context.Context) (reason string) {
	switch {
	case !a.options.MemberNetwork:
		return "the agent was started with --member-network=false"
	case a.options.ForceProcess || os.Geteuid() != 0:
		return "the agent is not root"
	}
	if old := roster.Sharing(a.options.StateDir); len(old) > 0 {
		return fmt.Sprintf("%d members of an earlier agent use the node's network, %s among them: "+
			"remove or replace them, then start the agent again",
			len(old), old[0])
	}
	node, err := netip.ParseAddr(a.options.Address)
	if err == nil {
		a.network, err = network.Open(node.Unmap(), platformAt(ctx, a.options.PlatformURL), a.log)
	}
	if err != nil {
		return err.Error()
	}
	if err := a.network.Keep(memberIDs(a.options.StateDir)); err != nil {
		a.log.WarnContext(ctx, "network devices of deleted members are not removed", "error", err)
	}
	return ""
}

// platformAt is where the platform's API is. Without an answer members reach it as they reach the rest of the world,
// which fails only when it is on a node.
func platformAt(ctx context.Context, address string) (found []netip.AddrPort) {
	at, err := url.Parse(address)
	if err != nil {
		return nil
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", at.Port())
	if at.Port() == "" {
		port, err = net.DefaultResolver.LookupPort(ctx, "tcp", at.Scheme)
	}
	if err != nil {
		return nil
	}
	hosts, _ := net.DefaultResolver.LookupNetIP(ctx, "ip4", at.Hostname())
	for _, host := range hosts {
		if !host.IsLoopback() {
			found = append(found, netip.AddrPortFrom(host.Unmap(), uint16(port))) // #nosec G115 -- a port
		}
	}
	return found
}

// memberIDs are the members whose folders are on the node.
func memberIDs(stateDir string) (ids []string) {
	entries, _ := os.ReadDir(filepath.Join(stateDir, "members"))
	for _, entry := range entries {
		ids = append(ids, entry.Name())
	}
	return ids
}

// keepNetwork makes the node's network be as the platform says, as soon as it says anything new. What could not be done
// is tried again, with pauses.
func (a *Agent) keepNetwork(ctx context.Context) error {
	if a.network == nil {
		return nil
	}
	retry := pace.New(maxBackoff)
	known := ""
	for {
		version, err := a.nextNetwork(ctx, known)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			known = version
			retry.Reset()
			continue
		}
		a.log.WarnContext(ctx, "the members' network is not the latest that the platform describes", "error", err)
		if err := pace.PauseOr(ctx, retry.Step(), a.credentials.renewed); err != nil {
			return err
		}
	}
}

// nextNetwork waits for another version than the known one, and applies it.
func (a *Agent) nextNetwork(ctx context.Context, known string) (version string, err error) {
	told, err := a.client.Network(ctx, a.credentials, known, networkWait)
	if err != nil || told.Version == known {
		return known, err
	}
	view, err := network.Read(told)
	if err != nil {
		return known, err
	}
	if err := a.network.Apply(view); err != nil {
		return known, fmt.Errorf("apply version %s: %w", told.Version, err)
	}
	return told.Version, nil
}
