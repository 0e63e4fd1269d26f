// Package storage translates GraphQL to the verbs on volumes and storage classes. The root's resolvers embed its own.
package storage

import "github.com/gpuaas/app-platform/service/volume"

// Changes resolves the mutations.
type Changes struct{ volumes *volume.Service }

// NewChanges returns the mutations over the verbs.
func NewChanges(verbs *volume.Service) Changes { return Changes{verbs} }

// Views resolves the queries.
type Views struct{ volumes *volume.Service }

// NewViews returns the queries over the reads.
func NewViews(reads *volume.Service) Views { return Views{reads} }

// Classes resolves the fields of storage classes.
type Classes struct{}

// Offers resolves the fields of what nodes offer.
type Offers struct{}

// Volumes resolves the fields of volumes.
type Volumes struct{}

// Plans resolves the fields of what making or growing a volume would do.
type Plans struct{}
