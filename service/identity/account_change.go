package identity

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// PlanServiceAccountUpdate returns what an update would make of a service account, and what of it widens or narrows.
// It writes nothing. Key and refusals are those of UpdateServiceAccount.
func (s *Service) PlanServiceAccountUpdate(ctx context.Context, in UpdateServiceAccountInput) (out *AccountChange,
	err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		_, out, err = plannedAccount(ctx, t, "planServiceAccountUpdate", in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// check refuses an update that names nothing, or the same limit twice.
func (in *UpdateServiceAccountInput) check() error {
	var input check.Input
	if in.PermissionKeys != nil && (len(in.PermissionKeys) == 0 || len(in.PermissionKeys) > len(authz.Keys())) {
		input.Bad("input.permissionKeys", "must have 1 to %d permission keys", len(authz.Keys()))
	}
	if in.PermissionKeys == nil && in.Limits == nil && len(in.LiftLimits) == 0 {
		input.Bad("input", "permissionKeys, limits or liftLimits must be given")
	}
	if in.Limits != nil && !slices.ContainsFunc(limits, in.Limits.sets) {
		input.Bad("input.limits", "names no limit: set one, or lift one with liftLimits")
	}
	in.Limits.check(&input, "input.limits")
	for i, lifted := range in.LiftLimits {
		at := fmt.Sprintf("input.liftLimits.%d", i)
		switch {
		case slices.Index(in.LiftLimits, lifted) < i:
			input.Bad(at, "%s is named twice", lifted)
		case in.Limits.sets(lifted):
			input.Bad(at, "%s is set as well: set it or lift it", lifted)
		}
	}
	input.Reason("input.reason", in.Reason)
	return input.Err()
}

// limits are all limits of a service account.
var limits = []lifecycle.AccountLimit{lifecycle.LimitObjectIDs, lifecycle.LimitMaxRisk,
	lifecycle.LimitOperationsPerHour}

// sets reports whether the limits set the one named.
func (l *AccountLimits) sets(limit lifecycle.AccountLimit) bool {
	if l == nil {
		return false
	}
	switch limit {
	case lifecycle.LimitObjectIDs:
		return l.ObjectIds != nil
	case lifecycle.LimitMaxRisk:
		return l.MaxRisk != nil
	case lifecycle.LimitOperationsPerHour:
		return l.OperationsPerHour != nil
	}
	return false
}

// plannedAccount loads and locks the account, and returns it with what the update makes of it. It refuses what the
// caller may not give.
func plannedAccount(ctx context.Context, t *tx.Tx, action string, in UpdateServiceAccountInput) (*db.ServiceAccount,
	*AccountChange, error) {
	row, err := lockAccount(ctx, t, action, authz.ServiceAccountUpdate, in.ServiceAccountID)
	if err != nil {
		return nil, nil, err
	}
	change, err := changed(row, in)
	if err != nil {
		return nil, nil, err
	}
	if err := in.delegable(t, row, change); err != nil {
		object := authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID}
		return nil, nil, audit.Attempted(t, action, authz.ServiceAccountUpdate, object, row.ID, below("input", err))
	}
	return row, change, nil
}

// changed is what the update makes of the account: limits change one by one, and only those that are named.
func changed(row *db.ServiceAccount, in UpdateServiceAccountInput) (*AccountChange, error) {
	was, err := limitsOf(row)
	if err != nil {
		return nil, err
	}
	is := in.applied(was)
	out := &AccountChange{PermissionKeys: row.PermissionKeys, Limits: public(is), Widens: []string{},
		Narrows: []string{}}
	if in.PermissionKeys != nil {
		out.PermissionKeys = slices.Compact(slices.Sorted(slices.Values(in.PermissionKeys)))
	}
	out.compare("permissionKeys", lacks(row.PermissionKeys, out.PermissionKeys),
		lacks(out.PermissionKeys, row.PermissionKeys))
	wider, narrower := was.Compare(is)
	for _, limit := range wider {
		out.Widens = append(out.Widens, "limits."+limit)
	}
	for _, limit := range narrower {
		out.Narrows = append(out.Narrows, "limits."+limit)
	}
	return out, nil
}

// applied is the limits with those lifted and set that the update names.
func (in *UpdateServiceAccountInput) applied(limits authz.Limits) authz.Limits {
	for _, lifted := range in.LiftLimits {
		switch lifted {
		case lifecycle.LimitObjectIDs:
			limits.Objects = nil
		case lifecycle.LimitMaxRisk:
			limits.MaxRisk = ""
		case lifecycle.LimitOperationsPerHour:
			limits.OperationsPerHour = 0
		}
	}
	if set := in.Limits; set != nil {
		if set.ObjectIds != nil {
			limits.Objects = set.ObjectIds
		}
		limits.MaxRisk = cmp.Or(rows.Value(set.MaxRisk), limits.MaxRisk)
		limits.OperationsPerHour = cmp.Or(rows.Value(set.OperationsPerHour), limits.OperationsPerHour)
	}
	return limits
}

// compare notes a part that widens, narrows, both or neither.
func (c *AccountChange) compare(name string, widens, narrows bool) {
	if widens {
		c.Widens = append(c.Widens, name)
	}
	if narrows {
		c.Narrows = append(c.Narrows, name)
	}
}

// lacks reports whether list lacks one of the others.
func lacks(list, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return !slices.Contains(list, other) })
}
