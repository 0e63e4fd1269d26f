// Package metering holds the rules of metered usage: what a record is and how its content is identified, how the states
// of an allocation become records of capacity, and which records of an adapter are taken.
//
// Capacity and volumes are metered by the platform alone, an app's own dimensions by its adapter. The two cannot
// overlap: no dimension may have the name of a meter of the platform, and a dimension in a unit of capacity is refused
// when its manifest is published, unless it is only shown.
package metering

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Basis is what a record is counted on.
type Basis string

// The bases. A SHOWBACK record is shown and has no price.
const (
	Capacity Basis = "CAPACITY"
	Storage  Basis = "STORAGE"
	App      Basis = "APP"
	Showback Basis = "SHOWBACK"
)

// Values lists every Basis as it is stored and published.
func (Basis) Values() []string {
	return []string{string(Capacity), string(App), string(Showback), string(Storage)}
}

// Bearer is who bears what a record counts.
type Bearer string

// The bearers.
const (
	Tenant   Bearer = "TENANT"
	Platform Bearer = "PLATFORM"
)

// Values lists every Bearer as it is stored and published.
func (Bearer) Values() []string { return []string{string(Tenant), string(Platform)} }

// The meters of capacity. Each second of an allocation is counted on one of them, by its shape.
const (
	GPUSeconds  = "gpu_seconds"
	NodeSeconds = "node_seconds"
)

// Second is the unit of both.
const Second = "second"

// Record is one metered quantity over one stretch of time. Empty text is a column without a value.
type Record struct {
	// Source, Meter and UsageID identify it for ever.
	Source, Meter, UsageID string
	Basis                  Basis
	TenantID, ProjectID    string
	InstanceID             string
	AllocationID           string
	MemberID, ComponentKey string
	OperationID            string
	CorrelationID          string
	SKU, Region            string
	// Session is what a price per started minute is rounded over.
	Session string
	Unit    string
	// Quantity is a decimal number in its canonical form; negative only in a retraction.
	Quantity string
	// From is in it, To is not.
	From, To time.Time
	// Retracts is the UsageID of the record, of the same source and meter, that it takes back.
	Retracts string
	BorneBy  Bearer
	// BorneReason is why the platform bears it, BorneOwner who can mend that.
	BorneReason, BorneOwner string
}

// Digest returns the SHA-256 of the record's canonical form: each field in a fixed order, with its length, so that no
// two contents have one form. Operation and correlation are not content: another operation may have caused a record to
// be sent again.
func (r *Record) Digest() []byte {
	hash := sha256.New()
	for _, field := range []string{r.Source, r.Meter, r.UsageID, string(r.Basis), r.TenantID, r.ProjectID, r.InstanceID,
		r.AllocationID, r.MemberID, r.ComponentKey, r.SKU, r.Region, r.Session, r.Unit, Decimal(r.Quantity),
		r.From.UTC().Format(time.RFC3339Nano), r.To.UTC().Format(time.RFC3339Nano), r.Retracts, string(r.BorneBy),
		r.BorneReason, r.BorneOwner} {
		_, _ = fmt.Fprintf(hash, "%d:%s,", len(field), field)
	}
	return hash.Sum(nil)
}

// decimal is what a column of 38 digits, 12 of them behind the point, holds.
var decimal = regexp.MustCompile(`^-?[0-9]{1,26}(\.[0-9]{1,12})?$`)

// IsDecimal reports whether text is a decimal number of at most 26 digits before the point and 12 behind it.
func IsDecimal(text string) bool { return decimal.MatchString(text) }

// Decimal is the canonical form of a decimal number: no zeros that do not count, no negative zero. Other text is
// returned as it is.
func Decimal(text string) string {
	if !IsDecimal(text) {
		return text
	}
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	whole = strings.TrimLeft(whole, "0")
	fraction = strings.TrimRight(fraction, "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if negative && whole != "0" {
		return "-" + whole
	}
	return whole
}
