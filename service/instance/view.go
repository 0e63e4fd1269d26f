// Package instance holds the verbs on instances: launch, upgrade, roll back, decommission, act, and read.
package instance

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// View is an instance as it is shown.
type View struct {
	*db.Instance
	// Loaded are neighbours that were read along with it; nil when it was read alone.
	Loaded *Loaded
}

// Role is the read model of one component: how many members are asked for, there, and healthy.
type Role struct {
	ComponentKey string `json:"componentKey"`
	DisplayName  string `json:"displayName"`
	Desired      int    `json:"desired"`
	Current      int    `json:"current"`
	Healthy      int    `json:"healthy"`
	Summary      string `json:"summary"`
}

// Roles are the components' read models, kept on the instance's row.
func (v *View) Roles() ([]*Role, error) {
	stored := v.Instance.Roles
	if len(stored) == 0 {
		return nil, nil
	}
	if !gjson.ValidBytes(stored) {
		return nil, fmt.Errorf("the roles of instance %s are no JSON", v.ID)
	}
	roles := []*Role{}
	gjson.ParseBytes(stored).ForEach(func(_, stored gjson.Result) bool {
		role := &Role{}
		stored.ForEach(role.set)
		roles = append(roles, role)
		return true
	})
	return roles, nil
}

// set takes one member of a stored role. Roles stand on every row of every list, so they are read
// without reflection.
func (r *Role) set(key, value gjson.Result) bool {
	switch key.Str {
	case "componentKey":
		r.ComponentKey = value.Str
	case "displayName":
		r.DisplayName = value.Str
	case "desired":
		r.Desired = int(value.Int())
	case "current":
		r.Current = int(value.Int())
	case "healthy":
		r.Healthy = int(value.Int())
	case "summary":
		r.Summary = value.Str
	}
	return true
}

// Failure is why the instance failed; nil when it did not.
func (v *View) Failure() *operation.Failure {
	if v.FailureCode == "" {
		return nil
	}
	return &operation.Failure{Code: v.FailureCode, Message: v.FailureMessage, Owner: v.FailureOwner, Retryable: v.FailureRetryable}
}
