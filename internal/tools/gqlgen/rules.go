package main

// roots are the fields of Query that are answered without the executor. The types below them are in the tables.
var roots = []string{"instance", "instances", "operation", "operations", "manifests"}

// rule is how a field with a resolver is answered without the executor.
type rule struct {
	// alone fields cost a query for each object, so that inside lists the whole query is the executor's.
	alone bool
	// why states what makes the field plain.
	why string
}

const (
	oneQuery = "one query for an object; in a list it would be one for each element"
	together = "it is read in the round trip of the object above it, and its loader is primed"
)

// rules are the fields with resolvers that are in the tables. Any other field with a resolver is the executor's, with
// its whole query: the executor resolves the elements of a list beside each other, so that loaders gather them, and the
// tables one after the other.
var rules = map[string]rule{
	"Instance.lastOperation": {why: together},
	"Instance.manifest":      {alone: true, why: oneQuery},
	"Instance.actions":       {alone: true, why: oneQuery},
	"Instance.allocations":   {alone: true, why: oneQuery},
	"Instance.members":       {alone: true, why: oneQuery},
	"Instance.operations":    {alone: true, why: oneQuery},
	"Instance.events":        {alone: true, why: oneQuery},
	"Member.allocation":      {why: together},
	"Member.node":            {why: together},
	"Operation.steps":        {alone: true, why: oneQuery},
}
