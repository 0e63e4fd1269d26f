package explain

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// maxHelpers bounds how many people are named who could help.
const maxHelpers = 20

// helper is a person with what they hold where the permission is missing.
type helper struct {
	ref      *authz.Ref
	bindings []authz.Binding
}

// loadBindings reads a person's bindings that bear on the object, and the people who could give what is missing, in one
// round trip. Callers that are machines get neither: they hold no bindings, and may see no people.
func (s *Service) loadBindings(ctx context.Context, caller *authz.Actor, who ids.ID, c *authz.Case) ([]*authz.Ref,
	error) {
	if caller.Kind == authz.KindNode || caller.Kind == authz.KindEnrolment {
		return nil, nil
	}
	var people []*helper
	queries := []tx.Query{{SQL: `SELECT user_id, display_name, role, tenant_id, project_id, expires_at
		FROM platform.granters($1, $2, $3)`,
		Args: []any{text(c.Object.TenantID), text(c.Object.ProjectID), rolesThatGive()},
		Scan: func(rows pgx.Rows) (err error) {
			people, err = collectHelpers(rows)
			return err
		}}}
	if c.Subject.Kind == authz.KindUser {
		queries = append(queries, tx.Rows(&c.Holdings, scanHolding, `SELECT id, role, tenant_id, project_id, expires_at,
			revoked_at, break_glass
			FROM platform.bindings_explained($1, $2, $3, $4, $5)`,
			who, text(c.Object.TenantID), text(c.Object.ProjectID), c.Key == authz.TenantRead &&
				c.Object.ProjectID == "",
			c.Anywhere))
	}
	if _, err := s.DB.Read(ctx, queries...); err != nil {
		return nil, err
	}
	return able(people, c), nil
}

// able are those of the people who can give what the verdict misses: a role to a person, a key to a service account.
func able(people []*helper, c *authz.Case) []*authz.Ref {
	tenant, project := c.Object.TenantID, c.Object.ProjectID
	var can func(*authz.Actor) bool
	switch c.Subject.Kind {
	case authz.KindUser:
		var roles []authz.Ground
		for _, missing := range authz.Explain(*c).Missing {
			if missing.Kind == authz.GroundBinding && missing.ID == "" {
				roles = append(roles, missing)
			}
		}
		can = func(actor *authz.Actor) bool {
			for _, role := range roles {
				if authz.RequireGrant(actor, role.Role, within(role.Scope, tenant),
					within(role.Scope, project, authz.ScopeTenant)) == nil {
					return true
				}
			}
			return false
		}
	case authz.KindServiceAccount:
		can = func(actor *authz.Actor) bool {
			return c.Subject.ProjectID == project && actor.Allows(authz.ServiceAccountUpdate, tenant, project) &&
				authz.RequireDelegate(actor, []string{c.Key.String()}, tenant, project) == nil
		}
	default:
		return nil
	}
	var found []*authz.Ref
	for _, person := range people {
		actor := authz.NewActor(authz.Subject{Kind: authz.KindUser, ID: ids.ID(person.ref.ID)}, person.bindings,
			nil, c.Now)
		if person.ref.ID != string(c.Subject.ID) && len(found) < maxHelpers && can(actor) {
			found = append(found, person.ref)
		}
	}
	return found
}

// within is an id in a scope: empty at the platform's, and at the others named.
func within(scope authz.Scope, id ids.ID, empty ...authz.Scope) ids.ID {
	for _, none := range append(empty, authz.ScopePlatform) {
		if scope == none {
			return ""
		}
	}
	return id
}

// rolesThatGive are the roles whose holders can give a role or change a service account.
func rolesThatGive() []string {
	var names []string
	for _, entry := range authz.Roles() {
		mask := authz.RoleMask(entry.Role)
		if mask.Has(authz.BindingGrant) || mask.Has(authz.ServiceAccountUpdate) {
			names = append(names, string(entry.Role))
		}
	}
	return names
}

func scanHolding(row pgx.CollectableRow) (authz.Holding, error) {
	var h authz.Holding
	var tenant, project *ids.ID
	var expires, revoked *time.Time
	err := row.Scan(&h.ID, &h.Role, &tenant, &project, &expires, &revoked, &h.BreakGlass)
	h.TenantID, h.ProjectID, h.ExpiresAt, h.RevokedAt = rows.Value(tenant), rows.Value(project), rows.Value(expires),
		rows.Value(revoked)
	return h, err
}

// collectHelpers gathers each person's bindings, in the order in which the people come.
func collectHelpers(found pgx.Rows) ([]*helper, error) {
	byID := make(map[string]*helper)
	var people []*helper
	defer found.Close()
	for found.Next() {
		var id, name string
		var b authz.Binding
		var tenant, project *ids.ID
		var expires *time.Time
		if err := found.Scan(&id, &name, &b.Role, &tenant, &project, &expires); err != nil {
			return nil, err
		}
		b.TenantID, b.ProjectID, b.ExpiresAt = rows.Value(tenant), rows.Value(project), rows.Value(expires)
		if byID[id] == nil {
			byID[id] = &helper{ref: &authz.Ref{Kind: string(authz.KindUser), ID: id, Name: name}}
			people = append(people, byID[id])
		}
		byID[id].bindings = append(byID[id].bindings, b)
	}
	return people, found.Err()
}

// text is an id as a parameter, NULL for the empty one.
func text(id ids.ID) *string {
	if id == "" {
		return nil
	}
	value := string(id)
	return &value
}
