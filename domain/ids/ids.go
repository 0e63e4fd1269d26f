// Package ids is the identity of everything that the platform keeps: a short prefix that names the kind, an
// underscore, and 26 characters of Crockford base32 (lower case) that hold a UUIDv7, for example
// "ins_01jd3v6x2c7w8vd0z9k4m5n6p7". Ids of one kind sort by the time they were minted. They are text in the
// database, in the API and in logs, so that an id can be pasted anywhere and names its kind.
package ids

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/gpuaas/app-platform/domain/fault"
)

// ID is a typed id such as "ins_01jd3v6x2c7w8vd0z9k4m5n6p7"; the empty string means "none".
type ID string

// Kind is what an id names; its value is the prefix before the underscore.
type Kind string

// The kinds. A prefix, once given, is never reused for something else.
const (
	Tenant           Kind = "ten"
	Project          Kind = "prj"
	User             Kind = "usr"
	ServiceAccount   Kind = "sa"
	ServiceKey       Kind = "key"
	RoleBinding      Kind = "rb"
	App              Kind = "app"
	Manifest         Kind = "man"
	Artifact         Kind = "art"
	Adapter          Kind = "adp"
	Entitlement      Kind = "etl"
	Allocation       Kind = "alc"
	Node             Kind = "nod"
	NodeTask         Kind = "tsk"
	Instance         Kind = "ins"
	Member           Kind = "mem"
	Operation        Kind = "op"
	OperationStep    Kind = "stp"
	Event            Kind = "evt"
	Audit            Kind = "aud"
	Session          Kind = "ses"
	LoginLink        Kind = "lnk"
	NodeEnrolment    Kind = "enr"
	NodeCredential   Kind = "ncr"
	Worker           Kind = "wrk"
	OrphanedResource Kind = "orp"
	Generation       Kind = "gen"
	SKUPrice         Kind = "sku"
	ExternalIdentity Kind = "xid"
	LoginAttempt     Kind = "lat"
	Invitation       Kind = "inv"
	PolicyOverlay    Kind = "pol"
	ControlPlane     Kind = "cps"
	RuntimeSecret    Kind = "sec"
	AuditCheckpoint  Kind = "chk"
	Webhook          Kind = "whk"
	WebhookDelivery  Kind = "whd"
	ArtifactSource   Kind = "src"
	SignerKey        Kind = "sgk"
	Evidence         Kind = "evd"
	Promotion        Kind = "prm"
	ArtifactPart     Kind = "prt"
	ArtifactSmoke    Kind = "asm"
	Runner           Kind = "rnr"
	QuarantinedUsage Kind = "uqr"
	PriceVersion     Kind = "prc"
	BillingPeriod    Kind = "bpr"
	BillingRun       Kind = "brn"
	LedgerTx         Kind = "ltx"
	CreditGrant      Kind = "crg"
	Budget           Kind = "bud"
	Opening          Kind = "opn"
	Onboarding       Kind = "onb"
	Gap              Kind = "gap"
	StorageClass     Kind = "stc"
	Volume           Kind = "vol"
)

// kindNames is the catalogue of kinds with the word an error message uses for each.
var kindNames = map[Kind]string{
	Tenant: "tenant", Project: "project", User: "user", ServiceAccount: "service account",
	ServiceKey: "service account key", RoleBinding: "role binding", App: "app", Manifest: "manifest",
	Artifact: "artifact", Adapter: "adapter", Entitlement: "entitlement", Allocation: "allocation",
	Node: "node", NodeTask: "node task", Instance: "instance", Member: "member", Operation: "operation",
	OperationStep: "operation step", Event: "event", Audit: "audit entry", Session: "session",
	LoginLink: "login link", NodeEnrolment: "node enrolment", NodeCredential: "node credential",
	Worker: "worker process", OrphanedResource: "orphaned resource",
	Generation: "generation", SKUPrice: "SKU price",
	ExternalIdentity: "external identity", LoginAttempt: "login attempt", Invitation: "invitation",
	PolicyOverlay: "policy overlay",
	ControlPlane:  "control plane share", RuntimeSecret: "runtime secret", AuditCheckpoint: "audit checkpoint",
	Webhook: "webhook", WebhookDelivery: "webhook delivery",
	ArtifactSource: "artifact source", SignerKey: "signer key", Evidence: "evidence", Promotion: "promotion",
	ArtifactPart: "artifact part", Runner: "runner", ArtifactSmoke: "artifact smoke",
	QuarantinedUsage: "quarantined usage record",
	PriceVersion:     "price", BillingPeriod: "billing period", BillingRun: "billing run",
	LedgerTx:    "ledger transaction",
	CreditGrant: "credit grant", Budget: "budget", Opening: "opening of an endpoint",
	Onboarding: "onboarding record", Gap: "gap", StorageClass: "storage class", Volume: "volume",
}

