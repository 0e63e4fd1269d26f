package authz

import (
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// Object is what a decision needs to know of a thing: its scope and what it belongs to. Empty ids do not apply.
type Object struct {
	// TenantID and ProjectID own it; both are empty for what belongs to the platform.
	TenantID, ProjectID ids.ID
	// InstanceID is the app instance that it is, or is part of.
	InstanceID ids.ID
	// AppSlug is the app of that instance, for the audit and for logs; empty where the instance was not read.
	AppSlug string
	// AllocationID is the allocation that it is.
	AllocationID ids.ID
	// NodeID is the node that it is, or is work for.
	NodeID ids.ID
}

// Allows reports whether the actor holds the key in the scope: the platform when both ids are empty, the tenant
// when only projectID is, else the project of that tenant. It allocates nothing. It does not look at what an
// operation's token or a node is confined to: AllowsOn does.
func (a *Actor) Allows(key Key, tenantID, projectID ids.ID) bool {
	if a == nil {
		return false
	}
	if a.platform.Has(key) {
		return true
	}
	if !a.anywhere.Has(key) {
		return false // whoever holds it nowhere need not be looked up
	}
	if projectID != "" && a.projects.has(projectID, key) {
		return true
	}
	if tenantID == "" {
		return false
	}
	return a.tenants.has(tenantID, key) || (projectID == "" && a.seen.has(tenantID, key))
}

// AllowsOn reports whether the actor holds the key on the object. An operation's token reaches only its own
// instance, a node's credential only its own node, and a service account that is limited to objects only these:
// an object that names none is beyond their reach.
func (a *Actor) AllowsOn(key Key, object Object) bool {
	return a.Allows(key, object.TenantID, object.ProjectID) && a.reaches(object)
}

// AllowsAnywhere reports whether the actor holds the key in any scope at all. It is the rule for what belongs to
// no tenant but is not for everyone, such as the catalog.
func (a *Actor) AllowsAnywhere(key Key) bool { return a != nil && a.anywhere.Has(key) }

// Holds is the set of keys the actor holds in the scope.
func (a *Actor) Holds(tenantID, projectID ids.ID) Mask {
	if a == nil {
		return Mask{}
	}
	held := a.platform
	if tenantID != "" {
		held = held.Union(a.tenants.of(tenantID))
	}
	if tenantID != "" && projectID == "" {
		held = held.Union(a.seen.of(tenantID))
	}
	if projectID != "" {
		held = held.Union(a.projects.of(projectID))
	}
	return held
}

// Reach is where an actor holds a key: lists show these scopes, and row-level security is set to them.
type Reach struct {
	// Platform is true when it holds the key everywhere; the lists are empty then.
	Platform bool
	// Tenants are those it holds the key in, with all their projects, sorted.
	Tenants []ids.ID
	// Projects are those it holds the key in by themselves, sorted.
	Projects []ids.ID
}

// Reach is where the actor holds any of the keys; with none given, where it holds anything at all.
func (a *Actor) Reach(keys ...Key) Reach {
	wanted := MaskOf(keys...)
	if len(keys) == 0 {
		wanted = MaskOf(Keys()...)
	}
	switch {
	case a == nil:
		return Reach{}
	case !a.platform.Intersect(wanted).Empty():
		return Reach{Platform: true}
	}
	tenants := slices.Concat(a.tenants.holding(wanted), a.seen.holding(wanted))
	slices.Sort(tenants)
	return Reach{Tenants: slices.Compact(tenants), Projects: a.projects.holding(wanted)}
}

// Require refuses an actor that lacks the key in the scope (see Allows): UNAUTHENTICATED when there is no actor,
// FORBIDDEN naming the key when it may read anything in the scope, else NOT_FOUND, so that no caller learns of what is
// not theirs. For what belongs to the platform it is always FORBIDDEN. An operation's token or a node's credential is
// refused as well: what they may touch goes through RequireOn.
func Require(actor *Actor, key Key, tenantID, projectID ids.ID) error {
	return RequireOn(actor, key, Object{TenantID: tenantID, ProjectID: projectID})
}

// RequireOn is Require for an object that may be, or be part of, an instance or a node: an operation's token gets
// NOT_FOUND for every instance but its own, and a node for every node but itself.
func RequireOn(actor *Actor, key Key, object Object) error {
	if actor == nil {
		return fault.New(fault.Unauthenticated, "a credential is required")
	}
	actor.about.note(object)
	switch {
	case actor.AllowsOn(key, object):
		return nil
	case actor.confinedFrom(object):
		return fault.New(fault.Forbidden, "the service account is limited to certain instances and allocations").
			With(fault.Reason{Code: fault.AccountLimit, Message: "limits.objectIds"})
	case actor.sees(object):
		return missing(key).Because(&Refusal{actor, []Key{key}, object})
	}
	return fault.NoSuch().Because(&Refusal{actor, []Key{key}, object})
}

// RequireAnywhere refuses an actor that holds none of the keys in any scope: UNAUTHENTICATED or FORBIDDEN.
func RequireAnywhere(actor *Actor, keys ...Key) error {
	if actor == nil {
		return fault.New(fault.Unauthenticated, "a credential is required")
	}
	if slices.ContainsFunc(keys, actor.AllowsAnywhere) {
		return nil
	}
	return missing(keys...).Because(&Refusal{actor, keys, Object{}})
}

// RequireAny is RequireOn satisfied by any of the keys, as for what is of no one permission family. The refusal
// names them all.
func RequireAny(actor *Actor, object Object, keys ...Key) error {
	var err error
	for _, key := range keys {
		if err = RequireOn(actor, key, object); err == nil {
			return nil
		}
	}
	if fault.Is(err, fault.Forbidden) && !actor.confinedFrom(object) {
		return missing(keys...).Because(&Refusal{actor, keys, object})
	}
	return err
}

// Refusal is who was refused what: the cause of the fault, for the audit. It never leaves the server.
type Refusal struct {
	Actor *Actor
	// Keys are those of which any would have done.
	Keys   []Key
	Object Object
}

// Error says it, for logs.
func (r *Refusal) Error() string { return string(r.Actor.ID) + " lacks " + list(r.Keys) }

// reaches reports whether what the subject is confined to, if anything, is the object's.
func (s *Subject) reaches(object Object) bool {
	switch s.Kind {
	case KindOperation:
		return s.InstanceID != "" && object.InstanceID == s.InstanceID
	case KindNode:
		return s.NodeID != "" && object.NodeID == s.NodeID
	case KindServiceAccount:
		return s.Limits.reach(object)
	}
	return true
}

// reach reports whether the limits leave the object to the account. Those that name objects leave nothing else: what is
// neither of an instance nor an allocation, such as the project itself, is beyond them.
func (l *Limits) reach(object Object) bool {
	for _, id := range l.Objects {
		if id != "" && (id == object.InstanceID || id == object.AllocationID) {
			return true
		}
	}
	return len(l.Objects) == 0
}

// confinedFrom reports whether the object is the project itself, of which a service account that is limited to
// objects knows, though it may do nothing with the whole of it.
func (a *Actor) confinedFrom(object Object) bool {
	return a.Kind == KindServiceAccount && len(a.Limits.Objects) > 0 && a.ProjectID != "" &&
		object.ProjectID == a.ProjectID &&
		object.InstanceID == "" && object.AllocationID == "" && object.NodeID == ""
}

// sees reports whether the actor may know that the object exists: it reads something in the same scope.
func (a *Actor) sees(object Object) bool {
	switch {
	case object == (Object{}):
		return true
	case !a.reaches(object):
		return false
	}
	held := a.Holds(object.TenantID, object.ProjectID)
	return !held.Intersect(readKeys).Empty()
}

// missing is the refusal that names the keys, any one of which would do.
func missing(keys ...Key) *fault.Fault {
	f := fault.New(fault.Forbidden, "the permission %s is needed", list(keys))
	for _, key := range keys {
		f = f.With(fault.Reason{Code: fault.PermissionMissing, Message: key.String()})
	}
	return f
}

// list joins keys for a message.
func list(keys []Key) string {
	text := ""
	for i, key := range keys {
		if i > 0 {
			text += " or "
		}
		text += key.String()
	}
	return text
}
