// Package supportbundle is the file that a tenant hands to the support staff: what is in it, how it is written, and
// how a reader checks it.
//
// A bundle is an allow-list. Each section has a table of fields, and each field a kind, which says which values it may
// have: an id, a name of a state, a number, a time. A value that is not of its field's kind is left out, and so is
// everything that has no field. The only free text is that of events and of blockers, and only as far as Clean lets it
// through.
package supportbundle

import "fmt"

// Format names the form of the file.
const Format = "gpuaas-support-bundle/1"

// Bounds of a bundle.
const (
	// MaxRows is the most rows of a section.
	MaxRows = 256
	// MaxText is the most bytes of a text.
	MaxText = 2000
	// MaxBytes is the most bytes of a file.
	MaxBytes = 1 << 20
)

// Kind is which values a field may have.
type Kind string

// The kinds.
const (
	// ID is a typed id of the platform.
	ID Kind = "id"
	// Correlation is a correlation id that the platform generated. One that a caller chose is replaced by its
	// SHA-256, as it may be any text.
	Correlation Kind = "correlation id"
	// Enum is a name of a state, a kind or a code, in capitals without digits.
	Enum Kind = "enum"
	// Word is a name that the platform gives: a step, a type of event, a field of the API, a permission key.
	Word Kind = "word"
	// Place is a branch of a runbook: words between slashes.
	Place Kind = "place"
	// Count is a whole number.
	Count Kind = "count"
	// Flag is true or false.
	Flag Kind = "flag"
	// Time is a time, in RFC 3339.
	Time Kind = "time"
	// Hex is the 32 hexadecimal digits of a trace.
	Hex Kind = "hex"
	// Text is a sentence for a person, as far as Clean lets it through.
	Text Kind = "text"
)

// Field is one field of a section's rows.
type Field struct {
	// Name and Kind are the field's.
	Name string
	Kind Kind
}

// Section is one sort of rows.
type Section struct {
	// Name is the section's.
	Name string
	// Fields are all that its rows may have, in the order in which they are written.
	Fields []Field
}

// sections is the whole list of what a bundle may have. A golden file shows it: its difference is the review.
var sections = []Section{
	{"request", []Field{
		{"correlationId", Correlation}, {"operationId", ID}, {"instanceId", ID}, {"allocationId", ID},
		{"projectId", ID},
		{"asked", Word}, {"kind", Enum}, {"at", Time}, {"stands", Enum}, {"code", Enum}, {"owner", Word},
		{"branch", Place},
		{"nextMutation", Word}, {"nextPermissionKey", Word}, {"nextAllowed", Flag}, {"traceId", Hex},
	}},
	{"operation", []Field{
		{"id", ID}, {"kind", Enum}, {"state", Enum}, {"outcome", Enum}, {"tenantId", ID}, {"projectId", ID},
		{"instanceId", ID}, {"allocationId", ID}, {"retryOf", ID}, {"requesterKind", Enum}, {"requesterId", ID},
		{"percent", Count}, {"force", Flag}, {"onDeadline", Enum}, {"forcedAt", Time}, {"cancelRequestedAt", Time},
		{"dispatchAttempt", Count}, {"claimEpoch", Count}, {"errorCode", Enum}, {"errorOwner", Word},
		{"errorRetryable", Flag}, {"deadline", Time}, {"createdAt", Time}, {"startedAt", Time}, {"endedAt", Time},
	}},
	{"step", []Field{
		{"name", Word}, {"ordinal", Count}, {"state", Enum}, {"attempt", Count}, {"startedAt", Time}, {"endedAt", Time},
	}},
	{"blocker", []Field{
		{"code", Enum}, {"owner", Word}, {"subject", ID}, {"since", Time}, {"nextRetryAt", Time},
		{"permissionKey", Word},
		{"message", Text},
	}},
	{"call", []Field{{"attempt", Count}, {"state", Word}}},
	{"task", []Field{
		{"id", ID}, {"kind", Enum}, {"state", Enum}, {"exitCode", Count}, {"instanceId", ID}, {"memberId", ID},
		{"nodeId", ID},
		{"createdAt", Time}, {"startedAt", Time}, {"endedAt", Time},
	}},
	{"event", []Field{
		{"id", ID}, {"type", Word}, {"memberId", ID}, {"operationId", ID}, {"occurredAt", Time}, {"message", Text},
	}},
	{"audit", []Field{
		{"id", ID}, {"at", Time}, {"action", Word}, {"permissionKey", Word}, {"allowed", Flag}, {"code", Enum},
		{"objectId", ID}, {"actorKind", Enum}, {"actorId", ID}, {"repeats", Count},
	}},
	{"instance", []Field{
		{"id", ID}, {"status", Enum}, {"health", Enum}, {"generation", Count}, {"createdAt", Time},
	}},
	{"member", []Field{{"id", ID}, {"status", Enum}, {"health", Enum}, {"nodeId", ID}}},
	{"other", []Field{{"operationId", ID}, {"kind", Enum}, {"state", Enum}, {"at", Time}}},
}

// Sections returns what a bundle may have, in the order in which it is written.
func Sections() []Section { return append([]Section{}, sections...) }

// never is what is in no bundle, for the reader of its manifest.
var never = []Omission{
	{What: "the output and messages of members, tasks and adapters", Why: "they belong to the app and may contain " +
		"anything; where an event or a blocker repeats them, only plain words are shown"},
	{What: "reasons, names and labels", Why: "people write them; " +
		"where an event or a blocker repeats them, only plain words are shown"},
	{What: "configurations, desired changes, payloads, adapter details and documents", Why: "they are the tenant's"},
	{What: "secrets, credentials and addresses", Why: "no one needs them to help"},
}

// named returns the section of a name, and false for none.
func named(name string) (Section, bool) {
	for _, one := range sections {
		if one.Name == name {
			return one, true
		}
	}
	return Section{}, false
}

// names are the fields' names.
func (s Section) names() []string {
	all := make([]string, len(s.Fields))
	for i, field := range s.Fields {
		all[i] = field.Name
	}
	return all
}

// field returns the field of a name, and an error that names both for none.
func (s Section) field(name string) (Field, error) {
	for _, one := range s.Fields {
		if one.Name == name {
			return one, nil
		}
	}
	return Field{}, fmt.Errorf("section %s has no field %s", s.Name, name)
}
