// Package instance holds the verbs on instances: launch, decommission, act, and read.
package instance

import (
	"encoding/json"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/operation"
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
	var roles []*Role
	if len(v.Instance.Roles) == 0 {
		return roles, nil
	}
	return roles, json.Unmarshal(v.Instance.Roles, &roles)
}

// Failure is why the instance failed; nil when it did not.
func (v *View) Failure() *operation.Failure {
	if v.FailureCode == "" {
		return nil
	}
	return &operation.Failure{Code: v.FailureCode, Message: v.FailureMessage, Owner: v.FailureOwner, Retryable: v.FailureRetryable}
}
