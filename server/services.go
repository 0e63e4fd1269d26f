package server

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/deliveryhttp"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/automation"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/breakglass"
	"github.com/gpuaas/app-platform/service/budget"
	"github.com/gpuaas/app-platform/service/canary"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/entry"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/contract"
	"github.com/gpuaas/app-platform/service/delivery"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/explain"
	"github.com/gpuaas/app-platform/service/fleet"
	"github.com/gpuaas/app-platform/service/gap"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/service/memberlog"
	"github.com/gpuaas/app-platform/service/membermetric"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/onboarding"
	"github.com/gpuaas/app-platform/service/orphan"
	policies "github.com/gpuaas/app-platform/service/policy"
	"github.com/gpuaas/app-platform/service/price"
	"github.com/gpuaas/app-platform/service/retry"
	"github.com/gpuaas/app-platform/service/secret"
	"github.com/gpuaas/app-platform/service/share"
	"github.com/gpuaas/app-platform/service/source"
	"github.com/gpuaas/app-platform/service/task"
	"github.com/gpuaas/app-platform/service/triage"
	"github.com/gpuaas/app-platform/service/usage"
	"github.com/gpuaas/app-platform/service/volume"
	"github.com/gpuaas/app-platform/service/webhook"
	"github.com/gpuaas/app-platform/workers"
	books "github.com/gpuaas/app-platform/workers/billing"
	budgets "github.com/gpuaas/app-platform/workers/budget"
)

// resolver is the root of the API with every service. When ctx ends, no request waits for news any more.
func (p *platform) resolver(ctx context.Context, sentinel *live.Sentinel, feeds *event.Feeds) (*graph.Resolver, error) {
	policy, err := dial.ParsePolicy(strings.Join(p.config.AdapterHosts, ","))
	if err != nil {
		return nil, err
	}
	reach, err := p.reach()
	if err != nil {
		return nil, err
	}
	hooks, err := dial.ParsePolicy(strings.Join(p.config.WebhookHosts, ","))
	if err != nil {
		return nil, err
	}
	sources, err := dial.ParsePolicy(strings.Join(p.config.RegistryHosts, ","))
	if err != nil {
		return nil, err
	}
	client := adapterclient.NewTrusting(p.ring, policy, p.trust)
	client.Log, client.Metrics = p.log, p.metrics
	calls := contract.New(client, p.ring, p.config.GraphQLURL)
	instances := &instance.Service{DB: p.db, Calls: calls}
	members := &member.Service{DB: p.db, Calls: calls}
	logs := &memberlog.Service{DB: p.db}
	return &graph.Resolver{
		DB: p.db, Keys: p.ring, KeptAnswers: p.config.KeptAnswers << 20,
		Progress: &live.Progress{DB: p.db, Hub: p.hub, Sentinel: sentinel, Log: p.log},
		Identity: &identity.Service{DB: p.db, DevLogins: p.config.Dev, PublicURL: p.config.PublicURL, Keys: p.ring,
			KeyLife: p.config.KeyLife},
		Catalog:         &catalog.Service{DB: p.db},
		Entries:         &entry.Service{DB: p.db},
		Trust:           &trust.Service{DB: p.db},
		Automation:      &automation.Service{DB: p.db, Keys: p.ring},
		Entitlements:    &entitlement.Service{DB: p.db},
		Artifacts:       &artifact.Service{DB: p.db, Vault: p.vault, Reach: reach},
		ArtifactSources: &source.Service{DB: p.db, Vault: p.vault, Allow: allowSource(sources)},
		Deliveries: &delivery.Service{
			DB: p.db, Vault: p.vault, Keys: p.ring, URL: p.config.NodeURL + deliveryhttp.Path, Log: p.log, Reach: reach,
		},
		Canaries: &canary.Service{DB: p.db},
		Adapters: &adapter.Service{DB: p.db, Describe: calls.Describe, Allow: allowAddress(policy),
			Trust: p.trust},
		Allocations:   &allocation.Service{DB: p.db},
		Storage:       &volume.Service{DB: p.db},
		Nodes:         &node.Service{DB: p.db, Hub: p.hub, Stopping: ctx.Done()},
		Fleet:         &fleet.Service{DB: p.db},
		Tasks:         &task.Service{DB: p.db, Hub: p.hub, Metrics: p.metrics},
		Instances:     instances,
		Members:       members,
		MemberLogs:    logs,
		MemberMetrics: &membermetric.Service{DB: p.db},
		Logs:          &live.Logs{Service: logs, Sentinel: sentinel},
		Retries: &retry.Service{DB: p.db, Members: members.Again, Instances: instances.Again,
			PlanMembers: members.PlanAgain, PlanInstances: instances.PlanAgain},
		Blockers:   &blocker.Service{DB: p.db},
		Orphans:    &orphan.Service{DB: p.db},
		BreakGlass: &breakglass.Service{DB: p.db, Log: p.log},
		Prices:     &price.Service{DB: p.db},
		Billing:    &billing.Service{DB: p.db},
		Explain:    &explain.Service{DB: p.db},
		Policies:   &policies.Service{DB: p.db},
		Shares:     &share.Service{DB: p.db},
		Secrets:    &secret.Service{DB: p.db, Vault: p.vault, Keys: p.ring},
		Triages:    &triage.Service{DB: p.db, Links: p.config.Links},
		Readiness:  &onboarding.Service{DB: p.db},
		GapLog:     &gap.Service{DB: p.db},
		Usage:      &usage.Service{DB: p.db},
		Budgets:    &budget.Service{DB: p.db},
		Endpoints:  p.endpoints(),
		Webhooks: &webhook.Service{DB: p.db, Vault: p.vault, Feeds: feeds,
			Allow: allowWebhook(hooks, len(p.config.WebhookHosts) > 0)},
	}, nil
}

