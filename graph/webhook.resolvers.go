package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/webhook"
)

func (r *mutationResolver) CreateWebhook(ctx context.Context, input model.CreateWebhookInput) (*webhook.Created, error) {
	panic(fmt.Errorf("not implemented: CreateWebhook - createWebhook"))
}

func (r *mutationResolver) UpdateWebhook(ctx context.Context, input model.UpdateWebhookInput) (*db.Webhook, error) {
	panic(fmt.Errorf("not implemented: UpdateWebhook - updateWebhook"))
}

func (r *mutationResolver) DeleteWebhook(ctx context.Context, webhookID ids.ID, reason *string) (*db.Webhook, error) {
	panic(fmt.Errorf("not implemented: DeleteWebhook - deleteWebhook"))
}

func (r *mutationResolver) RotateWebhookSecret(ctx context.Context, webhookID ids.ID, overlapSeconds int) (*webhook.Created, error) {
	panic(fmt.Errorf("not implemented: RotateWebhookSecret - rotateWebhookSecret"))
}

func (r *mutationResolver) ReplayWebhook(ctx context.Context, webhookID ids.ID, after string, reason *string) (*db.Webhook, error) {
	panic(fmt.Errorf("not implemented: ReplayWebhook - replayWebhook"))
}

func (r *mutationResolver) RedeliverWebhook(ctx context.Context, deliveryID ids.ID) (*db.WebhookDelivery, error) {
	panic(fmt.Errorf("not implemented: RedeliverWebhook - redeliverWebhook"))
}

func (r *queryResolver) Webhooks(ctx context.Context, projectID ids.ID, first *int, after *string) (*model.WebhookConnection, error) {
	panic(fmt.Errorf("not implemented: Webhooks - webhooks"))
}

func (r *queryResolver) WebhookDeliveries(ctx context.Context, webhookID ids.ID, states []lifecycle.DeliveryState, first *int, after *string) (*model.WebhookDeliveryConnection, error) {
	panic(fmt.Errorf("not implemented: WebhookDeliveries - webhookDeliveries"))
}
