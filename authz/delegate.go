package authz

import (
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// RequireGrant refuses an actor that may not give, or take away, the role in the scope: it must hold the key
// BindingGrant there, and every key of the role, as no one gives what they lack. A holder of BindingGrant at platform
// scope may give any role: that is the root of all authority. The faults are those of Require; a key that is lacking is
// named.
func RequireGrant(actor *Actor, role Role, tenantID, projectID ids.ID) error {
	scope := Binding{TenantID: tenantID, ProjectID: projectID}.Scope()
	if err := role.BindableAt(scope); err != nil {
		return err
	}
	if err := Require(actor, BindingGrant, tenantID, projectID); err != nil {
		return err
	}
	return mayDelegate(actor, RoleMask(role), tenantID, projectID)
}

// never is the end of what does not end.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// RequireGrantUntil is RequireGrant for a role that lasts until ends, zero for never. bindings are those that the
// person holds now: no one gives a role, not even to themselves, for longer than they could give it (FORBIDDEN).
func RequireGrantUntil(actor *Actor, bindings []Binding, role Role, tenantID, projectID ids.ID, ends time.Time) error {
	if err := RequireGrant(actor, role, tenantID, projectID); err != nil {
		return err
	}
	last := never
	if !ends.IsZero() && ends.Before(never) {
		last = ends.Add(-time.Microsecond) // a binding ends with the microsecond it is stored by
	}
	if RequireGrant(NewActor(actor.Subject, bindings, nil, last), role, tenantID, projectID) != nil {
		return fault.New(fault.Forbidden, "a role can be given only for as long as you hold what it takes to give it").
			With(fault.Reason{Code: fault.PermissionMissing, Message: BindingGrant.String()})
	}
	return nil
}

// RequireDelegate checks the allow-list that an actor gives a service account of the project: every name must be
// a key below the ceiling of service accounts (INVALID_ARGUMENT, at permissionKeys.INDEX) and held by the actor itself
// (FORBIDDEN), unless the actor holds BindingGrant at platform scope.
func RequireDelegate(actor *Actor, names []string, tenantID, projectID ids.ID) error {
	ceiling := RoleMask(ceilingServiceAccount)
	var asked Mask
	for i, name := range names {
		key, ok := byName[name]
		if !ok || !ceiling.Has(key) {
			return fault.New(fault.InvalidArgument, "a service account cannot hold %.80q", name).
				At("permissionKeys." + strconv.Itoa(i))
		}
		asked.add(key)
	}
	return mayDelegate(actor, asked, tenantID, projectID)
}

// OperationKeys narrows the keys to those that an operation's or call's token can hold, by name.
func OperationKeys(keys ...Key) []string {
	return MaskOf(keys...).Intersect(RoleMask(ceilingOperation)).Names()
}

// mayDelegate refuses keys that the actor does not hold in the scope.
func mayDelegate(actor *Actor, keys Mask, tenantID, projectID ids.ID) error {
	if actor.Allows(BindingGrant, "", "") {
		return nil
	}
	lacking := keys.Minus(actor.Holds(tenantID, projectID)).Keys()
	if len(lacking) == 0 {
		return nil
	}
	f := fault.New(fault.Forbidden, "you can give only permissions that you hold, and you lack %s", lacking[0])
	for _, key := range lacking {
		f = f.With(fault.Reason{Code: fault.PermissionMissing, Message: key.String()})
	}
	return f
}