// leastNodeGrace is the shortest time for which a silent node's members may come back: an agent that is restarted is
// back within it.
const leastNodeGrace = 30 * time.Second

// work carries out operations until ctx ends.
func (p *platform) work(ctx context.Context) error {
	policy, err := dial.ParsePolicy(strings.Join(p.config.AdapterHosts, ","))
	if err != nil {
		return err
	}
	hooks, err := dial.ParsePolicy(strings.Join(p.config.WebhookHosts, ","))
	if err != nil {
		return err
	}
	return workers.Run(ctx, workers.Config{
		DB: p.db, Hub: p.hub, Keys: p.ring, Dial: policy, Trust: p.trust, PlatformURL: p.config.GraphQLURL, Log: p.log,
		Stats: &p.found, MeterStats: &p.metered, NodeGrace: max(p.config.NodeGrace, leastNodeGrace),
		Vault: p.vault, WebhookDial: hooks, WebhookStats: &p.sent, Traces: p.config.traces(), Metrics: p.metrics,
	})
}

// bill books usage until ctx ends.
func (p *platform) bill(ctx context.Context) error {
	worker := &books.Worker{DB: p.db, Log: p.log, Every: p.config.BillingEvery,
		Standard: billing.Standard{Currency: p.config.BillingCurrency, Grace: p.config.BillingGrace},
		Metrics:  p.metrics,
		After:    (&budgets.Keeper{DB: p.db, Log: p.log}).Once}
	return worker.Run(ctx)
}

// allowWebhook refuses an address that webhooks may not be sent to: one inside that the operator does not name, and one
// without TLS anywhere else. A host name is judged again when it is dialled, on the address it has then.
func allowWebhook(policy dial.Policy, named bool) func(*url.URL) error {
	return func(address *url.URL) error {
		secure := address.Scheme == "https"
		if err := dial.Check(policy, secure, address); err != nil || !secure && !named {
			return fault.New(fault.DialRefused, "the operator does not allow webhooks to %s by %s", address.Host,
				address.Scheme)
		}
		return nil
	}
}

// allowAddress refuses an adapter's address that names an IP outside of the policy. A host name is
// judged when it is dialled, on the address it has then.
func allowAddress(policy dial.Policy) func(*url.URL) error {
	return func(address *url.URL) error {
		if err := dial.Check(policy, false, address); err != nil {
			return fault.New(fault.DialRefused, "the operator does not allow adapters at %s", address.Host).
				At("input.url")
		}
		return nil
	}
}

// allowSource refuses an artifact source's address that names an IP inside which the operator does not name.
func allowSource(policy dial.Policy) func(*url.URL) error {
	return func(address *url.URL) error {
		if err := dial.Check(policy, true, address); err != nil {
			return fault.New(fault.DialRefused, "the operator does not allow artifact sources at %s", address.Host)
		}
		return nil
	}
}

// reach is how artifact sources are reached: public ones, and those others that the operator names.
func (p *platform) reach() (fetch.Reach, error) {
	allowed, err := dial.ParsePolicy(strings.Join(p.config.RegistryHosts, ","))
	if err != nil {
		return fetch.Reach{}, err
	}
	connect := dial.To(allowed, true)
	return fetch.Reach{Insecure: p.config.InsecureRegistries, Also: p.config.AlsoRegistries,
		Keychain: pullKeychain{ring: p.ring, hosts: p.config.PullTokens},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := connect(ctx, network, address)
			if refused := new(dial.Refused); errors.As(err, &refused) {
				return nil, fault.New(fault.DialRefused, "the operator does not allow artifact sources at %s",
					refused.Address)
			}
			return connection, err
		}}, nil
}
