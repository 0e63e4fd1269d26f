package server

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/explain"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/orphan"
	policies "github.com/gpuaas/app-platform/service/policy"
	"github.com/gpuaas/app-platform/service/price"
	"github.com/gpuaas/app-platform/service/retry"
	"github.com/gpuaas/app-platform/service/secret"
	"github.com/gpuaas/app-platform/service/share"
	"github.com/gpuaas/app-platform/service/task"
	"github.com/gpuaas/app-platform/service/webhook"
	"github.com/gpuaas/app-platform/workers"
	"github.com/gpuaas/app-platform/workers/invoke"
)

// resolver is the root of the API with every service.
func (p *platform) resolver(sentinel *live.Sentinel) (*graph.Resolver, error) {
	policy, err := adapterclient.ParsePolicy(strings.Join(p.config.AdapterHosts, ","))
	if err != nil {
		return nil, err
	}
	registries, err := p.registries()
	if err != nil {
		return nil, err
	}
	calls := invoke.New(adapterclient.New(p.ring, policy), p.ring, p.config.GraphQLURL)
	instances := &instance.Service{DB: p.db, Actions: calls, Planner: calls}
	members := &member.Service{DB: p.db, Planner: calls}
	return &graph.Resolver{
		DB: p.db, Keys: p.ring, Progress: &graph.Progress{DB: p.db, Hub: p.hub, Sentinel: sentinel, Log: p.log},
		Identity:    &identity.Service{DB: p.db, DevLogins: p.config.Dev, PublicURL: p.config.PublicURL},
		Catalog:     &catalog.Service{DB: p.db},
		Artifacts:   &artifact.Service{DB: p.db, Registries: registries},
		Adapters:    &adapter.Service{DB: p.db, Describer: calls, Allow: allowAddress(policy)},
		Allocations: &allocation.Service{DB: p.db},
		Nodes:       &node.Service{DB: p.db},
		Tasks:       &task.Service{DB: p.db, Hub: p.hub},
		Instances:   instances,
		Members:     members,
		Retries:     &retry.Service{DB: p.db, Members: members.Again, Instances: instances.Again},
		Blockers:    &blocker.Service{DB: p.db},
		Orphans:     &orphan.Service{DB: p.db},
		Prices:      &price.Service{DB: p.db},
		Explain:     &explain.Service{DB: p.db},
		Policies:    &policies.Service{DB: p.db},
		Shares:      &share.Service{DB: p.db},
		Secrets:     &secret.Service{DB: p.db, Vault: p.vault},
		Webhooks:    &webhook.Service{DB: p.db, Vault: p.vault},
	}, nil
}

// work carries out operations until ctx ends.
func (p *platform) work(ctx context.Context) error {
	policy, err := adapterclient.ParsePolicy(strings.Join(p.config.AdapterHosts, ","))
	if err != nil {
		return err
	}
	return workers.Run(ctx, workers.Config{
		DB: p.db, Hub: p.hub, Keys: p.ring, Dial: policy, PlatformURL: p.config.GraphQLURL, Log: p.log, Stats: &p.found,
	})
}

// allowAddress refuses an adapter's address that names an IP outside of the policy. A host name is
// judged when it is dialled, on the address it has then.
func allowAddress(policy adapterclient.Policy) func(*url.URL) error {
	return func(address *url.URL) error {
		ip, err := netip.ParseAddr(address.Hostname())
		if err != nil {
			return nil
		}
		if policy.Allows(netip.AddrPortFrom(ip, portOf(address))) {
			return nil
		}
		return fault.New(fault.DialRefused, "the operator does not allow adapters at %s", address.Host).At("input.url")
	}
}

func portOf(address *url.URL) uint16 {
	if port, err := net.LookupPort("tcp", address.Port()); err == nil && address.Port() != "" {
		return uint16(port)
	}
	if address.Scheme == "https" {
		return 443
	}
	return 80
}

// registries reaches public registries, and those others that the operator names. The address is
// judged after it was resolved, so that a name cannot lead inside.
func (p *platform) registries() (artifact.Registries, error) {
	allowed, err := adapterclient.ParsePolicy(strings.Join(p.config.RegistryHosts, ","))
	if err != nil {
		return artifact.Registries{}, err
	}
	dialer := net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if public(to.Addr()) || allowed.Allows(to) {
			return nil
		}
		return fault.New(fault.DialRefused, "the operator does not allow registries at %s", address).At("input.ref")
	}}
	return artifact.Registries{Dial: dialer.DialContext, Insecure: p.config.InsecureRegistries}, nil
}

// inside are ranges that netip calls global though they lead to a provider's own network, to this
// machine, or, wrapped in IPv6, to an IPv4 address that nobody has judged.
var inside = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // this network
	netip.MustParsePrefix("100.64.0.0/10"),  // shared by a provider, where some clouds keep their metadata
	netip.MustParsePrefix("192.0.0.0/24"),   // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"),  // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved
	netip.MustParsePrefix("64:ff9b::/96"),   // NAT64
	netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64, local
	netip.MustParsePrefix("2001::/32"),      // Teredo
	netip.MustParsePrefix("2002::/16"),      // 6to4
}

// public says whether an address is one of the public Internet.
func public(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return address.IsGlobalUnicast() && !address.IsPrivate() &&
		!slices.ContainsFunc(inside, func(block netip.Prefix) bool { return block.Contains(address) })
}
