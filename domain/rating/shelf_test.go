package rating_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
)

// version is a version written as its id and its days: "a 1 to 4", or "a 1" for ever.
func version(text string) rating.Price {
	id, days, _ := strings.Cut(text, " ")
	from, to, ends := strings.Cut(days, " to ")
	p := euros(id, "1")
	p.From = onDay(from)
	if ends {
		p.To = onDay(to)
	}
	return p
}

func onDay(text string) time.Time {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return day.AddDate(0, 0, n-day.Day())
}

// versions are those of a list: "a 1 to 4, b 6".
func versions(list string) (out []rating.Price) {
	for text := range strings.SplitSeq(list, ", ") {
		if text != "" {
			out = append(out, version(text))
		}
	}
	return out
}

func TestANewVersionCutsTheOneThatIsValidForEverAndNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shelf, added     string
		superseded, kept string
		over             bool // another price is in its way, so that it must be placed over it
	}{
		"an empty shelf":                     {"", "new 3", "", "", false},
		"after another":                      {"a 1 to 3", "new 3", "", "", false},
		"before another":                     {"a 5 to 7", "new 3 to 5", "", "", false},
		"before one for ever":                {"a 5", "new 3 to 5", "", "", false},
		"between two, touching both":         {"a 1 to 3, b 5", "new 3 to 5", "", "", false},
		"for ever, in one for ever":          {"a 1", "new 3", "a 1", "a 1 to 3", false},
		"for a time, in one for ever":        {"a 1", "new 3 to 5", "a 1", "a 1 to 3, a 5", false},
		"from the same day on":               {"a 3", "new 3", "a 3", "", false},
		"for a time, from the same day on":   {"a 3", "new 3 to 5", "a 3", "a 5", false},
		"over the end of another":            {"a 1 to 4", "new 3", "a 1 to 4", "a 1 to 3", true},
		"over the beginning of another":      {"a 4 to 6", "new 3 to 5", "a 4 to 6", "a 5 to 6", true},
		"over the beginning of one for ever": {"a 4", "new 3 to 5", "a 4", "a 5", true},
		"over all of one for ever":           {"a 4", "new 3", "a 4", "", true},
		"within another":                     {"a 1 to 9", "new 3 to 5", "a 1 to 9", "a 1 to 3, a 5 to 9", true},
		"exactly over another":               {"a 3 to 5", "new 3 to 5", "a 3 to 5", "", true},
		"from another's beginning on":        {"a 3 to 9", "new 3 to 5", "a 3 to 9", "a 5 to 9", true},
		"up to another's end":                {"a 1 to 5", "new 3 to 5", "a 1 to 5", "a 1 to 3", true},
		"over two":                           {"a 4 to 5, b 6", "new 3", "a 4 to 5, b 6", "", true},
		"after one and over the next":        {"a 1 to 2, b 4 to 6", "new 2", "b 4 to 6", "", true},
	} {
		want := rating.Placing{Superseded: versions(c.superseded), Kept: versions(c.kept)}
		placed, err := rating.Place(versions(c.shelf), version(c.added), true)
		require.NoError(t, err, name)
		require.Equal(t, want, placed, name)
		placed, err = rating.Place(versions(c.shelf), version(c.added), false)
		if !c.over {
			require.NoError(t, err, name)
			require.Equal(t, want, placed, name)
			continue
		}
		refused, _ := fault.As(err)
		require.NotNil(t, refused, name)
		require.Equal(t, fault.PriceOverlap, refused.Code, name)
		require.Equal(t, "input.validTo", refused.Reasons[0].Path, name)
		require.Empty(t, placed, name)
	}
	_, err := rating.Place(versions("a 2 to 4"), version("new 3"), false)
	require.ErrorContains(t, err, "from 2026-11-02T00:00:00Z", "it names the price in the way by its beginning")
}

// tiers are steps up to each of the bounds, and a last one without.
func tiers(bounds ...int64) (out []rating.Tier) {
	for _, bound := range bounds {
		upTo := money.Int(bound)
		out = append(out, rating.Tier{UpTo: &upTo, Price: money.Int(1)})
	}
	return append(out, rating.Tier{Price: money.Int(1)})
}

