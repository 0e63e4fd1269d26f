// Package rating turns the usage of a period and a set of prices into lines with amounts. It is pure: the same usage
// and prices give the same bytes, in whatever order and however often the records come.
//
// It always rates all usage of the period so far. What was booked before is subtracted by the caller, so that tiers,
// minimums, and rounding do not depend on how a period was cut into runs.
package rating

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/money"
)

// EngineVersion names the rules of this package. It changes with every change that alters a result.
const EngineVersion = 1

// Basis is what a record counts.
type Basis string

// The bases: what the platform rents out, the volumes that it keeps, what an app reports, and what is shown and priced
// nowhere.
const (
	Capacity Basis = "CAPACITY"
	Storage  Basis = "STORAGE"
	App      Basis = "APP"
	Showback Basis = "SHOWBACK"
)

// Record is metered usage.
type Record struct {
	// Source, Meter and ID name the record for ever.
	Source, Meter, ID string
	Basis             Basis
	Project           string
	// Use is who used it.
	Use
	SKU, Region, Unit string
	// Session is what quantities are added up over before they are rounded up.
	Session string
	// Quantity is negative for a retraction, which has the interval and the session of what it retracts.
	Quantity money.Decimal
	// From and To are the interval, half-open; equal ones are an instant.
	From, To time.Time
	// Borne is why the platform bears the cost; empty when the tenant does.
	Borne string
}

// Use is what a share of a line is for.
type Use struct {
	Instance   string `json:"instance,omitempty"`
	Allocation string `json:"allocation,omitempty"`
	Member     string `json:"member,omitempty"`
	Component  string `json:"component,omitempty"`
	Operation  string `json:"operation,omitempty"`
	Volume     string `json:"volume,omitempty"`
}

// Compare orders uses.
func (u Use) Compare(o Use) int { return strings.Compare(u.key(), o.key()) }

// key orders uses, and breaks ties among shares.
func (u Use) key() string {
	key := u.Allocation + "|" + u.Member + "|" + u.Operation + "|" + u.Instance + "|" + u.Component
	if u.Volume != "" { // whatever has none keeps the key that it had before there were volumes
		key += "|" + u.Volume
	}
	return key
}

// Engine rates the usage of one tenant in one period and currency.
type Engine struct {
	Tenant, Currency string
	// From and To bound the usage: the period's start, and the instant up to which usage counts, half-open.
	From, To time.Time
	// Prices is the price book as far as it concerns the tenant.
	Prices []Price

	lists   map[subject]*list
	buckets map[bucketKey]*bucket
}

// Heading is what a line is about, its price apart.
type Heading struct {
	Project string `json:"project"`
	Meter   string `json:"meter"`
	Unit    string `json:"unit"`
	SKU     string `json:"sku,omitempty"`
	Region  string `json:"region,omitempty"`
	// Borne is why the platform bears the line; empty when the tenant does.
	Borne string `json:"borne,omitempty"`
}

// bucketKey is what usage is added up by.
type bucketKey struct {
	Heading
	price   *Price
	session string
	use     Use
}

type bucket struct {
	quantity money.Decimal
	paid     money.Decimal // what of it is paid for, sessions not yet rounded
	last     time.Time     // the latest end of what is in it
}

// New makes an engine. INVALID_ARGUMENT when ISO 4217 does not know the currency.
func New(e Engine) (*Engine, error) {
	if _, err := money.Minor(e.Currency); err != nil {
		return nil, err
	}
	e.lists, e.buckets = map[subject]*list{}, map[bucketKey]*bucket{}
	return &e, nil
}

// Rate rates records, of which duplicates count once. INVALID_ARGUMENT when one id has two contents.
func (e *Engine) Rate(records []Record) (*Result, error) {
	seen := make(map[[3]string]string, len(records))
	for i := range records {
		r := &records[i]
		id := [3]string{r.Source, r.Meter, r.ID}
		digest := r.Digest()
		if before, known := seen[id]; known {
			if before != digest {
				return nil, fault.New(fault.InvalidArgument, "usage record %.80q of %.80q has two contents", r.ID,
					r.Source)
			}
			continue
		}
		seen[id] = digest
		e.Add(r)
	}
	return e.Result(), nil
}