const (
	// bodyLen is the length of the base32 part: 26 x 5 bits hold the 128 bits of a UUID with 2 to spare.
	bodyLen = 26
	// MaxLen bounds every id in bytes: the longest prefix, the underscore and the body.
	MaxLen = 3 + 1 + bodyLen
)

// New mints an id of the kind. It reads the clock and the system's random source, which the rest of domain may
// not do: it stays here all the same because minting is the identity of a thing, not a rule about it, and one
// place must own the encoding. Code that needs a given identity uses From.
func New(kind Kind) ID { return From(kind, uuid.Must(uuid.NewV7())) }

// From is the id of the kind that holds exactly these 16 bytes. It is pure: same input, same id.
func From(kind Kind, raw [16]byte) ID {
	buf := make([]byte, 0, MaxLen)
	buf = append(buf, kind...)
	buf = append(buf, '_')
	return ID(appendBase32(buf, raw))
}

// Before is an id that sorts before every id of the kind that is minted at the moment or later: a bound for reads by
// time.
func Before(kind Kind, moment time.Time) ID {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(max(0, moment.UnixMilli()))<<16) // #nosec G115 -- it is not negative
	return From(kind, raw)
}

// Parse checks that s is an id of the kind. It fails with INVALID_ARGUMENT, naming the kind, never echoing
// more of s than an id is long.
func Parse(kind Kind, s string) (ID, error) {
	if id := ID(s); id.Valid() && id.Kind() == kind {
		return id, nil
	}
	return "", fault.New(fault.InvalidArgument, "%q is not the id of %s: expected %s_ and %d characters",
		clip(s), kind.Article(), kind, bodyLen)
}

// ParseAny checks that s is an id of any kind; it fails with INVALID_ARGUMENT.
func ParseAny(s string) (ID, error) {
	if id := ID(s); id.Valid() {
		return id, nil
	}
	return "", fault.New(fault.InvalidArgument, "%q is not an id", clip(s))
}

// Valid reports whether the id has a known prefix and a body that decodes to 128 bits in its one canonical form.
func (id ID) Valid() bool {
	kind, body, ok := strings.Cut(string(id), "_")
	return ok && Kind(kind).Known() && validBody(body)
}

// Kind is the kind that the prefix names, or "" when the id is not valid.
func (id ID) Kind() Kind {
	kind, _, _ := strings.Cut(string(id), "_")
	if !id.Valid() {
		return ""
	}
	return Kind(kind)
}

// MintedAt is when the id was minted, to the millisecond, in UTC; zero when the id is not valid.
func (id ID) MintedAt() time.Time {
	_, body, _ := strings.Cut(string(id), "_")
	if !id.Valid() {
		return time.Time{}
	}
	return time.UnixMilli(leadingBits(body)).UTC()
}

// Is reports whether the id is a valid id of the kind.
func (id ID) Is(kind Kind) bool { return id != "" && id.Kind() == kind }

// String is the id as text.
func (id ID) String() string { return string(id) }

// MarshalGQL writes the id as a JSON string.
func (id ID) MarshalGQL(w io.Writer) {
	text, _ := json.Marshal(string(id)) // a string always encodes
	_, _ = w.Write(text)                // the answer's buffer does not fail
}

// UnmarshalGQL reads an id from a GraphQL input. It fails with INVALID_ARGUMENT when v is not the text of an id.
func (id *ID) UnmarshalGQL(v any) error {
	text, ok := v.(string)
	if !ok {
		return fault.New(fault.InvalidArgument, "an id must be a string")
	}
	parsed, err := ParseAny(text)
	*id = parsed
	return err
}

// Known reports whether the kind is in the catalogue.
func (k Kind) Known() bool { _, ok := kindNames[k]; return ok }

// Name is the word for the kind in messages, such as "service account"; an unknown kind is "object".
func (k Kind) Name() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return "object"
}

// Article is Name with its article, such as "an instance".
func (k Kind) Article() string {
	name := k.Name()
	if strings.ContainsRune("aeio", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

// Kinds lists every known kind, in no particular order.
func Kinds() []Kind {
	kinds := make([]Kind, 0, len(kindNames))
	for kind := range kindNames {
		kinds = append(kinds, kind)
	}
	return kinds
}

// clip bounds what an error message repeats of a caller's text.
func clip(s string) string {
	if len(s) <= MaxLen {
		return s
	}
	return fmt.Sprintf("%s…", strings.ToValidUTF8(s[:MaxLen], ""))
}

// Suffix is the id without its kind's prefix and underscore: what a secret carries of its row's id.
func (id ID) Suffix() string {
	_, suffix, _ := strings.Cut(string(id), "_")
	return suffix
}