// rising are bounds of so many steps, each one more than the last.
func rising(count int64) (bounds []int64) {
	for n := range count {
		bounds = append(bounds, n+1)
	}
	return bounds
}

func TestTermsAreCheckedFieldByField(t *testing.T) {
	t.Parallel()
	number := money.Must
	const (
		measure = "measure: must be QUANTITY or TIME"
		minimum = "minimum: must not be negative"
		round   = "roundUpTo: must not be negative"
		per     = "per: must be more than 0: how many units the price is for"
		count   = "tiers: must have 1 to 20 tiers"
		last    = "tiers: tier %d: every tier but the last has upTo, and the last has none"
		order   = "tiers: tier %d: upTo must be more than 0 and more than upTo of the tier before"
	)
	at := fmt.Sprintf
	for name, c := range map[string]struct {
		change func(*rating.Terms)
		want   []string
	}{
		"all is well":             {func(*rating.Terms) {}, nil},
		"time":                    {func(t *rating.Terms) { t.Measure = rating.Time }, nil},
		"no measure":              {func(t *rating.Terms) { t.Measure = "" }, []string{measure}},
		"per the smallest":        {func(t *rating.Terms) { t.Per = number("0.000000000001") }, nil},
		"per nothing":             {func(t *rating.Terms) { t.Per = number("0") }, []string{per}},
		"per less":                {func(t *rating.Terms) { t.Per = number("-1") }, []string{per}},
		"a minimum":               {func(t *rating.Terms) { t.Minimum = number("0.01") }, nil},
		"less as the minimum":     {func(t *rating.Terms) { t.Minimum = number("-1") }, []string{minimum}},
		"a step of sessions":      {func(t *rating.Terms) { t.RoundUpTo = number("60") }, nil},
		"less as that step":       {func(t *rating.Terms) { t.RoundUpTo = number("-1") }, []string{round}},
		"no tier":                 {func(t *rating.Terms) { t.Tiers = nil }, []string{count}},
		"one tier":                {func(t *rating.Terms) { t.Tiers = tiers() }, nil},
		"the most tiers":          {func(t *rating.Terms) { t.Tiers = tiers(rising(19)...) }, nil},
		"one tier more":           {func(t *rating.Terms) { t.Tiers = tiers(rising(20)...) }, []string{count}},
		"so many, and each wrong": {func(t *rating.Terms) { t.Tiers = tiers(make([]int64, 20)...) }, []string{count}},
		"one tier with an end":    {func(t *rating.Terms) { t.Tiers = tiers(5)[:1] }, []string{at(last, 0)}},
		"the last with an end":    {func(t *rating.Terms) { t.Tiers = tiers(5, 6)[:2] }, []string{at(last, 1)}},
		"endless before the last": {func(t *rating.Terms) { t.Tiers[0].UpTo = nil }, []string{at(last, 0)}},
		"up to nothing":           {func(t *rating.Terms) { t.Tiers = tiers(0) }, []string{at(order, 0)}},
		"up to less":              {func(t *rating.Terms) { t.Tiers = tiers(-1) }, []string{at(order, 0)}},
		"no higher":               {func(t *rating.Terms) { t.Tiers = tiers(5, 5) }, []string{at(order, 1)}},
		"lower":                   {func(t *rating.Terms) { t.Tiers = tiers(5, 4, 6) }, []string{at(order, 1)}},
		"a free tier":             {func(t *rating.Terms) { t.Tiers[1].Price = number("0") }, nil},
		"a tier that pays": {func(t *rating.Terms) { t.Tiers[1].Price = number("-1") },
			[]string{"tiers: tier 1: the price must not be negative"}},
		"several at once": {func(t *rating.Terms) { t.Per, t.Tiers = number("0"), tiers(0, 0) },
			[]string{per, at(order, 0), at(order, 1)}},
	} {
		terms := rating.Terms{Measure: rating.Quantity, Per: money.Int(3600), Tiers: tiers(5, 10)}
		c.change(&terms)
		var found []string
		terms.Check(func(path, format string, args ...any) {
			found = append(found, path+": "+fmt.Sprintf(format, args...))
		})
		require.Equal(t, c.want, found, name)
	}
}
