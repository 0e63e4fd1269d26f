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

// Roles returns the counts of the components, as the instance's row keeps them.
func (v *View) Roles() ([]*operation.ComponentCounts, error) {
	stored := v.Instance.Roles
	if len(stored) == 0 {
		return nil, nil
	}
	if !gjson.ValidBytes(stored) {
		return nil, fmt.Errorf("the roles of instance %s are no JSON", v.ID)
	}
	roles := []*operation.ComponentCounts{}
	gjson.ParseBytes(stored).ForEach(func(_, stored gjson.Result) bool {
		counts := &operation.ComponentCounts{}
		stored.ForEach(func(name, value gjson.Result) bool { return setCount(counts, name.Str, value) })
		roles = append(roles, counts)
		return true
	})
	return roles, nil
}

// setCount sets one field of stored counts. Every row of every list has counts, so they are read without reflection.
func setCount(counts *operation.ComponentCounts, name string, value gjson.Result) bool {
	switch name {
	case "componentKey":
		counts.ComponentKey = value.Str
	case "displayName":
		counts.DisplayName = value.Str
	case "desired":
		counts.Desired = int(value.Int())
	case "current":
		counts.Current = int(value.Int())
	case "healthy":
		counts.Healthy = int(value.Int())
	case "summary":
		counts.Summary = value.Str
	}
	return true
}

// Failure returns why the instance failed; nil when it did not.
func (v *View) Failure() *operation.Failure {
	if v.FailureCode == "" {
		return nil
	}
	return &operation.Failure{Code: v.FailureCode, Message: v.FailureMessage, Owner: v.FailureOwner,
		Retryable: v.FailureRetryable}
}
