package graph

import (
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

func webhookEdge(cursor string, row *db.Webhook) *model.WebhookEdge {
	return &model.WebhookEdge{Cursor: cursor, Node: row}
}

func deliveryEdge(cursor string, row *db.WebhookDelivery) *model.WebhookDeliveryEdge {
	return &model.WebhookDeliveryEdge{Cursor: cursor, Node: row}
}
