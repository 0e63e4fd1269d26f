package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/relay"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// nodeReads is which read answers for which kind of id.
func (r *Resolver) nodeReads() relay.Reads {
	return relay.Reads{
		ids.Instance:   relay.As(r.instance),
		ids.Event:      relay.As(r.Instances.Event),
		ids.Allocation: relay.As(r.Allocations.Get),
		ids.Volume:     relay.As(r.Storage.Get),
		ids.Node:       relay.As(r.Nodes.Get),
		ids.NodeTask: relay.As(func(ctx context.Context, id ids.ID) (*db.NodeTask, error) {
			return r.Tasks.Get(ctx, id,
				0)
		}),
		ids.Member: relay.As(r.Instances.Member),
		ids.Operation: relay.As(func(ctx context.Context, id ids.ID) (*operation.View, error) {
			return operation.Get(ctx, r.DB, id)
		}),

		ids.OrphanedResource: relay.As(r.Orphans.Get),
		ids.ControlPlane:     relay.As(r.Shares.Get),
		ids.PolicyOverlay:    relay.As(r.Policies.Overlay),
		ids.RuntimeSecret:    relay.As(r.Secrets.Get),

		ids.Webhook:         relay.As(r.Webhooks.Get),
		ids.WebhookDelivery: relay.As(r.Webhooks.Delivery),

		ids.Tenant:         relay.As(r.Identity.Tenant),
		ids.Project:        relay.As(r.Identity.Project),
		ids.User:           relay.As(r.Identity.User),
		ids.ServiceAccount: relay.As(r.Identity.ServiceAccount),
		ids.ServiceKey:     relay.As(r.Identity.ServiceAccountKey),
		ids.RoleBinding:    relay.As(r.Identity.RoleBinding),
		ids.App:            relay.As(r.Catalog.AppByID),
		ids.Manifest:       relay.As(r.Catalog.Manifest),
		ids.Entitlement:    relay.As(r.Entitlements.Entitlement),
		ids.Artifact:       relay.As(r.Artifacts.Artifact),
		ids.ArtifactSource: relay.As(r.ArtifactSources.Get),
		ids.Adapter:        relay.As(r.Adapters.Adapter),
		ids.Gap:            relay.As(r.GapLog.Get),
		ids.Audit: relay.As(func(ctx context.Context, id ids.ID) (*db.AuditEntry, error) {
			return audit.Get(ctx, r.DB, id)
		}),
	}
}
