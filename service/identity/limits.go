package identity

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Bounds of a service account's limits.
const (
	maxLimitObjects      = 100
	maxOperationsPerHour = 100_000
)

// check notes what is wrong with the limits, below path.
func (l *AccountLimits) check(input *check.Input, path string) {
	if l == nil {
		return
	}
	if l.ObjectIds != nil && (len(l.ObjectIds) == 0 || len(l.ObjectIds) > maxLimitObjects) {
		input.Bad(path+".objectIds", "must have 1 to %d instances and allocations, or be left out", maxLimitObjects)
		return
	}
	for i, id := range l.ObjectIds {
		at := fmt.Sprintf("%s.objectIds.%d", path, i)
		switch {
		case !id.Is(ids.Instance) && !id.Is(ids.Allocation):
			input.Bad(at, "must be the id of an instance or an allocation")
		case slices.Index(l.ObjectIds, id) < i:
			input.Bad(at, "is listed twice")
		}
	}
	if n := l.OperationsPerHour; n != nil && (*n < 1 || *n > maxOperationsPerHour) {
		input.Bad(path+".operationsPerHour", "must be 1 to %d", maxOperationsPerHour)
	}
}

// stored is the limits as the row keeps them; nil when they bind nothing.
func (l *AccountLimits) stored() (json.RawMessage, error) {
	if l == nil {
		return nil, nil
	}
	limits := authz.Limits{Objects: l.ObjectIds, MaxRisk: rows.Value(l.MaxRisk),
		OperationsPerHour: rows.Value(l.OperationsPerHour)}
	if len(limits.Objects) == 0 && limits.MaxRisk == "" && limits.OperationsPerHour == 0 {
		return nil, nil
	}
	encoded, err := json.Marshal(limits)
	if err != nil {
		return nil, fmt.Errorf("encode limits: %w", err)
	}
	return encoded, nil
}

// LimitsOf is what a service account is bound to beyond its keys; nil for nothing.
func LimitsOf(account *db.ServiceAccount) (*AccountLimits, error) {
	limits, err := limitsOf(account)
	if err != nil {
		return nil, err
	}
	return public(limits), nil
}

// limitsOf reads the limits of the row.
func limitsOf(account *db.ServiceAccount) (limits authz.Limits, err error) {
	if len(account.Limits) == 0 {
		return limits, nil
	}
	if err := json.Unmarshal(account.Limits, &limits); err != nil {
		return limits, fmt.Errorf("limits of service account %s: %w", account.ID, err)
	}
	return limits, nil
}

// public is limits as the contract shows them; nil when they bind nothing.
func public(limits authz.Limits) *AccountLimits {
	if len(limits.Objects) == 0 && limits.MaxRisk == "" && limits.OperationsPerHour == 0 {
		return nil
	}
	out := &AccountLimits{ObjectIds: limits.Objects}
	if limits.MaxRisk != "" {
		out.MaxRisk = &limits.MaxRisk
	}
	if limits.OperationsPerHour > 0 {
		out.OperationsPerHour = &limits.OperationsPerHour
	}
	return out
}
