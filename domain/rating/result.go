package rating

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/gpuaas/app-platform/domain/money"
)

// counted is a bucket with its key, and what is paid for of it.
type counted struct {
	bucketKey
	*bucket
	billed money.Decimal
}

// Result rates what was counted.
func (e *Engine) Result() *Result {
	all := e.sorted()
	out := &Result{Engine: EngineVersion, Tenant: e.Tenant, Currency: e.Currency, From: e.From.UTC(), To: e.To.UTC(),
		Prices: HashPrices(e.Prices), Input: inputDigest(all)}
	for len(all) > 0 {
		end := 1
		for end < len(all) && all[end].Heading == all[0].Heading {
			end++
		}
		out.Lines = append(out.Lines, e.lines(all[:end])...)
		all = all[end:]
	}
	return out
}

// sorted lists the buckets in one order.
func (e *Engine) sorted() []*counted {
	all := make([]*counted, 0, len(e.buckets))
	for key, found := range e.buckets {
		all = append(all, &counted{bucketKey: key, bucket: found, billed: found.paid})
	}
	slices.SortFunc(all, func(a, b *counted) int {
		return cmp.Or(a.compare(b.Heading), byTime(a.price, b.price), cmp.Compare(a.session, b.session),
			cmp.Compare(a.use.key(), b.use.key()))
	})
	return all
}

// byTime orders prices by when they begin; no price comes first.
func byTime(a, b *Price) int {
	none := &Price{}
	a, b = cmp.Or(a, none), cmp.Or(b, none)
	return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.ID, b.ID))
}

func inputDigest(all []*counted) string {
	var out bytes.Buffer
	for _, c := range all {
		price := ""
		if c.price != nil {
			price = c.price.ID
		}
		write(&out, []any{c.Heading, price, c.session, c.use, c.quantity, c.paid, c.last.UTC()})
	}
	return digest(out.Bytes())
}

// lines rates what is counted under one heading, an origin of prices a line.
func (e *Engine) lines(counts []*counted) (out []Line) {
	roundSessions(counts)
	byOrigin := map[string][]*counted{}
	for _, c := range counts {
		byOrigin[origin(c.price)] = append(byOrigin[origin(c.price)], c)
	}
	dividends := tiered(counts)
	for _, name := range slices.Sorted(maps.Keys(byOrigin)) {
		out = append(out, e.line(byOrigin[name], dividends[name]))
	}
	return out
}

func origin(p *Price) string {
	if p == nil {
		return ""
	}
	return p.Origin
}

// roundSessions rounds up what is paid for of each session, as the price of its last usage demands. The supplement is
// paid for with that last usage.
func roundSessions(counts []*counted) {
	total, last := map[string]money.Decimal{}, map[string]*counted{}
	for _, c := range counts {
		total[c.session] = total[c.session].Add(c.paid)
		if before := last[c.session]; before == nil || !c.last.Before(before.last) {
			last[c.session] = c
		}
	}
	for session, c := range last {
		if c.price == nil || c.price.RoundUpTo.Sign() <= 0 {
			continue
		}
		used := total[session].Max(money.Decimal{}) // more is retracted than was used while usage is late
		c.billed = c.billed.Add(used.CeilTo(c.price.RoundUpTo).Sub(used))
	}
}

// tiered is what each origin's usage costs, times Per. The counter of the tiers belongs to the shelf: a new version
// goes on where the one before it ended.
func tiered(counts []*counted) map[string]money.Decimal {
	offsets, dividends := map[shelf]money.Decimal{}, map[string]money.Decimal{}
	for len(counts) > 0 { // which are sorted by the beginning of their price
		price, sum, end := counts[0].price, money.Decimal{}, 0
		for end < len(counts) && counts[end].price == price {
			sum, end = sum.Add(counts[end].billed), end+1
		}
		counts = counts[end:]
		if price == nil {
			continue
		}
		sum = sum.Max(money.Decimal{}) // as for a session
		offset := offsets[price.shelf()]
		dividends[price.Origin] = dividends[price.Origin].Add(price.amount(offset, sum))
		offsets[price.shelf()] = offset.Add(sum)
	}
	return dividends
}

// line is the line of one origin.
func (e *Engine) line(counts []*counted, dividend money.Decimal) Line {
	first := counts[0]
	out := Line{Heading: first.Heading, Key: first.key(origin(first.price)), Price: origin(first.price)}
	uses := map[Use]*Share{}
	for _, c := range counts {
		out.Quantity, out.Billed = out.Quantity.Add(c.quantity), out.Billed.Add(c.billed)
		if uses[c.use] == nil {
			uses[c.use] = &Share{Use: c.use}
		}
		share := uses[c.use]
		share.Quantity, share.Billed = share.Quantity.Add(c.quantity), share.Billed.Add(c.billed)
	}
	for _, share := range uses {
		out.Shares = append(out.Shares, *share)
	}
	slices.SortFunc(out.Shares, func(a, b Share) int { return a.Compare(b.Use) })
	if first.price != nil {
		e.charge(&out, &first.price.Terms, dividend)
	}
	return out
}

// charge rounds the line's amount, once, and cuts it into shares.
func (e *Engine) charge(line *Line, terms *Terms, dividend money.Decimal) {
	if line.Billed.Sign() > 0 {
		dividend = dividend.Max(terms.Minimum.Mul(terms.Per))
	}
	places, _ := money.Minor(e.Currency) // New has looked
	line.Exact = dividend.Quotient(terms.Per, money.Scale)
	line.Amount = dividend.Quotient(terms.Per, places)
	parts := make([]money.Share, len(line.Shares))
	for i := range line.Shares {
		parts[i] = money.Share{ID: line.Shares[i].key(), Weight: line.Shares[i].Billed.Max(money.Decimal{})}
	}
	for i, amount := range money.Shares(line.Amount, places, parts) {
		line.Shares[i].Amount = amount
	}
}
