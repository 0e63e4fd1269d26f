package engine

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// contractChange returns the change in the types of the adapter contract. A planned one has no replacement yet.
func contractChange(v *verdict.Verdicts, planned bool) any {
	switch v.Kind {
	case lifecycle.MembersAdd:
		return adapter.AddChange{Components: []adapter.ComponentCount{{Key: v.ComponentKey, Count: v.Count}}}
	case lifecycle.MemberLabel:
		return struct {
			Labels json.RawMessage `json:"labels"`
		}{v.Labels}
	case lifecycle.MemberReplace:
		if !planned {
			return adapter.ReplaceChange{ReplacementID: string(v.Minted.Members[0])}
		}
	case lifecycle.InstanceUpgrade, lifecycle.InstanceRollback:
		if v.To != nil {
			return adapter.VersionChange{From: versionConfig(v.From), To: versionConfig(v.To)}
		}
	}
	return struct{}{}
}

func versionConfig(version *operation.Version) adapter.VersionConfig {
	return adapter.VersionConfig{Version: version.Version, Config: version.Config}
}

// shownChange returns what else would change: the contract's change and the desired members after it.
func shownChange(v *verdict.Verdicts) (json.RawMessage, error) {
	encoded, err := json.Marshal(contractChange(v, true))
	if err != nil {
		return nil, fmt.Errorf("encode the change: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("encode the change: %w", err)
	}
	if len(moreWanted(v)) > 0 {
		fields["desired"] = wantedAfter(v)
	}
	return json.Marshal(fields)
}

// moreWanted returns by how many the desired members change, by component.
func moreWanted(v *verdict.Verdicts) map[string]int {
	if v.Kind == lifecycle.MembersAdd {
		return map[string]int{v.ComponentKey: v.Count}
	}
	more := v.Leaves()
	for key := range more {
		more[key] *= v.Rule.More
	}
	return more
}

// wantedAfter returns the desired members after the change, by component.
func wantedAfter(v *verdict.Verdicts) map[string]int {
	after := make(map[string]int, len(v.Wanted))
	maps.Copy(after, v.Wanted)
	for key, more := range moreWanted(v) {
		after[key] = max(after[key]+more, 0)
	}
	return after
}

// instanceAfter returns the instance as it would be after the change.
func instanceAfter(v *verdict.Verdicts) (*db.Instance, error) {
	after := *v.Instance
	roles, err := roles.With(v.Instance, wantedAfter(v))
	if err != nil {
		return nil, err
	}
	after.Roles = roles
	if v.To != nil {
		after.AppVersion, after.Config = v.To.Version, v.To.Config
	}
	return &after, nil
}
