package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/webhook"
)

func (r *mutationResolver) CreateWebhook(ctx context.Context, input webhook.CreateInput) (*webhook.Created, error) {
	return r.Resolver.Webhooks.Create(ctx, input)
}

func (r *mutationResolver) UpdateWebhook(ctx context.Context, input webhook.UpdateInput) (*db.Webhook, error) {
	return r.Resolver.Webhooks.Update(ctx, input)
}

func (r *mutationResolver) DeleteWebhook(ctx context.Context, webhookID ids.ID, reason *string) (*db.Webhook, error) {
	return r.Resolver.Webhooks.Delete(ctx, webhookID, read.Value(reason))
}

func (r *mutationResolver) RotateWebhookSecret(ctx context.Context, webhookID ids.ID, overlapSeconds int) (*webhook.Created, error) {
	return r.Resolver.Webhooks.Rotate(ctx, webhookID, overlapSeconds)
}

func (r *mutationResolver) ReplayWebhook(ctx context.Context, webhookID ids.ID, after string, reason *string) (*db.Webhook, error) {
	return r.Resolver.Webhooks.Replay(ctx, webhookID, after, read.Value(reason))
}

func (r *mutationResolver) RedeliverWebhook(ctx context.Context, deliveryID ids.ID) (*db.WebhookDelivery, error) {
	return r.Resolver.Webhooks.Redeliver(ctx, deliveryID)
}

func (r *queryResolver) Webhooks(ctx context.Context, projectID ids.ID, first *int, after *string) (*model.WebhookConnection, error) {
	return read.ListOf[model.WebhookConnection](ctx, projectID, first, after, r.Resolver.Webhooks.List)
}

func (r *queryResolver) WebhookDeliveries(ctx context.Context, webhookID ids.ID, states []lifecycle.DeliveryState, first *int, after *string) (*model.WebhookDeliveryConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.WebhookDeliveryConnection](r.Resolver.Webhooks.Deliveries(ctx, webhookID, states, args))
}
