package health

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Settle makes the health of a locked running instance no better than its bound.
func Settle(ctx context.Context, t *tx.Tx, instance *db.Instance) error {
	best, err := BoundOf(ctx, t, instance)
	if err != nil {
		return err
	}
	health, message := best.Apply(instance.Health, instance.HealthMessage)
	told, err := Store(ctx, t, instance, best, health, message)
	if err != nil || told == nil {
		return err
	}
	return event.Append(ctx, t, instance, *told)
}

// Store keeps the health of a locked instance, and since when it is not served; it returns the event, nil while the
// health is as it was.
func Store(ctx context.Context, t *tx.Tx, instance *db.Instance, best Bound, health lifecycle.Health,
	message string) (*event.Draft, error) {
	if health == instance.Health && message == instance.HealthMessage && best.Unserved == (instance.UnservedAt != nil) {
		return nil, nil
	}
	before := instance.Health
	err := t.QueryRow(ctx, `UPDATE instance SET health = $2, health_message = $3,
		unserved_at = CASE WHEN $4 THEN coalesce(unserved_at, $5) END WHERE id = $1 RETURNING unserved_at`,
		instance.ID, health, message, best.Unserved, t.Now).Scan(&instance.UnservedAt)
	if err != nil {
		return nil, fmt.Errorf("store the health of %s: %w", instance.ID, err)
	}
	instance.Health, instance.HealthMessage = health, message
	t.Wake(event.InstanceTopic(instance.ID), event.ProjectTopic(instance.ProjectID))
	if health == before {
		return nil, nil
	}
	told := draft(health, message)
	return &told, nil
}

// draft is the event of a changed health. UNKNOWN is an event of degraded health, so that no one reads it as good.
func draft(health lifecycle.Health, message string) event.Draft {
	told := map[lifecycle.Health]lifecycle.EventType{
		lifecycle.HealthHealthy:   lifecycle.EventInstanceHealthy,
		lifecycle.HealthUnhealthy: lifecycle.EventInstanceUnhealthy,
	}
	draft := event.Draft{Type: told[health], Message: message, Payload: map[string]any{"health": health}}
	if draft.Type == "" {
		draft.Type = lifecycle.EventInstanceDegraded
	}
	if draft.Message == "" {
		draft.Message = "health is " + lifecycle.Wire(health)
	}
	return draft
}
