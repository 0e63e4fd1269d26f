// Package people translates GraphQL to the verbs on tenants, projects, people, service accounts and their rights. The
// root's resolvers embed its own.
package people

import (
	"github.com/gpuaas/app-platform/service/explain"
	"github.com/gpuaas/app-platform/service/identity"
)

// Mutations resolves the mutations.
type Mutations struct{ identity *identity.Service }

// NewMutations returns the mutations over the verbs.
func NewMutations(verbs *identity.Service) Mutations { return Mutations{verbs} }

// Queries resolves the queries.
type Queries struct {
	identity *identity.Service
	explain  *explain.Service
}

// NewQueries returns the queries over the verbs, and over what explains permissions.
func NewQueries(verbs *identity.Service, explains *explain.Service) Queries {
	return Queries{verbs, explains}
}

// Users resolves the fields of people.
type Users struct{}

// ServiceAccounts resolves the fields of service accounts.
type ServiceAccounts struct{}

// Viewer resolves the fields of the caller.
type Viewer struct{ identity *identity.Service }

// NewViewer returns the fields over the verbs.
func NewViewer(verbs *identity.Service) Viewer { return Viewer{verbs} }
