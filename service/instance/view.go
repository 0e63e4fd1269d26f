// Package instance holds the verbs on instances: launch, upgrade, roll back, decommission, act, and read.
package instance

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// View is an instance as it is shown.
type View struct {
	*db.Instance
	// Loaded are neighbours that were read along with it; nil when it was read alone.
	Loaded *Loaded
}

// Roles returns the counts of the components, as the instance's row keeps them.
func (v *View) Roles() ([]*roles.Count, error) {
	stored := v.Instance.Roles
	if len(stored) == 0 {
		return nil, nil
	}
	if !gjson.ValidBytes(stored) {
		return nil, fmt.Errorf("the roles of instance %s are not JSON", v.ID)
	}
	intents, err := v.intents()
	if err != nil {
		return nil, err
	}
	list := []*roles.Count{}
	gjson.ParseBytes(stored).ForEach(func(_, stored gjson.Result) bool {
		counts := &roles.Count{}
		stored.ForEach(func(name, value gjson.Result) bool { return setCount(counts, name.Str, value) })
		counts.Intent = intents[counts.ComponentKey]
		list = append(list, counts)
		return true
	})
	return list, nil
}

// setCount sets one field of stored counts. Every row of every list has counts, so they are read without reflection.
func setCount(counts *roles.Count, name string, value gjson.Result) bool {
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
	case "runtimeState":
		counts.Runtime = runtimeOf(value)
	}
	return true
}

// runtimeOf reads what an adapter reports of a component; nil for what cannot be read.
func runtimeOf(stored gjson.Result) *roles.Runtime {
	said := &roles.Runtime{}
	if json.Unmarshal([]byte(stored.Raw), said) != nil {
		return nil
	}
	return said
}

// Failure returns why the instance failed; nil when it did not.
func (v *View) Failure() *operation.Failure {
	if v.FailureCode == "" {
		return nil
	}
	return &operation.Failure{Code: v.FailureCode, Message: v.FailureMessage, Owner: v.FailureOwner,
		Retryable: v.FailureRetryable}
}
