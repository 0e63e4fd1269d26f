package change

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// targets are the members that the operation acts on; empty for the whole instance.
func (c *Change) targets() []ids.ID {
	switch {
	case c.Kind == lifecycle.MembersAdd:
		return c.Made.Members
	case c.MemberID != "":
		return []ids.ID{c.MemberID}
	}
	return nil
}

// contract is the change in the words of the adapter contract. A plan has no replacement yet.
func (c *Change) contract(planned bool) any {
	switch c.Kind {
	case lifecycle.MembersAdd:
		return adapter.AddChange{Components: []adapter.ComponentCount{{Key: c.ComponentKey, Count: c.Count}}}
	case lifecycle.MemberLabel:
		return struct {
			Labels json.RawMessage `json:"labels"`
		}{c.Labels}
	case lifecycle.MemberReplace:
		if !planned {
			return adapter.ReplaceChange{ReplacementID: string(c.Made.Members[0])}
		}
	case lifecycle.InstanceUpgrade, lifecycle.InstanceRollback:
		if c.To != nil {
			return adapter.VersionChange{From: shown(c.From), To: shown(c.To)}
		}
	}
	return struct{}{}
}

func shown(v *operation.Version) adapter.VersionConfig {
	return adapter.VersionConfig{Version: v.Version, Config: v.Config}
}

// desired is what is stored as the operation's desired change.
func (c *Change) desired() (json.RawMessage, error) {
	input, err := json.Marshal(c.Asked.Input)
	if err != nil {
		return nil, fmt.Errorf("encode the input: %w", err)
	}
	private := operation.Private{Input: input, KeepFailed: c.Asked.KeepFailed, From: c.From, To: c.To}
	for _, op := range c.superseded {
		private.Supersedes = append(private.Supersedes, op.ID)
	}
	for _, allocation := range c.created {
		private.CreatedAllocations = append(private.CreatedAllocations, allocation.ID)
	}
	return operation.WithPrivate(c.contract(false), private)
}

// More is by how many the members asked for change, and of which component.
func (c *Change) More() (key string, more int) {
	switch {
	case c.Kind == lifecycle.MembersAdd:
		return c.ComponentKey, c.Count
	case c.Rule.More < 0:
		return c.Member.ComponentKey, c.Rule.More
	}
	return "", 0
}

// wantedAfter is how many members are asked for once the change is accepted, by component.
func (c *Change) wantedAfter() map[string]int {
	after := make(map[string]int, len(c.Wanted))
	for key, count := range c.Wanted {
		after[key] = count
	}
	if key, more := c.More(); more != 0 {
		after[key] = max(after[key]+more, 0)
	}
	return after
}

// instanceAfter is the instance as an adapter is asked about it: as it would be after the change.
func (c *Change) instanceAfter() (*db.Instance, error) {
	after := *c.Instance
	roles, err := operation.RolesWith(c.Instance, c.wantedAfter())
	if err != nil {
		return nil, err
	}
	after.Roles = roles
	if c.To != nil {
		after.AppVersion, after.Config = c.To.Version, c.To.Config
	}
	return &after, nil
}
