package graph

// Uncompressed are the fields that hold what programs of a tenant print or are given: secrets of theirs may be there
// beside text that somebody outside chose, such as a request's line in a log. Credentials of the platform's own are
// answers of mutations, none of which is compressed; see ADR 0115.
var Uncompressed = []string{
	"LogLine.text",
	"NodeTask.spec", "NodeTask.result", "NodeTask.message", "NodeTask.stdout", "NodeTask.stderr",
}
