// Package graph translates between the public contract and the verbs: a resolver checks nothing
// and decides nothing, it calls one verb or one read of a service and shapes the answer.
package graph

// Resolver is the root of all resolvers.
type Resolver struct{}
