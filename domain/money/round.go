package money

import (
	"math/big"
	"slices"
	"strings"
)

// Quotient returns d / by at so many places, half to even, in one rounding. by must not be 0.
func (d Decimal) Quotient(by Decimal, places int32) Decimal {
	n, m := align(d, by)
	n.Mul(n, power(places))
	return of(halfEven(n, m), places)
}

// Round returns d at so many places, half to even.
func (d Decimal) Round(places int32) Decimal { return d.Quotient(Int(1), places) }

// Part returns d × num / den at Scale places, toward zero, so that a part and the part of the negative cancel. d has at
// most Scale places; den is more than 0.
func (d Decimal) Part(num, den int64) Decimal {
	n := d.Mul(Int(num)).scaled(Scale)
	return of(n.Quo(n, big.NewInt(den)), Scale)
}

// CeilTo returns the least multiple of step, which is more than 0, that is not less than d.
func (d Decimal) CeilTo(step Decimal) Decimal {
	n, m := align(d, step)
	count, rest := new(big.Int).QuoRem(n, m, new(big.Int))
	if rest.Sign() > 0 {
		count.Add(count, big.NewInt(1))
	}
	return of(count, 0).Mul(step)
}

// align returns both as whole numbers of the same unit.
func align(a, b Decimal) (x, y *big.Int) {
	places := -min(a.value.Exponent, b.value.Exponent)
	return a.scaled(places), b.scaled(places)
}

// halfEven returns n / m, half to even.
func halfEven(n, m *big.Int) *big.Int {
	quotient, rest := new(big.Int).QuoRem(n, m, new(big.Int))
	twice := new(big.Int).Abs(rest)
	twice.Lsh(twice, 1)
	order := twice.CmpAbs(m)
	if order < 0 || order == 0 && quotient.Bit(0) == 0 {
		return quotient
	}
	if n.Sign() != m.Sign() { // neither is 0: an n of 0 leaves no rest
		return quotient.Sub(quotient, big.NewInt(1))
	}
	return quotient.Add(quotient, big.NewInt(1))
}

// Share is who takes part in a total, and by how much.
type Share struct {
	// ID breaks ties: the lesser first.
	ID string
	// Weight is not negative.
	Weight Decimal
}

// Shares cuts a total, which has at most so many places, into parts of so many places that sum to it exactly: each gets
// its proportion toward zero, and the units that are left go to the largest remainders, equal ones by id. When no one
// has a weight, all have the same.
func Shares(total Decimal, places int32, of []Share) []Decimal {
	if len(of) == 0 {
		return nil
	}
	weights, sum := weigh(of)
	units := total.scaled(places)
	sign := big.NewInt(int64(units.Sign()))
	units.Abs(units)
	given, rests := divide(units, weights, sum)
	left := new(big.Int).Set(units)
	for _, one := range given {
		left.Sub(left, one)
	}
	for _, i := range byRemainder(of, rests)[:left.Int64()] { // fewer are left than take part
		given[i].Add(given[i], big.NewInt(1))
	}
	return parts(given, sign, places)
}

// weigh returns the weights as whole numbers of one unit, and their sum, which is not 0.
func weigh(shares []Share) (weights []*big.Int, sum *big.Int) {
	var places int32
	for _, share := range shares {
		places = max(places, -share.Weight.value.Exponent)
	}
	sum = new(big.Int)
	for _, share := range shares {
		weight := share.Weight.scaled(places)
		weights, sum = append(weights, weight), sum.Add(sum, weight)
	}
	if sum.Sign() == 0 {
		for i := range weights {
			weights[i], sum = big.NewInt(1), sum.Add(sum, big.NewInt(1))
		}
	}
	return weights, sum
}

func divide(units *big.Int, weights []*big.Int, sum *big.Int) (given, rests []*big.Int) {
	for _, weight := range weights {
		product := new(big.Int).Mul(units, weight)
		one, rest := product.QuoRem(product, sum, new(big.Int))
		given, rests = append(given, one), append(rests, rest)
	}
	return given, rests
}

// byRemainder lists the places of the shares, the largest remainder first.
func byRemainder(shares []Share, rests []*big.Int) []int {
	order := make([]int, len(shares))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if by := rests[b].Cmp(rests[a]); by != 0 {
			return by
		}
		return strings.Compare(shares[a].ID, shares[b].ID)
	})
	return order
}

func parts(given []*big.Int, sign *big.Int, places int32) []Decimal {
	out := make([]Decimal, len(given))
	for i, one := range given {
		out[i] = of(one.Mul(one, sign), places)
	}
	return out
}
