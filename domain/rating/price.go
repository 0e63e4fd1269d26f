package rating

import (
	"cmp"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/money"
)

// AnyCapacity is every meter of capacity in a price: what an allocation costs, whatever it is metered by.
const AnyCapacity = "capacity"

// Scope is for whom a price is: the narrower one wins.
type Scope string

// The scopes, widest first.
const (
	Platform Scope = "PLATFORM"
	Tenant   Scope = "TENANT"
	Project  Scope = "PROJECT"
)

// Values lists every Scope as it is published.
func (Scope) Values() []string { return []string{string(Platform), string(Tenant), string(Project)} }

// rank orders scopes: the narrowest is highest.
func (s Scope) rank() int { return slices.Index([]Scope{Platform, Tenant, Project}, s) }

// Valid reports whether the scope is one of those listed.
func (s Scope) Valid() bool { return s.rank() >= 0 }

// Tier is a step of a price.
type Tier struct {
	// UpTo is the quantity, in units, up to which the step's price is paid; missing for the last step.
	UpTo *money.Decimal `json:"upTo,omitempty"`
	// Price is what Per units cost.
	Price money.Decimal `json:"price"`
}

// Measure is what of the usage is paid for.
type Measure string

// The measures: the metered quantity, or the seconds that it was metered over, however much it was.
const (
	Quantity Measure = "QUANTITY"
	Time     Measure = "TIME"
)

// Values lists every Measure as it is published.
func (Measure) Values() []string { return []string{string(Quantity), string(Time)} }

// Terms are what a price demands.
type Terms struct {
	Measure Measure `json:"measure"`
	// Per is how many units a tier's price is for: 3600 for the hourly price of something that is metered in seconds.
	Per money.Decimal `json:"per"`
	// Tiers are the steps by quantity in a period, graduated: each unit is paid at the price of the step that it is in.
	Tiers []Tier `json:"tiers"`
	// Minimum is the least amount of a line with any usage; 0 for none.
	Minimum money.Decimal `json:"minimum"`
	// RoundUpTo rounds each session's quantity up to a multiple: 60 for "per started minute" of seconds; 0 for none.
	RoundUpTo money.Decimal `json:"roundUpTo"`
}

// Price is a version in the price book. Versions of one shelf are never valid at the same instant.
type Price struct {
	// ID names the version, and Origin the version whose terms it carries on: what is booked under one is booked under
	// the other when a validity is cut. The Origin of a first version is its ID.
	ID     string `json:"id"`
	Origin string `json:"origin"`
	// Meter, SKU and Region are what is priced; an empty SKU or Region is any, and AnyCapacity every meter of capacity.
	Meter    string `json:"meter"`
	SKU      string `json:"sku"`
	Region   string `json:"region"`
	Currency string `json:"currency"`
	// Scope is for whom, and Owner the tenant or project of that scope.
	Scope Scope  `json:"scope"`
	Owner string `json:"owner"`
	// From and To are when the price is valid, half-open; a zero To is for ever.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Terms
}

// shelf is what the versions of one price have in common.
type shelf struct{ meter, sku, region, currency, scope, owner string }

func (p *Price) shelf() shelf {
	return shelf{p.Meter, p.SKU, p.Region, p.Currency, string(p.Scope), p.Owner}
}

// at reports whether the price is valid at the instant.
func (p *Price) at(moment time.Time) bool {
	return !moment.Before(p.From) && (p.To.IsZero() || moment.Before(p.To))
}

// bySpecificity orders the prices of one subject: the narrower scope first, then one for the very meter, the very SKU,
// the very region. Each of these is the subject's in one price and any in another, and any, which is empty, comes last.
func bySpecificity(a, b *Price) int {
	meter := func(p *Price) string {
		if p.Meter == AnyCapacity {
			return ""
		}
		return p.Meter
	}
	return cmp.Or(cmp.Compare(b.Scope.rank(), a.Scope.rank()), cmp.Compare(meter(b), meter(a)),
		cmp.Compare(b.SKU, a.SKU), cmp.Compare(b.Region, a.Region), a.From.Compare(b.From), cmp.Compare(a.ID, b.ID))
}

// subject is what prices are looked up for.
type subject struct {
	meter, sku, region, project string
	capacity                    bool
}

// list is the prices that can apply to a subject, the most specific first, and the instants at which that changes.
type list struct {
	prices []*Price
	cuts   []time.Time
}

// of finds the prices of a subject.
func (e *Engine) of(s subject) *list {
	if found, known := e.lists[s]; known {
		return found
	}
	found := &list{}
	for i := range e.Prices {
		if p := &e.Prices[i]; e.applies(p, s) {
			found.prices = append(found.prices, p)
			found.cuts = append(found.cuts, p.From)
			if !p.To.IsZero() {
				found.cuts = append(found.cuts, p.To)
			}
		}
	}
	slices.SortFunc(found.prices, bySpecificity)
	slices.SortFunc(found.cuts, time.Time.Compare)
	found.cuts = slices.CompactFunc(found.cuts, time.Time.Equal)
	e.lists[s] = found
	return found
}

// applies reports whether a price is for the subject, at whatever time.
func (e *Engine) applies(p *Price, s subject) bool {
	owner := map[Scope]string{Platform: "", Tenant: e.Tenant, Project: s.project}[p.Scope]
	metered := p.Meter == s.meter || s.capacity && p.Meter == AnyCapacity
	return metered && p.Currency == e.Currency && p.Owner == owner && (p.SKU == "" || p.SKU == s.sku) &&
		(p.Region == "" || p.Region == s.region)
}

// at returns the price that is valid at an instant; nil without one.
func (l *list) at(moment time.Time) *Price {
	for _, p := range l.prices {
		if p.at(moment) {
			return p
		}
	}
	return nil
}

// amount is what a quantity costs that begins at an offset of the shelf's counter: the exact dividend, of which Per is
// the divisor.
func (t *Terms) amount(offset, quantity money.Decimal) (dividend money.Decimal) {
	floor, end := money.Decimal{}, offset.Add(quantity)
	for _, tier := range t.Tiers {
		top := end
		if tier.UpTo != nil {
			top = end.Min(*tier.UpTo)
		}
		part := top.Sub(offset.Max(floor)).Max(money.Decimal{}) // nothing is in a step below or above the quantity
		dividend = dividend.Add(part.Mul(tier.Price))
		floor = top.Max(floor)
	}
	return dividend
}

// Span is a stretch of time, half-open.
type Span struct{ From, To time.Time }

// Spans are when prices of an origin apply to usage of a heading, within the engine's bounds; with an empty origin,
// when nothing is priced.
func (e *Engine) Spans(h Heading, capacity bool, of string) (spans []Span) {
	prices := e.of(subject{h.Meter, h.SKU, h.Region, h.Project, capacity})
	cuts := e.Cuts()
	for i, to := range cuts[1:] {
		if origin(prices.at(cuts[i])) != of {
			continue
		}
		if last := len(spans) - 1; last >= 0 && spans[last].To.Equal(cuts[i]) {
			spans[last].To = to
			continue
		}
		spans = append(spans, Span{cuts[i], to})
	}
	return spans
}
