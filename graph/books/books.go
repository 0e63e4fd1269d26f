// Package books translates GraphQL to the verbs on usage, prices and bills. The root's resolvers embed its own.
package books

import (
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/price"
	"github.com/gpuaas/app-platform/service/usage"
)

// Writes resolves the mutations.
type Writes struct {
	billing *billing.Service
	prices  *price.Service
	usage   *usage.Service
}

// NewWrites returns the mutations over the verbs.
func NewWrites(bills *billing.Service, prices *price.Service, used *usage.Service) Writes {
	return Writes{bills, prices, used}
}

// Reads resolves the queries.
type Reads struct {
	billing *billing.Service
	usage   *usage.Service
}

// NewReads returns the queries over the verbs.
func NewReads(bills *billing.Service, used *usage.Service) Reads { return Reads{bills, used} }
