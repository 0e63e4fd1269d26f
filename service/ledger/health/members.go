package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// maxText bounds what an adapter reports of health, in bytes.
const maxText = 2_000

// StoreMembers keeps the members' health. Members that the adapter does not report stay as they are, and so do those on
// a node that is not ONLINE where the report is HEALTHY or UNKNOWN.
func StoreMembers(ctx context.Context, t *tx.Tx, instance *db.Instance,
	seen []adapter.MemberObservation) ([]event.Draft, error) {
	var events []event.Draft
	for _, one := range seen[:min(len(seen), adapter.MaxMembers)] {
		health, err := lifecycle.FromWire[lifecycle.Health](string(one.Health))
		if err != nil {
			continue
		}
		changed, draft, err := storeMember(ctx, t, instance, one, health)
		if err != nil {
			return nil, err
		}
		if changed {
			events = append(events, draft)
		}
	}
	if len(events) == 0 {
		return nil, nil
	}
	return events, roles.Recount(ctx, t, instance.ID)
}

func storeMember(ctx context.Context, t *tx.Tx, instance *db.Instance, seen adapter.MemberObservation,
	health lifecycle.Health) (bool, event.Draft, error) {
	var key string
	var ordinal int
	var before lifecycle.Health
	var detail []byte
	if len(seen.Detail) > 0 && len(seen.Detail) <= adapter.MaxDetail && json.Valid(seen.Detail) {
		detail = operation.Storable(seen.Detail)
	}
	err := t.QueryRow(ctx, `UPDATE member SET health = $3, health_message = $4, adapter_detail = coalesce($5::jsonb,
		member.adapter_detail), updated_at = $6
		FROM member AS old WHERE old.id = member.id AND member.id = $1 AND member.instance_id = $2
		AND member.status NOT IN ('REMOVED', 'FAILED')
		AND (member.health <> $3 OR member.health_message <> $4)
		AND NOT ($3::text IN ('HEALTHY', 'UNKNOWN') AND EXISTS (SELECT FROM compute_node n WHERE n.id = member.node_id
		AND n.status <> 'ONLINE'))
		RETURNING member.component_key, member.ordinal, old.health`,
		seen.ID, instance.ID, health, operation.Clip(seen.Message, maxText), detail, t.Now).
		Scan(&key, &ordinal, &before)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, event.Draft{}, nil
	case err != nil:
		return false, event.Draft{}, fmt.Errorf("store the health of member %s: %w", seen.ID, err)
	}
	return before != health, event.Draft{
		Type: lifecycle.EventMemberChanged, MemberID: ids.ID(seen.ID),
		Message: fmt.Sprintf("%s %d is %s", key, ordinal, lifecycle.Wire(health)),
		Payload: map[string]any{"componentKey": key, "index": ordinal, "health": health},
	}, nil
}
