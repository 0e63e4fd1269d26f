package authz

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Bounds of an explanation.
const (
	maxBecause = 100
	maxMissing = 20
)

// GroundKind is what sort of row a ground is.
type GroundKind string

// The kinds of ground: a role binding, a service account's allow-list, an operation's token, the ceiling of a kind of
// machine, and what a subject is confined to.
const (
	GroundBinding   GroundKind = "BINDING"
	GroundAllowList GroundKind = "ALLOW_LIST"
	GroundToken     GroundKind = "TOKEN"
	GroundCeiling   GroundKind = "CEILING"
	GroundLimit     GroundKind = "LIMIT"
)

// Ground is a row that gives a permission, or comes nearest to giving it.
type Ground struct {
	// Kind is what sort of row it is.
	Kind GroundKind
	// ID is the row's; empty for a role that the person could be given.
	ID ids.ID
	// Role is a binding's.
	Role Role
	// Scope is how far a binding reaches.
	Scope Scope
	// ExpiresAt is when it ends, or ended; zero for never.
	ExpiresAt time.Time
	// BreakGlass marks a binding that was given in an emergency.
	BreakGlass bool
	// Message describes the ground to a person.
	Message string
}

// Holding is a binding as it is stored, live or ended.
type Holding struct {
	Binding
	// ID is the row's.
	ID ids.ID
	// RevokedAt is when it was taken away; zero while it was not.
	RevokedAt time.Time
	// BreakGlass marks one that was given in an emergency.
	BreakGlass bool
}

// Case is what a decision rests on: the subject, the key, the object, and the rows.
type Case struct {
	// Subject is who needs the key, with what it is confined to.
	Subject Subject
	// Barred says why no credential of the subject is let in at all; empty when one would be.
	Barred string
	// Holdings are a person's bindings; those that ended are read for what is missing.
	Holdings []Holding
	// Lapsed are the keys of Allow that the maker of a service account may not give any more.
	Lapsed []string
	// Allow is the allow-list of a service account, or the keys of an operation's token.
	Allow []string
	// Key is the permission that the decision is about.
	Key Key
	// Object is what the decision is about, with its scope.
	Object Object
	// Anywhere is for what belongs to no tenant but is not for everyone, such as the catalog: holding the key in
	// any scope will do.
	Anywhere bool
	// Risk is the risk of the app action; empty for another verb, or to leave the risk out of the decision.
	Risk lifecycle.ActionRisk
	// Now is the moment of the decision.
	Now time.Time
}

// Verdict is why a case is decided as it is.
type Verdict struct {
	// Because are the rows that give the key, at most 100; none when it is not held.
	Because []Ground
	// Missing is what would give it, the nearest first, at most 20; none when it is held.
	Missing []Ground
}

// Allowed reports whether the key is held: the result of AllowsOn for the actor that NewActor makes of the same rows,
// or of AllowsAnywhere where the case's Anywhere is set.
func (v Verdict) Allowed() bool { return len(v.Because) > 0 }

// Explain decides a case from its rows, one by one, and returns the rows that give the key, or what is missing.
func Explain(c Case) Verdict {
	var v Verdict
	switch c.Subject.Kind {
	case KindUser:
		v = c.person()
	case KindServiceAccount:
		v = c.machine(ceilingServiceAccount, GroundAllowList, "the service account's allow-list")
	case KindOperation:
		v = c.machine(ceilingOperation, GroundToken, "the list that its tokens carry")
	case KindNode:
		v = c.node(ceilingNode, "a node's credential")
	case KindEnrolment:
		v = c.node(ceilingEnrolment, "an enrolment token")
	case KindSystem:
		if c.Key == 0 {
			return Verdict{Missing: []Ground{{Kind: GroundCeiling, ID: c.Subject.ID,
				Message: "it is not a permission"}}}
		}
		v.Because = []Ground{{Kind: GroundCeiling, ID: c.Subject.ID, Scope: ScopePlatform,
			Message: "the platform acts by itself"}}
	}
	if c.Barred != "" {
		v = Verdict{Missing: append([]Ground{{Kind: GroundLimit, ID: c.Subject.ID, Message: c.Barred}}, v.Missing...)}
	}
	v.Because, v.Missing = v.Because[:min(len(v.Because), maxBecause)], v.Missing[:min(len(v.Missing), maxMissing)]
	return v
}

