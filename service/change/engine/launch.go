package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// createInstance stores the draft of a launch as the change's instance, with so many events on its timeline and the
// launch as its newest operation: a second write of the row would look up all that it refers to. CONFLICT when the name
// is taken.
func createInstance(ctx context.Context, t *tx.Tx, v *verdict.Verdicts, events int) error {
	roles, err := roles.First(v.Next.Components, v.Counts)
	if err != nil {
		return fmt.Errorf("create the instance: %w", err)
	}
	draft := v.Instance
	intent, err := intentOf(v.Launch)
	if err != nil {
		return err
	}
	create := t.Instance.Create().SetID(v.Minted.Instance).SetTenantID(draft.TenantID).SetProjectID(draft.ProjectID).
		SetName(draft.Name).SetAppSlug(draft.AppSlug).SetAppVersion(v.To.Version).
		SetPermissionFamily(draft.PermissionFamily).
		SetManifestID(v.To.ManifestID).SetStatus(draft.Status).SetConfig(v.To.Config).SetRoles(roles).
		SetBoundCapacityShape(v.Afterwards()[0].Shape).SetRuntimeBackend(v.Target.AdapterName).SetSmoke(draft.Smoke).
		SetOperatingMode(draft.OperatingMode).SetControlPlaneScope(draft.ControlPlaneScope).
		SetSystem(draft.System).SetNillableOperatorServiceAccountID(draft.OperatorServiceAccountID).
		SetCorrelationID(t.Request.CorrelationID).SetCreatedAt(t.Now).SetUpdatedAt(t.Now).
		SetLastOperationID(v.Minted.Operation).SetRevision(events)
	if intent != nil {
		create.SetCapacityIntent(intent)
	}
	if len(v.Bound) > 0 {
		create.SetVolumes(v.Bound)
	}
	row, err := create.Save(ctx)
	if tx.Violates(err, "instance_name_live") {
		return fault.New(fault.Conflict, "a live instance named %q exists in the project", draft.Name).At("input.name")
	}
	if err != nil {
		return fmt.Errorf("create the instance: %w", err)
	}
	v.Instance = row
	return nil
}

// intentOf returns the capacity that further members of each component get, as it is stored; nil for none.
func intentOf(launch *change.Launch) (json.RawMessage, error) {
	intents := map[string]*capacity.Want{}
	for _, component := range launch.Components {
		if component.Intent != nil {
			intents[component.Key] = component.Intent
		}
	}
	if len(intents) == 0 {
		return nil, nil
	}
	encoded, err := json.Marshal(intents)
	if err != nil {
		return nil, fmt.Errorf("encode the capacity intent: %w", err)
	}
	return encoded, nil
}

// firstGeneration records what the instance runs, for a rollback to return to.
func firstGeneration(t *tx.Tx, v *verdict.Verdicts, op *db.Operation) {
	row := v.Instance
	t.Last().Queue(`INSERT INTO instance_generation (id, tenant_id, project_id, instance_id, number, manifest_id,
		app_version,
		config, operation_id, created_at) VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8, $9)`,
		ids.New(ids.Generation), row.TenantID, row.ProjectID, row.ID, v.To.ManifestID, v.To.Version,
		[]byte(v.To.Config), op.ID,
		t.Now)
}

// launched returns the events of an accepted launch.
func launched(v *verdict.Verdicts, t *tx.Tx) []event.Draft {
	row := v.Instance
	drafts := append([]event.Draft{
		{Type: lifecycle.EventInstanceRequested, OperationID: v.Minted.Operation,
			Message: fmt.Sprintf("%s %s requested", row.AppSlug, v.To.Version),
			Payload: map[string]any{"name": row.Name, "version": v.To.Version, "members": len(v.Seats),
				"operatingMode": row.OperatingMode, "controlPlaneScope": row.ControlPlaneScope}},
	}, requested(v, t)...)
	return append(drafts, event.Draft{Type: lifecycle.EventOperationAccepted, OperationID: v.Minted.Operation,
		Message: v.Rule.Noun + " accepted", Payload: map[string]any{"kind": v.Kind, "deadline": due(v, t)}})
}

// launchedState returns the audit's state after a launch.
func launchedState(row *db.Instance, op *db.Operation) map[string]any {
	return map[string]any{
		"name": row.Name, "app": row.AppSlug, "version": row.AppVersion, "operation": op.ID, "smoke": row.Smoke,
		"operatingMode": row.OperatingMode, "controlPlaneScope": row.ControlPlaneScope,
		"operatorServiceAccountId": row.OperatorServiceAccountID, "volumes": row.Volumes,
	}
}
