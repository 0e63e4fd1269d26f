package rating_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
)

var day = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// arrival is a record and the platform's clock when it arrived; arrivals are in the order of commits.
type arrival struct {
	rating.Record
	clock time.Time
}

// history is what happens to a tenant in a period: usage that arrives in some order, and runs between arrivals.
type history struct {
	engine   rating.Engine
	arrivals []arrival
	runs     []int // after so many arrivals
}

func decimal(t *rapid.T, name string, most int) money.Decimal {
	return money.Shift(int64(rapid.IntRange(0, most).Draw(t, name)),
		int32(rapid.IntRange(0, 6).Draw(t, name+" places")))
}

func terms(t *rapid.T) rating.Terms {
	out := rating.Terms{Measure: rapid.SampledFrom([]rating.Measure{rating.Quantity, rating.Quantity,
		rating.Time}).Draw(t,
		"measure"), Per: money.Int(rapid.SampledFrom([]int64{1, 7, 3600}).Draw(t, "per")),
		Minimum:   decimal(t, "minimum", 900),
		RoundUpTo: money.Int(rapid.SampledFrom([]int64{0, 0, 60, 3600}).Draw(t, "round"))}
	top := money.Int(0)
	for range rapid.IntRange(0, 2).Draw(t, "tiers") {
		top = top.Add(money.Int(int64(rapid.IntRange(1, 5000).Draw(t, "up to"))))
		bound := top
		out.Tiers = append(out.Tiers, rating.Tier{UpTo: &bound, Price: decimal(t, "price", 99_999)})
	}
	out.Tiers = append(out.Tiers, rating.Tier{Price: decimal(t, "price", 99_999)})
	return out
}

// book draws prices on some shelves, whose validities touch and leave holes.
func book(t *rapid.T, currency string) (prices []rating.Price) {
	shelves := []rating.Price{{Meter: "node.seconds", Scope: rating.Platform},
		{Meter: "node.seconds", SKU: "h100", Scope: rating.Platform},
		{Meter: "node.seconds", Scope: rating.Tenant, Owner: "ten"},
		{Meter: "tokens", Scope: rating.Project, Owner: "prj1"},
		{Meter: "tokens", Scope: rating.Platform},
		{Meter: rating.AnyCapacity, SKU: "a10", Scope: rating.Platform}}
	for n, shelf := range shelves {
		at := day.Add(-time.Hour)
		for v := range rapid.IntRange(0, 3).Draw(t, "versions") {
			p := shelf
			p.Currency, p.Terms, p.From = currency, terms(t), at
			p.ID = fmt.Sprintf("prc%s%d%d", currency, n, v)
			p.Origin = p.ID
			if rapid.Bool().Draw(t, "ends") {
				p.To = at.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute)
			}
			prices = append(prices, p)
			if p.To.IsZero() {
				break
			}
			at = p.To // the next begins at the very instant
			if rapid.Bool().Draw(t, "hole") {
				at = at.Add(time.Minute)
			}
		}
	}
	return prices
}

func draw(t *rapid.T) history {
	currency := rapid.SampledFrom([]string{"EUR", "JPY", "KWD"}).Draw(t, "currency")
	h := history{engine: rating.Engine{Tenant: "ten", Currency: currency, From: day, To: day.Add(12 * time.Hour),
		Prices: book(t, currency)}}
	if rapid.Bool().Draw(t, "another currency") { // whose prices must not matter
		h.engine.Prices = append(h.engine.Prices, book(t, "USD")...)
	}
	for n := range rapid.IntRange(1, 25).Draw(t, "records") {
		h.arrive(t, n)
	}
	for i := range h.arrivals {
		if rapid.IntRange(0, 3).Draw(t, "run") == 0 {
			h.runs = append(h.runs, i)
		}
	}
	h.runs = append(h.runs, len(h.arrivals))
	return h
}

// arrive draws a record, and now and then its duplicate or its retraction.
func (h *history) arrive(t *rapid.T, n int) {
	from := day.Add(time.Duration(rapid.IntRange(-3600, 13*3600).Draw(t, "from")) * time.Second)
	r := rating.Record{Source: "src", ID: fmt.Sprint("u", n),
		Meter:   rapid.SampledFrom([]string{"node.seconds", "tokens"}).Draw(t, "meter"),
		Basis:   rapid.SampledFrom([]rating.Basis{rating.Capacity, rating.App, rating.Showback}).Draw(t, "basis"),
		Project: rapid.SampledFrom([]string{"prj1", "prj2"}).Draw(t, "project"),
		SKU:     rapid.SampledFrom([]string{"h100", "a10"}).Draw(t, "sku"),
		Session: fmt.Sprint("s", rapid.IntRange(0, 3).Draw(t, "session")), Quantity: decimal(t, "quantity", 20_000),
		From: from, To: from.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "seconds")) * time.Second)}
	r.Borne = rapid.SampledFrom([]string{"", "", "", "orphan"}).Draw(t, "borne")
	r.Member = "mem" + r.Session // a session is one member's
	if r.Meter == "node.seconds" {
		r.Basis = rating.Capacity
	}
	put := func(r rating.Record) {
		clock := r.To.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "late")) * time.Second)
		h.arrivals = append(h.arrivals, arrival{r, clock})
	}
	put(r)
	switch rapid.IntRange(0, 5).Draw(t, "more") {
	case 0:
		put(r)
	case 1:
		r.ID, r.Quantity = r.ID+"-retracted", r.Quantity.Neg()
		put(r)
	}
}

// strategy is how a run finds what it books; the product's is cumulative.
type strategy func(h *history, booked map[string]*big.Rat, from, to int)

