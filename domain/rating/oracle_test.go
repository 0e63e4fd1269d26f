package rating_test

import (
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
)

// The oracle says the same rules a second time, in rational numbers, without a line of the engine: piece by piece, unit
// of a tier by unit of a tier, sum by sum.

func rat(d money.Decimal) *big.Rat {
	r, ok := new(big.Rat).SetString(d.String())
	if !ok {
		panic(d.String())
	}
	return r
}

// towardZero cuts a number off at the twelfth place.
func towardZero(r *big.Rat) *big.Rat {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(12), nil)
	n := new(big.Int).Mul(r.Num(), unit)
	return new(big.Rat).SetFrac(n.Quo(n, r.Denom()), unit)
}

// bankers rounds half to even.
func bankers(r *big.Rat, places int) *big.Rat {
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil))
	scaled := new(big.Rat).Mul(r, unit)
	// Euclidean: toward minus infinity, as the divisor is positive
	floor := new(big.Int).Div(scaled.Num(), scaled.Denom())
	rest := new(big.Rat).Sub(scaled, new(big.Rat).SetInt(floor))
	switch rest.Cmp(big.NewRat(1, 2)) {
	case 1:
		floor.Add(floor, big.NewInt(1))
	case 0:
		if floor.Bit(0) == 1 {
			floor.Add(floor, big.NewInt(1))
		}
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(floor), unit)
}

type piece struct {
	session  string
	price    *rating.Price
	quantity *big.Rat
	end      time.Time
	order    string
}

// oracle is what each origin's line costs, of one project and meter, by the meter's place.
func oracle(e rating.Engine, records []rating.Record, places int) map[string]*big.Rat {
	groups := map[string][]piece{}
	for _, r := range records {
		if r.Basis == rating.Showback {
			continue
		}
		group := r.Project + "|" + r.Meter + "|" + r.SKU + "|" + r.Borne
		groups[group] = append(groups[group], pieces(e, r)...)
	}
	out := map[string]*big.Rat{}
	for group, parts := range groups {
		for origin, amount := range cost(parts) {
			out[group+"|"+origin] = bankers(amount, places)
		}
	}
	return out
}

func valid(e rating.Engine, r rating.Record, at time.Time) *rating.Price {
	var best *rating.Price
	score := -1
	for i := range e.Prices {
		p := &e.Prices[i]
		mine := map[rating.Scope]string{rating.Tenant: e.Tenant, rating.Project: r.Project}[p.Scope]
		if p.Currency != e.Currency || (p.Meter != r.Meter && (p.Meter != "capacity" || r.Basis != rating.Capacity)) ||
			p.Owner != mine || (p.SKU != "" && p.SKU != r.SKU) ||
			(p.Region != "" && p.Region != r.Region) || at.Before(p.From) || (!p.To.IsZero() && !at.Before(p.To)) {
			continue
		}
		points := map[rating.Scope]int{rating.Platform: 0, rating.Tenant: 8, rating.Project: 16}[p.Scope]
		if p.Meter == r.Meter {
			points += 4
		}
		if p.SKU != "" {
			points += 2
		}
		if p.Region != "" {
			points++
		}
		if points > score {
			best, score = p, points
		}
	}
	return best
}

func pieces(e rating.Engine, r rating.Record) (out []piece) {
	order := r.Allocation + "|" + r.Member + "|" + r.Operation + "|" + r.Instance + "|" + r.Component
	if !r.From.Before(r.To) {
		if !r.From.Before(e.From) && r.From.Before(e.To) {
			one := piece{r.Session, valid(e, r, r.From), rat(r.Quantity), r.From, order}
			if one.price != nil && one.price.Measure == rating.Time {
				one.quantity = new(big.Rat) // an instant takes no time
			}
			out = append(out, one)
		}
		return out
	}
	marks := []time.Time{e.From, e.To, r.From, r.To}
	for _, p := range e.Prices {
		marks = append(marks, p.From, p.To)
	}
	sort.Slice(marks, func(i, j int) bool { return marks[i].Before(marks[j]) })
	until := func(at time.Time) *big.Rat {
		share := big.NewRat(at.Sub(r.From).Microseconds(), r.To.Sub(r.From).Microseconds())
		return towardZero(share.Mul(share, rat(r.Quantity)))
	}
	for i := 1; i < len(marks); i++ {
		a, b := marks[i-1], marks[i]
		if !a.Before(b) || a.Before(r.From) || b.After(r.To) || a.Before(e.From) || b.After(e.To) {
			continue
		}
		one := piece{r.Session, valid(e, r, a), new(big.Rat).Sub(until(b), until(a)), b, order}
		if one.price != nil && one.price.Measure == rating.Time {
			one.quantity = big.NewRat(b.Sub(a).Microseconds()*int64(one.quantity.Sign()), 1_000_000)
		}
		out = append(out, one)
	}
	return out
}

