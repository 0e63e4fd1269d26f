package main

// roots are the fields of Query that are answered without the executor. The types below them are in the tables.
var roots = []string{
	"instance", "instances", "member", "operation", "operations", "manifests", "apps", "app", "artifacts", "artifact",
	"allocations", "auditEntries", "searchAudit",
}

// How a field with a resolver is answered without the executor.
const (
	// atOnce fields are computed from the object.
	atOnce = iota
	// together fields are read with the object, and gathered where it comes from a loader.
	together
	// gathered fields have loaders: they are loaded for all elements of a list beside each other.
	gathered
	// alone fields cost a query for each object, so that inside lists the whole query is the executor's.
	alone
)

// rule is how a field with a resolver is answered without the executor.
type rule struct {
	how int
	// why states what makes the field plain.
	why string
}

const (
	oneQuery = "one query for an object; in a list it would be one for each element"
	withIt   = "it is read in the round trip of the object above it, and its loader is primed"
	loaded   = "a loader reads it for all objects at once"
	inRow    = "it is computed from the object's own columns"
)

// rules are the fields with resolvers that are in the tables. Any other field with a resolver is the executor's, with
// its whole query.
var rules = map[string]rule{
	"Instance.lastOperation": {how: together, why: withIt},
	"Instance.manifest":      {how: alone, why: oneQuery},
	"Instance.actions":       {how: alone, why: oneQuery},
	"Instance.allocations":   {how: alone, why: oneQuery},
	"Instance.members":       {how: alone, why: oneQuery},
	"Instance.operations":    {how: alone, why: oneQuery},
	"Instance.events":        {how: alone, why: oneQuery},
	"Member.allocation":      {how: together, why: withIt},
	"Member.node":            {how: together, why: withIt},
	"Member.labels":          {how: atOnce, why: inRow},
	"Member.lastOperation":   {how: gathered, why: loaded},
	"Operation.steps":        {how: alone, why: oneQuery},
	"Operation.instance":     {how: gathered, why: loaded},

	"Allocation.node":             {how: gathered, why: loaded},
	"Allocation.instance":         {how: gathered, why: loaded},
	"Allocation.releaseOperation": {how: gathered, why: loaded},
	"Allocation.hourlyCost":       {how: gathered, why: loaded},
	"App.icon":                    {how: gathered, why: loaded},
	"App.activeManifest":          {how: gathered, why: loaded},
	"App.canaryManifest":          {how: gathered, why: loaded},
	"App.entitled":                {how: gathered, why: loaded},
	"Manifest.document":           {how: atOnce, why: inRow},
	"Manifest.compatibility":      {how: atOnce, why: inRow},
	"Manifest.configSchema":       {how: atOnce, why: inRow},
	"Manifest.docs":               {how: atOnce, why: inRow},
	"Manifest.lifecycle":          {how: atOnce, why: inRow},
	"Manifest.history":            {how: gathered, why: loaded},
	"Artifact.sizeBytes":          {how: atOnce, why: inRow},
	"Artifact.source":             {how: gathered, why: loaded},
	"Artifact.signedBy":           {how: gathered, why: loaded},
	"Artifact.pinnedBy":           {how: gathered, why: loaded},
	"Artifact.history":            {how: gathered, why: loaded},
	"Artifact.smoked":             {how: gathered, why: loaded},
	"AuditEntry.actor":            {how: atOnce, why: inRow},
}
