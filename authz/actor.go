package authz

import (
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Kind is what sort of subject an actor is.
type Kind string

// The kinds of actor. SYSTEM is the platform acting by itself, in its workers.
const (
	KindUser           Kind = "USER"
	KindServiceAccount Kind = "SERVICE_ACCOUNT"
	KindOperation      Kind = "OPERATION"
	KindNode           Kind = "NODE"
	KindEnrolment      Kind = "ENROLMENT"
	KindSystem         Kind = "SYSTEM"
)

// Subject is who a credential speaks for. Fields that do not apply to the kind stay empty.
type Subject struct {
	// Kind is what sort of subject it is.
	Kind Kind
	// ID is the subject's id: a user, service account, operation, node or enrolment.
	ID ids.ID
	// Name is what to call the subject in the audit log.
	Name string
	// CredentialID is the session, key, token or node credential in use, so that it can be distinguished and revoked.
	CredentialID string
	// TenantID is a person's home tenant, or the tenant of a machine's project; empty for platform staff.
	TenantID ids.ID
	// ProjectID is the project that a service account or an operation's token never leaves.
	ProjectID ids.ID
	// InstanceID is the instance that an operation's token is confined to.
	InstanceID ids.ID
	// NodeID is the node that a node's credential is confined to.
	NodeID ids.ID
	// ExpiresAt is when the credential ends; zero for never.
	ExpiresAt time.Time
	// Limits bind a service account further than its keys do.
	Limits Limits
	// For is who requested what an operation's or call's token does; zero when no one did.
	For Ref
}

// Limits are what a service account is bound to beyond its keys; the zero Limits bind nothing.
type Limits struct {
	// Objects are the instances, with all that belongs to them, and allocations that it may touch; none for all of its
	// project. With any, it cannot reach an object that is neither of an instance nor an allocation.
	Objects []ids.ID `json:"objectIds,omitempty"`
	// MaxRisk is the highest risk of an app action that it may request; empty for any.
	MaxRisk lifecycle.ActionRisk `json:"maxRisk,omitempty"`
	// OperationsPerHour is how many operations it may begin in an hour; 0 for no bound.
	OperationsPerHour int `json:"operationsPerHour,omitempty"`
}

// Binding is a role held in a scope: the platform when both ids are empty, the tenant when only ProjectID is
// empty, else the project, whose tenant is TenantID.
type Binding struct {
	// Role is the role held.
	Role Role
	// TenantID is the tenant; empty at platform scope.
	TenantID ids.ID
	// ProjectID is the project; empty at platform and tenant scope.
	ProjectID ids.ID
	// ExpiresAt is when it ends; zero for never.
	ExpiresAt time.Time
}

// Scope is how far the binding reaches.
func (b Binding) Scope() Scope {
	switch {
	case b.ProjectID != "":
		return ScopeProject
	case b.TenantID != "":
		return ScopeTenant
	}
	return ScopePlatform
}

// Actor is a subject with everything it may do, compiled: it is immutable and safe for concurrent use.
type Actor struct {
	Subject

	platform Mask
	tenants  grants
	// the tenants of project bindings, with at most TenantRead: of the tenant itself, not of its projects
	seen     grants
	projects grants
	anywhere Mask
	// refreshAt is when the first binding in use, or the credential, ends; zero for never.
	refreshAt time.Time
	about     *About // takes the objects that it is asked for; nil for nobody
}

// NewActor folds a subject's bindings into an actor. Bindings that ended at or before now are dropped, as are
// roles this build does not know and bindings at a scope that their role cannot have.
//
// allow, when not nil, narrows everything to the keys named; names this build does not know are dropped. A
// service account and an operation's token hold nothing but what allow names below their ceiling, in their own
// project, and a node or an enrolment exactly its ceiling: bindings of machines are ignored.
func NewActor(subject Subject, bindings []Binding, allow []string, now time.Time) *Actor {
	a := &Actor{Subject: subject, refreshAt: subject.ExpiresAt}
	switch subject.Kind {
	case KindUser:
		a.bind(bindings, allow, now)
	case KindServiceAccount:
		a.confine(RoleMask(ceilingServiceAccount).Intersect(named(allow)))
	case KindOperation:
		a.confine(RoleMask(ceilingOperation).Intersect(named(allow)))
	case KindNode:
		a.platform = RoleMask(ceilingNode)
	case KindEnrolment:
		a.platform = RoleMask(ceilingEnrolment)
	case KindSystem:
		a.platform = MaskOf(Keys()...)
	}
	a.anywhere = a.union()
	return a
}

// System is the platform acting by itself; name says which part of it, such as "worker".
func System(name string) *Actor {
	return NewActor(Subject{Kind: KindSystem, ID: "system", Name: name}, nil, nil, time.Time{})
}

// bind adds a person's live bindings, narrowed to allow unless that is nil.
func (a *Actor) bind(bindings []Binding, allow []string, now time.Time) {
	a.tenants, a.seen, a.projects = newGrants(len(bindings)), newGrants(0), newGrants(len(bindings))
	limit := MaskOf(Keys()...)
	if allow != nil {
		limit = named(allow)
	}
	for _, b := range bindings {
		ended := !b.ExpiresAt.IsZero() && !b.ExpiresAt.After(now)
		if ended || b.Role.BindableAt(b.Scope()) != nil {
			continue
		}
		a.grant(b, RoleMask(b.Role).Intersect(limit))
		a.refreshBy(b.ExpiresAt)
	}
}

// grant adds keys in the scope of a binding. A project binding lets its holder see the project's tenant too.
func (a *Actor) grant(b Binding, keys Mask) {
	switch b.Scope() {
	case ScopePlatform:
		a.platform = a.platform.Union(keys)
	case ScopeTenant:
		a.tenants.add(b.TenantID, keys)
	case ScopeProject:
		a.projects.add(b.ProjectID, keys)
		if b.TenantID != "" {
			a.seen.add(b.TenantID, keys.Intersect(tenantRead))
		}
	}
}

// confine gives a machine its keys in its own project and nowhere else.
func (a *Actor) confine(keys Mask) {
	a.tenants, a.seen, a.projects = newGrants(0), newGrants(1), newGrants(1)
	if a.ProjectID != "" && !keys.Empty() {
		a.grant(Binding{TenantID: a.TenantID, ProjectID: a.ProjectID}, keys)
	}
}

// refreshBy moves the moment at which the actor must be built again forward to end, where that is earlier.
func (a *Actor) refreshBy(end time.Time) {
	if !end.IsZero() && (a.refreshAt.IsZero() || end.Before(a.refreshAt)) {
		a.refreshAt = end
	}
}

// union is every key held in any scope.
func (a *Actor) union() Mask {
	all := a.platform
	for _, keys := range slices.Concat(a.tenants.sets, a.seen.sets, a.projects.sets) {
		all = all.Union(keys)
	}
	return all
}

// RefreshAt is when the first of the credential and the bindings in use ends; zero for never. A caller that keeps an
// actor, as a live subscription does, builds it again then.
func (a *Actor) RefreshAt() time.Time { return a.refreshAt }

// tenantRead is what a project binding gives on the project's tenant.
var tenantRead = MaskOf(TenantRead)

// named is the set of the keys named; unknown names are dropped.
func named(names []string) Mask {
	var mask Mask
	for _, name := range names {
		mask.add(byName[name])
	}
	mask[0] &^= 1 // an unknown name adds the zero Key
	return mask
}
