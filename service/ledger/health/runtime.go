package health

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// StoreRoles keeps what an adapter reports of the components of a locked instance; for one that it leaves out nothing
// is kept.
func StoreRoles(ctx context.Context, t *tx.Tx, instance *db.Instance, said []adapter.RoleObservation) error {
	kept := make(map[string]*roles.Runtime, len(said))
	for _, one := range said {
		if _, twice := kept[one.ComponentKey]; !twice {
			kept[one.ComponentKey] = runtimeOf(one)
		}
	}
	changed, err := roles.KeepRuntime(ctx, t, instance.ID, kept)
	if err == nil && changed {
		t.Wake(event.InstanceTopic(instance.ID), event.ProjectTopic(instance.ProjectID))
	}
	return err
}

// runtimeOf bounds what an adapter reports. A health that is not of the contract is unknown, and a detail that is too
// large or not an object is left out.
func runtimeOf(one adapter.RoleObservation) *roles.Runtime {
	out := &roles.Runtime{Health: lifecycle.HealthUnknown,
		Summary: operation.Clip(oneLine(one.Summary), adapter.MaxSummary)}
	if health, err := lifecycle.FromWire[lifecycle.Health](string(one.Health)); err == nil {
		out.Health = health
	}
	var object map[string]json.RawMessage
	if len(one.Detail) <= adapter.MaxDetail && json.Unmarshal(one.Detail, &object) == nil && object != nil {
		out.Detail = operation.Storable(one.Detail)
	}
	return out
}

// oneLine replaces what would break a line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
