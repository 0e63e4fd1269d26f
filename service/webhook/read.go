package webhook

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// The names of lists in their cursors.
const (
	webhookList  = "webhooks"
	deliveryList = "webhookDeliveries"
)

// List reads the live webhooks of a project, newest first. Key: webhook.read; NOT_FOUND for a project that the caller
// cannot see.
func (s *Service) List(ctx context.Context, projectID ids.ID, args page.Args) (*page.Page[*db.Webhook], error) {
	var after ids.ID
	if err := args.Decode(webhookList, &after); err != nil {
		return nil, err
	}
	var project *db.Project
	var found []*db.Webhook
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Rows(&found, rows.Webhook, `SELECT `+rows.WebhookColumns+`
			FROM webhook WHERE project_id = $1 AND deleted_at IS NULL AND ($2 = ''
			OR id < $2)
			ORDER BY id DESC LIMIT $3`, projectID, string(after), args.First+1))
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.WebhookRead,
		authz.Object{TenantID: project.TenantID, ProjectID: project.ID}); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(w *db.Webhook) string { return page.Cursor(webhookList, w.ID) }), nil
}

// Get reads a webhook, a deleted one too. Key: webhook.read. NOT_FOUND when it is missing or hidden.
func (s *Service) Get(ctx context.Context, id ids.ID) (*db.Webhook, error) {
	var found *db.Webhook
	actor, err := s.DB.Read(ctx, tx.Row(&found, rows.Webhook, `SELECT `+rows.WebhookColumns+`
		FROM webhook WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	return found, authz.RequireOn(actor, authz.WebhookRead, object(found))
}

// Deliveries reads the deliveries of a webhook, newest first, in the states named or in any. Key: webhook.read.
// NOT_FOUND when the webhook is missing or hidden.
func (s *Service) Deliveries(ctx context.Context, webhookID ids.ID, states []lifecycle.DeliveryState,
	args page.Args) (*page.Page[*db.WebhookDelivery], error) {
	var after ids.ID
	if err := args.Decode(deliveryList, &after); err != nil {
		return nil, err
	}
	wanted := make([]string, len(states))
	for i, state := range states {
		wanted[i] = string(state)
	}
	var of *db.Webhook
	var found []*db.WebhookDelivery
	actor, err := s.DB.Read(ctx,
		tx.Row(&of, rows.Webhook, `SELECT `+rows.WebhookColumns+` FROM webhook WHERE id = $1`, webhookID),
		tx.Rows(&found, rows.WebhookDelivery, `SELECT `+rows.WebhookDeliveryColumns+`
			FROM webhook_delivery WHERE webhook_id = $1
			AND ($2 = ''
			OR id < $2)
			AND (cardinality($3::text[]) = 0 OR state = ANY ($3)) ORDER BY id DESC
			LIMIT $4`, webhookID, string(after), wanted, args.First+1))
	if err != nil {
		return nil, err
	}
	if of == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.WebhookRead, object(of)); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(d *db.WebhookDelivery) string { return page.Cursor(deliveryList, d.ID) }), nil
}

// Delivery reads a delivery. Key: webhook.read. NOT_FOUND when it is missing or hidden.
func (s *Service) Delivery(ctx context.Context, id ids.ID) (*db.WebhookDelivery, error) {
	var found *db.WebhookDelivery
	actor, err := s.DB.Read(ctx, tx.Row(&found, rows.WebhookDelivery,
		`SELECT `+rows.WebhookDeliveryColumns+` FROM webhook_delivery WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	return found, authz.RequireOn(actor, authz.WebhookRead,
		authz.Object{TenantID: found.TenantID, ProjectID: found.ProjectID})
}