// Digest is the SHA-256 of what the record says, in hex.
func (r *Record) Digest() string {
	sum := sha256.New()
	for _, text := range []string{r.Source, r.Meter, r.ID, string(r.Basis), r.Project, r.Instance,
		r.Allocation, r.Member,
		r.Component, r.Operation, r.SKU, r.Region, r.Unit, r.Session, r.Quantity.String(), instant(r.From),
		instant(r.To),
		r.Borne} {
		sum.Write([]byte(text))
		sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func instant(moment time.Time) string { return moment.UTC().Format(time.RFC3339Nano) }

// Add counts a record, which must not have been counted before. What is shown and not priced does not count.
func (e *Engine) Add(r *Record) {
	if r.Basis == Showback {
		return
	}
	prices := e.of(subject{r.Meter, r.SKU, r.Region, r.Project, r.Basis == Capacity})
	switch {
	case r.From.Before(r.To):
		e.cut(r, prices)
	case e.within(r.From):
		e.count(r, prices.at(r.From), r.Quantity, r.From, r.From)
	}
}

// Cuts are the instants at which a price of the engine begins or ends, within its bounds, in order, with the bounds
// themselves: records between two neighbours may be added up before they are counted by AddTotal.
func (e *Engine) Cuts() []time.Time {
	cuts := []time.Time{e.From, e.To}
	for i := range e.Prices {
		for _, at := range []time.Time{e.Prices[i].From, e.Prices[i].To} {
			if at.After(e.From) && at.Before(e.To) {
				cuts = append(cuts, at)
			}
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}

// AddTotal counts many records at once, which differ in quantity and time alone and lie between two neighbours of Cuts:
// r has the sum of their quantities, From within and the latest To. seconds is the sum of their lengths, less those of
// retractions and without those of no quantity.
func (e *Engine) AddTotal(r *Record, seconds money.Decimal) {
	if r.Basis == Showback || !e.within(r.From) {
		return
	}
	prices := e.of(subject{r.Meter, r.SKU, r.Region, r.Project, r.Basis == Capacity})
	e.book(r, prices.at(r.From), r.Quantity, seconds, r.To)
}

func (e *Engine) within(moment time.Time) bool { return !moment.Before(e.From) && moment.Before(e.To) }

// cut counts a record with an interval, each part of it under the price of its time. The quantity is spread evenly:
// what lies before an instant is rounded toward zero at the twelfth place, so that the parts sum to the whole.
func (e *Engine) cut(r *Record, prices *list) {
	whole := r.To.Sub(r.From).Microseconds()
	before := func(moment time.Time) money.Decimal {
		return r.Quantity.Part(moment.Sub(r.From).Microseconds(), whole)
	}
	start := later(r.From, e.From)
	end := earlier(r.To, e.To)
	for start.Before(end) {
		next := end
		for _, at := range prices.cuts {
			if at.After(start) && at.Before(next) {
				next = at
			}
		}
		part := r.Quantity
		if !start.Equal(r.From) || !next.Equal(r.To) {
			part = before(next).Sub(before(start))
		}
		e.count(r, prices.at(start), part, start, next)
		start = next
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (e *Engine) count(r *Record, price *Price, quantity money.Decimal, start, end time.Time) {
	seconds := money.Shift(end.Sub(start).Microseconds(), 6).Mul(money.Int(int64(quantity.Sign())))
	e.book(r, price, quantity, seconds, end)
}

func (e *Engine) book(r *Record, price *Price, quantity, seconds money.Decimal, end time.Time) {
	key := bucketKey{Heading: Heading{Project: r.Project, Meter: r.Meter, Unit: r.Unit, SKU: r.SKU, Region: r.Region,
		Borne: r.Borne}, price: price, session: r.Session, use: r.Use}
	found := e.buckets[key]
	if found == nil {
		found = &bucket{}
		e.buckets[key] = found
	}
	found.quantity = found.quantity.Add(quantity)
	if price != nil && price.Measure == Time {
		quantity = seconds
	}
	found.paid = found.paid.Add(quantity)
	found.last = later(found.last, end)
}