func rate(t require.TestingT, e rating.Engine, arrivals []arrival) *rating.Result {
	engine, err := rating.New(e)
	require.NoError(t, err)
	var records []rating.Record
	for _, a := range arrivals {
		records = append(records, a.Record)
	}
	result, err := engine.Rate(records)
	require.NoError(t, err)
	return result
}

func name(l *rating.Line) string {
	return l.Project + "|" + l.Meter + "|" + l.SKU + "|" + l.Borne + "|" + l.Price
}

// cumulative rates all usage so far, subtracts what is booked and books the rest.
func cumulative(t require.TestingT) strategy {
	return func(h *history, booked map[string]*big.Rat, _, to int) {
		for _, line := range rate(t, h.engine, h.arrivals[:to]).Lines {
			booked[name(&line)] = rat(line.Amount)
		}
	}
}

// perSlice rates what arrived since the last run, and adds it: the mutant that rounds each slice.
func perSlice(t require.TestingT) strategy {
	return func(h *history, booked map[string]*big.Rat, from, to int) {
		for _, line := range rate(t, h.engine, h.arrivals[from:to]).Lines {
			if booked[name(&line)] == nil {
				booked[name(&line)] = new(big.Rat)
			}
			booked[name(&line)].Add(booked[name(&line)], rat(line.Amount))
		}
	}
}

// byTheClock takes what carries a time before that of the run's newest record, and never looks back: the mutant whose
// cut-off is the clock.
func byTheClock(t require.TestingT) strategy {
	return func(h *history, booked map[string]*big.Rat, _, to int) {
		var seen []arrival
		newest := h.arrivals[max(0, to-1)].clock
		for i, a := range h.arrivals {
			if a.clock.Before(newest) || i == to-1 {
				seen = append(seen, a)
			}
		}
		for _, line := range rate(t, h.engine, seen).Lines {
			booked[name(&line)] = rat(line.Amount)
		}
	}
}

// byBookingTime prices usage as of its arrival: the mutant whose price is that of the booking.
func byBookingTime(t require.TestingT) strategy {
	return func(h *history, booked map[string]*big.Rat, _, to int) {
		var moved []arrival
		seen := map[string]bool{}
		for _, a := range h.arrivals[:to] {
			if a.From, a.To = a.clock, a.clock; !seen[a.Meter+a.ID] {
				moved = append(moved, a)
			}
			seen[a.Meter+a.ID] = true
		}
		for _, line := range rate(t, h.engine, moved).Lines {
			booked[name(&line)] = rat(line.Amount)
		}
	}
}

// books are what the history's runs leave, by line.
func (h *history) books(book strategy) map[string]*big.Rat {
	booked, from := map[string]*big.Rat{}, 0
	for _, to := range h.runs {
		if to > 0 {
			book(h, booked, from, to)
		}
		from = to
	}
	return booked
}

// expected is what the oracle says of the history, each record once.
func (h *history) expected() map[string]*big.Rat {
	var records []rating.Record
	seen := map[string]bool{}
	for _, a := range h.arrivals {
		if !seen[a.Meter+a.ID] {
			records = append(records, a.Record)
		}
		seen[a.Meter+a.ID] = true
	}
	places, _ := money.Minor(h.engine.Currency)
	return oracle(h.engine, records, int(places))
}

func same(a, b map[string]*big.Rat) string {
	for key := range a {
		if of(a, key).Cmp(of(b, key)) != 0 {
			return fmt.Sprintf("%s: %s and %s", key, of(a, key).FloatString(4), of(b, key).FloatString(4))
		}
	}
	return ""
}

func of(m map[string]*big.Rat, key string) *big.Rat {
	if m[key] == nil {
		return new(big.Rat)
	}
	return m[key]
}

// make billing-histories runs it on 100,000 histories.
func TestBooksEqualTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := draw(t)
		booked, want := h.books(cumulative(t)), h.expected()
		require.Empty(t, same(booked, want)+same(want, booked))
	})
}

func TestOrderSlicesAndDuplicatesDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := draw(t)
		first := rate(t, h.engine, h.arrivals).Bytes()
		shuffled := rapid.Permutation(append(h.arrivals, h.arrivals[:len(h.arrivals)/2]...)).Draw(t, "order")
		h.engine.Prices = rapid.Permutation(h.engine.Prices).Draw(t, "prices")
		require.Equal(t, string(first), string(rate(t, h.engine, shuffled).Bytes()))
	})
}

func TestSharesSumToTheirLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := draw(t)
		for _, line := range rate(t, h.engine, h.arrivals).Lines {
			var amount, quantity, billed money.Decimal
			for _, share := range line.Shares {
				amount, quantity, billed = amount.Add(share.Amount), quantity.Add(share.Quantity),
					billed.Add(share.Billed)
			}
			require.Equal(t, line.Amount.String(), amount.String())
			require.Equal(t, line.Quantity.String(), quantity.String())
			require.Equal(t, line.Billed.String(), billed.String())
		}
	})
}

// caught reports whether the histories show the mutant.
func caught(t *testing.T, mutant func(require.TestingT) strategy) {
	t.Helper()
	differing := 0
	for seed := range 200 {
		h := rapid.Custom(draw).Example(seed)
		if h.runs[0] == 0 && len(h.runs) == 1 {
			continue
		}
		if want, got := h.expected(), h.books(mutant(t)); same(got, want)+same(want, got) != "" {
			differing++
		}
	}
	require.NotZero(t, differing, "no history tells the mutant from the oracle")
}

func TestACutOffByTheClockIsCaught(t *testing.T) {
	t.Parallel()
	caught(t, byTheClock)
}

func TestRoundingPerSliceIsCaught(t *testing.T) {
	t.Parallel()
	caught(t, perSlice)
}

func TestAPriceByBookingTimeIsCaught(t *testing.T) {
	t.Parallel()
	caught(t, byBookingTime)
}