// person looks for a live binding that covers the object with a role that holds the key.
func (c *Case) person() Verdict {
	var v Verdict
	for _, h := range c.Holdings {
		if h.Role.BindableAt(h.Scope()) != nil || !holds(h.Role, c.Key) || !c.covers(h.Binding) {
			continue
		}
		ground := Ground{Kind: GroundBinding, ID: h.ID, Role: h.Role, Scope: h.Scope(), ExpiresAt: h.ExpiresAt,
			BreakGlass: h.BreakGlass}
		switch where := place(h.TenantID, h.ProjectID); {
		case !h.RevokedAt.IsZero():
			ground.Message = fmt.Sprintf("%s %s gave it until the binding was revoked on %s", h.Role, where,
				h.RevokedAt.UTC().Format(time.RFC3339))
			v.Missing = append(v.Missing, ground)
		case !h.ExpiresAt.IsZero() && !h.ExpiresAt.After(c.Now):
			ground.Message = fmt.Sprintf("%s %s gave it until the binding ended on %s", h.Role, where,
				h.ExpiresAt.UTC().Format(time.RFC3339))
			v.Missing = append(v.Missing, ground)
		default:
			ground.Message = fmt.Sprintf("%s %s gives it", h.Role, where)
			if h.BreakGlass {
				ground.Message += " under break-glass"
			}
			v.Because = append(v.Because, ground)
		}
	}
	if v.Allowed() {
		return Verdict{Because: v.Because}
	}
	// the newest first: ids are in order of time
	slices.SortStableFunc(v.Missing, func(a, b Ground) int { return -cmp.Compare(a.ID, b.ID) })
	v.Missing = append(v.Missing[:min(len(v.Missing), maxMissing/2)], c.couldHold()...)
	return v
}

// covers says whether a binding reaches the object. A project binding lets its holder see the project's tenant too, and
// none of that tenant's other projects.
func (c *Case) covers(b Binding) bool {
	switch {
	case c.Anywhere:
		return true
	case b.Scope() == ScopePlatform:
		return true
	case b.Scope() == ScopeTenant:
		return b.TenantID == c.Object.TenantID
	case b.ProjectID == c.Object.ProjectID:
		return true
	}
	return c.Key == TenantRead && c.Object.ProjectID == "" && b.TenantID != "" && b.TenantID == c.Object.TenantID
}

// couldHold are the roles that would give a person the key, those that give the least first.
func (c *Case) couldHold() []Ground {
	owner, home := c.Object.TenantID, c.Subject.TenantID
	if home != "" && owner != "" && home != owner {
		return []Ground{{Kind: GroundLimit, ID: c.Subject.ID,
			Message: "the person belongs to another tenant, and roles in this one go to its own people"}}
	}
	var found []Ground
	for _, scope := range []Scope{ScopeProject, ScopeTenant, ScopePlatform} {
		tenant, project := owner, c.Object.ProjectID
		switch {
		case scope == ScopeProject && project == "", scope == ScopeTenant && tenant == "", scope == ScopePlatform &&
			home != "":
			continue // there is no such scope, or the person can hold nothing there
		case scope == ScopeTenant:
			project = ""
		case scope == ScopePlatform:
			tenant, project = "", ""
		}
		for _, role := range rolesWith(c.Key, scope) {
			found = append(found, Ground{Kind: GroundBinding, Role: role, Scope: scope,
				Message: fmt.Sprintf("%s %s would give it", role, place(tenant, project))})
		}
	}
	if len(found) == 0 {
		message := "only platform staff can hold it here"
		if len(rolesWith(c.Key, "")) == 0 {
			message = "no role of people holds it: it is for machines alone"
		}
		found = []Ground{{Kind: GroundCeiling, Message: message}}
	}
	return found
}

