package authz

import (
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Role is a named bundle of permission keys. Roles are bound to people; machines hold ceilings instead.
type Role string

// The roles of people, and the ceilings of machines.
const (
	PlatformOperator Role = "platform_operator"
	TenantAdmin      Role = "tenant_admin"
	ProjectAdmin     Role = "project_admin"
	ProjectMember    Role = "project_member"
	ProjectViewer    Role = "project_viewer"
	AppPublisher     Role = "app_publisher"

	ceilingServiceAccount Role = "service_account"
	ceilingOperation      Role = "operation"
	ceilingNode           Role = "node"
	ceilingEnrolment      Role = "enrolment"
)

// Scope is how far a binding reaches.
type Scope string

// The scopes, widest first.
const (
	ScopePlatform Scope = "PLATFORM"
	ScopeTenant   Scope = "TENANT"
	ScopeProject  Scope = "PROJECT"
)

// RoleEntry describes a role of the catalogue.
type RoleEntry struct {
	// Role is the stored name.
	Role Role
	// Scopes are where it may be bound; none for the ceiling of a machine, to which no one can be bound.
	Scopes []Scope
	// Description says what it is for, in one sentence.
	Description string
}

// roles is the catalogue of roles.
var roles = []RoleEntry{
	{PlatformOperator, []Scope{ScopePlatform}, "Runs the platform and sees everything in it."},
	{AppPublisher, []Scope{ScopePlatform}, "Publishes apps, manifests and artifacts."},
	{TenantAdmin, []Scope{ScopeTenant}, "Runs a tenant with its projects and people."},
	{ProjectAdmin, []Scope{ScopeTenant, ScopeProject}, "Launches and operates apps in a project, and runs it."},
	{ProjectMember, []Scope{ScopeTenant, ScopeProject}, "Sees a project and uses the apps that run in it."},
	{ProjectViewer, []Scope{ScopeTenant, ScopeProject}, "Sees a project and what runs in it."},
	{ceilingServiceAccount, nil, "Ceiling of a service account's allow-list, in its project."},
	{ceilingOperation, nil, "Ceiling of an operation's or call's token, on its instance."},
	{ceilingNode, nil, "What a node's credential can do, on its node."},
	{ceilingEnrolment, nil, "What a node's enrolment token can do."},
}

// Roles lists the roles that people can be bound to, with where.
func Roles() []RoleEntry {
	return slices.DeleteFunc(slices.Clone(roles), func(entry RoleEntry) bool { return len(entry.Scopes) == 0 })
}

// AllRoles lists every role, and after them the ceilings of machines, to which no one can be bound.
func AllRoles() []RoleEntry { return slices.Clone(roles) }

// Known reports whether the role, or ceiling, is in the catalogue.
func (r Role) Known() bool {
	return slices.ContainsFunc(roles, func(entry RoleEntry) bool { return entry.Role == r })
}

// ParseRole finds a role that people can be bound to; it fails with INVALID_ARGUMENT, listing them.
func ParseRole(name string) (Role, error) {
	var names []string
	for _, entry := range Roles() {
		if string(entry.Role) == name {
			return entry.Role, nil
		}
		names = append(names, string(entry.Role))
	}
	return "", fault.New(fault.InvalidArgument, "%.40q is not a role: want one of %s", name, strings.Join(names, ", "))
}

// BindableAt refuses a binding of the role at a scope where it has no meaning, with INVALID_ARGUMENT naming the
// scopes it can have.
func (r Role) BindableAt(scope Scope) error {
	var allowed []string
	for _, entry := range roles {
		if entry.Role != r {
			continue
		}
		if slices.Contains(entry.Scopes, scope) {
			return nil
		}
		for _, s := range entry.Scopes {
			allowed = append(allowed, strings.ToLower(string(s)))
		}
	}
	return fault.New(fault.InvalidArgument, "the role %s cannot be bound at %s scope, only at: %s",
		r, strings.ToLower(string(scope)), strings.Join(allowed, ", "))
}