// cost is what each origin's pieces cost.
func cost(parts []piece) map[string]*big.Rat {
	round(&parts)
	quantity := map[*rating.Price]*big.Rat{}
	out, terms := map[string]*big.Rat{"": new(big.Rat)}, map[string]*rating.Price{}
	var prices []*rating.Price
	paid := map[string]bool{}
	for _, p := range parts {
		if p.price == nil {
			continue
		}
		if quantity[p.price] == nil {
			quantity[p.price] = new(big.Rat)
			prices = append(prices, p.price)
			out[p.price.Origin], terms[p.price.Origin] = new(big.Rat), p.price
		}
		quantity[p.price].Add(quantity[p.price], p.quantity)
	}
	slices.SortFunc(prices, func(a, b *rating.Price) int { return a.From.Compare(b.From) })
	counter := map[string]*big.Rat{}
	billed := map[string]*big.Rat{}
	for _, p := range prices {
		shelf := p.Meter + "|" + p.SKU + "|" + p.Region + "|" + string(p.Scope)
		if counter[shelf] == nil {
			counter[shelf] = new(big.Rat)
		}
		if billed[p.Origin] == nil {
			billed[p.Origin] = new(big.Rat)
		}
		billed[p.Origin].Add(billed[p.Origin], quantity[p])
		if quantity[p].Sign() > 0 {
			end := new(big.Rat).Add(counter[shelf], quantity[p])
			// What a counter costs is a function of the counter alone, and a stretch of it costs the difference.
			out[p.Origin].Add(out[p.Origin], new(big.Rat).Sub(upTo(p, end), upTo(p, counter[shelf])))
			counter[shelf] = end
		}
		paid[p.Origin] = billed[p.Origin].Sign() > 0
	}
	for name, p := range terms {
		if least := rat(p.Minimum); paid[name] && out[name].Cmp(least) < 0 {
			out[name] = least
		}
	}
	return out
}

// upTo is what the first so many units of a shelf cost.
func upTo(p *rating.Price, count *big.Rat) *big.Rat {
	total, below := new(big.Rat), new(big.Rat)
	for _, tier := range p.Tiers {
		top := new(big.Rat).Set(count)
		if tier.UpTo != nil && rat(*tier.UpTo).Cmp(top) < 0 {
			top = rat(*tier.UpTo)
		}
		if top.Cmp(below) > 0 {
			in := new(big.Rat).Sub(top, below)
			total.Add(total, in.Mul(in, rat(tier.Price)))
			below = top
		}
	}
	return total.Quo(total, rat(p.Per))
}

// round pays for the started part of each session at the price of its last piece.
func round(parts *[]piece) {
	sessions := map[string][]piece{}
	for _, p := range *parts {
		sessions[p.session] = append(sessions[p.session], p)
	}
	for name, of := range sessions {
		sum := new(big.Rat)
		for _, p := range of {
			sum.Add(sum, p.quantity)
		}
		last := of[0]
		for _, p := range of[1:] {
			if p.end.After(last.end) || p.end.Equal(last.end) && began(p.price).After(began(last.price)) {
				last = p
			}
		}
		if last.price == nil || last.price.RoundUpTo.Sign() == 0 || sum.Sign() <= 0 {
			continue
		}
		steps := new(big.Rat).Quo(sum, rat(last.price.RoundUpTo))
		whole := new(big.Int).Quo(steps.Num(), steps.Denom())
		if !steps.IsInt() {
			whole.Add(whole, big.NewInt(1))
		}
		more := new(big.Rat).Mul(new(big.Rat).SetInt(whole), rat(last.price.RoundUpTo))
		*parts = append(*parts, piece{name, last.price, more.Sub(more, sum), last.end, last.order})
	}
}

// began is when a price began to hold; no price comes first.
func began(p *rating.Price) time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.From
}
