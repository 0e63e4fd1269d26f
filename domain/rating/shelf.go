package rating

import "github.com/gpuaas/app-platform/domain/fault"

// Placing is how a new version finds its place on its shelf.
type Placing struct {
	// Superseded are versions whose validity is cut, and Kept what is left of them: versions of the same origin.
	Superseded, Kept []Price
}

// Place puts a version on the shelf of the versions that hold. It may cut the one that is valid for ever; any other
// that begins or ends within its validity is in its way: PRICE_OVERLAP names it. With over it cuts whatever is in its
// way.
func Place(onShelf []Price, added Price, over bool) (Placing, error) {
	var out Placing
	for _, p := range onShelf {
		if !overlap(&p, &added) {
			continue
		}
		tail := p.To.IsZero() && !p.From.After(added.From)
		if !tail && !over {
			return Placing{}, fault.New(fault.PriceOverlap,
				"another price is valid from %s: end this one before then, or name another scope",
				instant(p.From)).At("input.validTo")
		}
		out.Superseded = append(out.Superseded, p)
		out.Kept = append(out.Kept, rest(p, &added)...)
	}
	return out, nil
}

// overlap reports whether both are valid at some instant.
func overlap(a, b *Price) bool {
	return (b.To.IsZero() || a.From.Before(b.To)) && (a.To.IsZero() || b.From.Before(a.To))
}

// rest is what is left of a version when another takes its place in part.
func rest(of Price, added *Price) (left []Price) {
	if of.From.Before(added.From) {
		head := of
		head.To = added.From
		left = append(left, head)
	}
	if !added.To.IsZero() && (of.To.IsZero() || added.To.Before(of.To)) {
		tail := of
		tail.From = added.To
		left = append(left, tail)
	}
	return left
}

// Check finds what is wrong with terms, by field: nothing when they can be rated.
func (t *Terms) Check(bad func(path, format string, args ...any)) {
	if t.Measure != Quantity && t.Measure != Time {
		bad("measure", "must be QUANTITY or TIME")
	}
	if t.Per.Sign() <= 0 {
		bad("per", "must be more than 0: how many units the price is for")
	}
	if t.Minimum.Sign() < 0 {
		bad("minimum", "must not be negative")
	}
	if t.RoundUpTo.Sign() < 0 {
		bad("roundUpTo", "must not be negative")
	}
	t.checkTiers(bad)
}

// maxTiers bounds the steps of a price.
const maxTiers = 20

func (t *Terms) checkTiers(bad func(path, format string, args ...any)) {
	if len(t.Tiers) == 0 || len(t.Tiers) > maxTiers {
		bad("tiers", "must have 1 to %d tiers", maxTiers)
		return
	}
	last := len(t.Tiers) - 1
	for i, tier := range t.Tiers {
		if tier.Price.Sign() < 0 {
			bad("tiers", "tier %d: the price must not be negative", i)
		}
		if (tier.UpTo == nil) != (i == last) {
			bad("tiers", "tier %d: every tier but the last has upTo, and the last has none", i)
			return
		}
		if i < last && (tier.UpTo.Sign() <= 0 || i > 0 && tier.UpTo.Cmp(*t.Tiers[i-1].UpTo) <= 0) {
			bad("tiers", "tier %d: upTo must be more than 0 and more than upTo of the tier before", i)
		}
	}
}
