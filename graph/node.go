package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// node reads any object by its id; the id's prefix says which read it is.
func (r *Resolver) node(ctx context.Context, id ids.ID) (model.Node, error) {
	read, ok := r.nodeReads()[id.Kind()]
	if !ok || !id.Valid() {
		if _, err := r.DB.Read(ctx); err != nil {
			return nil, err // a credential that is not valid is told so, whatever it asks for
		}
		return nil, fault.NoSuch()
	}
	return read(ctx, id)
}

type nodeRead func(ctx context.Context, id ids.ID) (model.Node, error)

// nodeReads is which read answers for which kind of id.
func (r *Resolver) nodeReads() map[ids.Kind]nodeRead {
	return map[ids.Kind]nodeRead{
		ids.Instance:   asNode(r.instance),
		ids.Event:      asNode(r.Instances.Event),
		ids.Allocation: asNode(r.Allocations.Get),
		ids.Node:       asNode(r.Nodes.Get),
		ids.NodeTask:   asNode(func(ctx context.Context, id ids.ID) (*db.NodeTask, error) { return r.Tasks.Get(ctx, id, 0) }),
		ids.Member:     asNode(r.Instances.Member),
		ids.Operation: asNode(func(ctx context.Context, id ids.ID) (*operation.View, error) {
			return operation.Get(ctx, r.DB, id)
		}),

		ids.OrphanedResource: asNode(r.Orphans.Get),
		ids.ControlPlane:     asNode(r.Shares.Get),
		ids.PolicyOverlay:    asNode(r.Policies.Overlay),
		ids.RuntimeSecret:    asNode(r.Secrets.Get),

		ids.Webhook:         asNode(r.Webhooks.Get),
		ids.WebhookDelivery: asNode(r.Webhooks.Delivery),

		ids.Tenant:         asNode(r.Identity.Tenant),
		ids.Project:        asNode(r.Identity.Project),
		ids.User:           asNode(r.Identity.User),
		ids.ServiceAccount: asNode(r.Identity.ServiceAccount),
		ids.ServiceKey:     asNode(r.Identity.ServiceAccountKey),
		ids.RoleBinding:    asNode(r.Identity.RoleBinding),
		ids.App:            asNode(r.Catalog.AppByID),
		ids.Manifest:       asNode(r.Catalog.Manifest),
		ids.Entitlement:    asNode(r.Entitlements.Entitlement),
		ids.Artifact:       asNode(r.Artifacts.Artifact),
		ids.ArtifactSource: asNode(r.ArtifactSources.Get),
		ids.Adapter:        asNode(r.Adapters.Adapter),
		ids.Audit: asNode(func(ctx context.Context, id ids.ID) (*db.AuditEntry, error) {
			return audit.Get(ctx, r.DB, id)
		}),
	}
}

// asNode makes a read of one type answer as a node; an error must not come with a typed nil.
func asNode[T model.Node](read func(ctx context.Context, id ids.ID) (T, error)) nodeRead {
	return func(ctx context.Context, id ids.ID) (model.Node, error) {
		found, err := read(ctx, id)
		if err != nil {
			return nil, err
		}
		return found, nil
	}
}