// rolesWith are the roles of people that hold the key and can be bound at the scope, empty for any, least first.
func rolesWith(key Key, scope Scope) []Role {
	var found []Role
	for _, entry := range Roles() {
		if mask := RoleMask(entry.Role); mask.Has(key) && (scope == "" || slices.Contains(entry.Scopes, scope)) {
			found = append(found, entry.Role)
		}
	}
	slices.SortStableFunc(found, func(a, b Role) int {
		return cmp.Compare(len(RoleMask(a).Keys()), len(RoleMask(b).Keys()))
	})
	return found
}

// machine checks what lies between a service account or an operation's token and the object: its ceiling, its list, its
// project and what it is confined to.
func (c *Case) machine(ceiling Role, kind GroundKind, list string) Verdict {
	var v Verdict
	miss := func(kind GroundKind, format string, args ...any) {
		v.Missing = append(v.Missing, Ground{Kind: kind, ID: c.Subject.ID, Message: fmt.Sprintf(format, args...)})
	}
	if !holds(ceiling, c.Key) {
		miss(GroundCeiling, "%s lies above the ceiling of %ss: only a person can hold it", c.Key,
			machineName(c.Subject.Kind))
	}
	if !slices.Contains(c.Allow, c.Key.String()) {
		miss(kind, "%s is not on %s", c.Key, list)
	} else if slices.Contains(c.Lapsed, c.Key.String()) {
		miss(GroundLimit, "the person responsible for the %s can no longer grant %s: someone who holds it must change "+
			"the account", machineName(c.Subject.Kind), c.Key)
	}
	own := Binding{TenantID: c.Subject.TenantID, ProjectID: c.Subject.ProjectID}
	if own.ProjectID == "" || !c.covers(own) {
		miss(GroundLimit, "a %s never leaves its project %s", machineName(c.Subject.Kind), own.ProjectID)
	} else if !c.Anywhere && !c.Subject.reaches(c.Object) {
		miss(GroundLimit, "the %s's limits do not reach this object", machineName(c.Subject.Kind))
	}
	if c.Risk != "" && !c.Subject.Limits.permit(c.Risk) {
		miss(GroundLimit, "the %s's limits leave it app actions of risk up to %s, and not %s",
			machineName(c.Subject.Kind), c.Subject.Limits.MaxRisk, c.Risk)
	}
	if len(v.Missing) == 0 {
		v.Because = []Ground{{Kind: kind, ID: c.Subject.ID, Scope: ScopeProject, ExpiresAt: c.Subject.ExpiresAt,
			Message: fmt.Sprintf("%s is on %s%s", c.Key, list, c.Subject.Limits.told())}}
	}
	return v
}

// node checks a credential that holds exactly its ceiling, on its own node.
func (c *Case) node(ceiling Role, what string) Verdict {
	var v Verdict
	if !holds(ceiling, c.Key) {
		v.Missing = append(v.Missing, Ground{Kind: GroundCeiling, ID: c.Subject.ID,
			Message: fmt.Sprintf("%s is beyond what %s can do", c.Key, what)})
	} else if !c.Anywhere && !c.Subject.reaches(c.Object) {
		v.Missing = append(v.Missing, Ground{Kind: GroundLimit, ID: c.Subject.ID,
			Message: what + " reaches only its own node and its tasks"})
	}
	if len(v.Missing) == 0 {
		v.Because = []Ground{{Kind: GroundCeiling, ID: c.Subject.ID, Scope: ScopePlatform,
			Message: fmt.Sprintf("%s can do this on its own node", what)}}
	}
	return v
}

// machineName is what a person calls a kind of machine.
func machineName(kind Kind) string {
	if kind == KindServiceAccount {
		return "service account"
	}
	return "operation's token"
}

// place says where a binding holds.
func place(tenantID, projectID ids.ID) string {
	switch {
	case projectID != "":
		return "in project " + string(projectID)
	case tenantID != "":
		return "in tenant " + string(tenantID)
	}
	return "at the platform"
}

// holds says whether a role, or a ceiling, holds the key.
func holds(role Role, key Key) bool {
	mask := RoleMask(role)
	return mask.Has(key)
}
