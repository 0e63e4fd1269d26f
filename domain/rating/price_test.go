package rating_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
)

func TestScopesAreThoseThatAreListed(t *testing.T) {
	t.Parallel()
	for _, scope := range rating.Platform.Values() {
		require.True(t, rating.Scope(scope).Valid(), scope)
	}
	for _, scope := range []rating.Scope{"", "platform", "EVERYONE"} {
		require.False(t, scope.Valid(), scope)
	}
}

// rented is an hour of capacity with everything that a price can be for.
func rented() rating.Record {
	r := tokens("u", "1", 0, time.Hour)
	r.Basis, r.Meter, r.SKU, r.Region = rating.Capacity, "gpu_seconds", "h100", "eu"
	return r
}

// priced is a price for capacity.
func priced(id string, scope rating.Scope, owner, meter, sku, region string) rating.Price {
	p := euros(id, "1")
	p.Scope, p.Owner, p.Meter, p.SKU, p.Region = scope, owner, meter, sku, region
	return p
}

func TestTheMoreSpecificPriceWins(t *testing.T) {
	t.Parallel()
	const platform, tenant, project, every = rating.Platform, rating.Tenant, rating.Project, rating.AnyCapacity
	for _, meter := range []string{"gpu_seconds", "accelerator_seconds"} { // after "capacity", and before it
		prices := []rating.Price{ // the most specific first
			priced("project", project, "prj", every, "", ""),
			priced("tenant with everything", tenant, "ten", meter, "h100", "eu"),
			priced("tenant", tenant, "ten", every, "", ""),
			priced("meter, SKU and region", platform, "", meter, "h100", "eu"),
			priced("meter and SKU", platform, "", meter, "h100", ""),
			priced("meter and region", platform, "", meter, "", "eu"),
			priced("meter", platform, "", meter, "", ""),
			priced("SKU and region", platform, "", every, "h100", "eu"),
			priced("SKU", platform, "", every, "h100", ""),
			priced("region", platform, "", every, "", "eu"),
			priced("anything", platform, "", every, "", ""),
		}
		used := rented()
		used.Meter = meter
		for i, winner := range prices {
			for _, other := range prices[i+1:] {
				for _, both := range [][]rating.Price{{winner, other}, {other, winner}} {
					require.Equal(t, []string{winner.ID + " 1 1 1"}, linesOf(t, both, used), "%s, %s", winner.ID,
						other.ID)
				}
			}
		}
	}
}

func TestAPriceIsForItsSubjectAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*rating.Price, *rating.Record)
		paid   bool
	}{
		"the very subject": {func(*rating.Price, *rating.Record) {}, true},
		"any SKU":          {func(p *rating.Price, _ *rating.Record) { p.SKU = "" }, true},
		"any region":       {func(p *rating.Price, _ *rating.Record) { p.Region = "" }, true},
		"the tenant": {func(p *rating.Price, _ *rating.Record) { p.Scope, p.Owner = rating.Tenant, "ten" },
			true},
		"the project": {func(p *rating.Price, _ *rating.Record) { p.Scope, p.Owner = rating.Project, "prj" },
			true},
		"any capacity": {func(p *rating.Price, _ *rating.Record) { p.Meter = rating.AnyCapacity }, true},
		"any capacity, of an app's usage": {func(p *rating.Price, r *rating.Record) {
			p.Meter, r.Basis = rating.AnyCapacity, rating.App
		}, false},
		"any capacity, of a volume": {func(p *rating.Price, r *rating.Record) {
			p.Meter, r.Basis = rating.AnyCapacity, rating.Storage
		}, false},
		"an app's usage":         {func(_ *rating.Price, r *rating.Record) { r.Basis = rating.App }, true},
		"another meter":          {func(p *rating.Price, _ *rating.Record) { p.Meter = "cpu_seconds" }, false},
		"another SKU":            {func(p *rating.Price, _ *rating.Record) { p.SKU = "a10" }, false},
		"another region":         {func(p *rating.Price, _ *rating.Record) { p.Region = "us" }, false},
		"usage without a SKU":    {func(_ *rating.Price, r *rating.Record) { r.SKU = "" }, false},
		"usage without a region": {func(_ *rating.Price, r *rating.Record) { r.Region = "" }, false},
		"another currency":       {func(p *rating.Price, _ *rating.Record) { p.Currency = "USD" }, false},
		"another tenant": {func(p *rating.Price, _ *rating.Record) { p.Scope, p.Owner = rating.Tenant, "ten2" },
			false},
		"another project": {func(p *rating.Price, _ *rating.Record) { p.Scope, p.Owner = rating.Project, "prj2" },
			false},
	} {
		p, r := priced("prc", rating.Platform, "", "gpu_seconds", "h100", "eu"), rented()
		c.change(&p, &r)
		want := " 1 1 0"
		if c.paid {
			want = "prc 1 1 1"
		}
		require.Equal(t, []string{want}, linesOf(t, []rating.Price{p}, r), name)
	}
}

// steps are three: up to 10 units, up to 20, and the rest.
func steps(id, first, second, third string) rating.Price {
	p, ten, twenty := euros(id, first), money.Int(10), money.Int(20)
	p.Tiers = []rating.Tier{{UpTo: &ten, Price: money.Must(first)}, {UpTo: &twenty, Price: money.Must(second)},
		{Price: money.Must(third)}}
	return p
}

func TestEachUnitIsPaidAtThePriceOfTheStepThatItIsIn(t *testing.T) {
	t.Parallel()
	for quantity, amount := range map[string]string{"0": "0", "4": "12", "9.5": "28.5", "10": "30", "10.5": "31",
		"20": "50", "21": "51", "50": "80"} {
		require.Equal(t, []string{"prc " + quantity + " " + quantity + " " + amount},
			linesOf(t, []rating.Price{steps("prc", "3", "2", "1")}, tokens("u", quantity, 0, 0)))
	}
}

func TestANewVersionGoesOnInTheStepsWhereTheOneBeforeEnded(t *testing.T) {
	t.Parallel()
	before, after := steps("v1", "3", "2", "1"), steps("v2", "300", "200", "100")
	before.To, after.From = day.Add(time.Hour), day.Add(time.Hour)
	both := []rating.Price{after, before}
	late := func(quantity string) rating.Record { return tokens("late", quantity, time.Hour, time.Hour) }
	for name, c := range map[string]struct {
		records []rating.Record
		want    []string
	}{
		"within a step": {[]rating.Record{tokens("u", "12", 0, 0), late("3")}, []string{"v1 12 12 34", "v2 3 3 600"}},
		"over two of its ends": {[]rating.Record{tokens("u", "5", 0, 0), late("25")},
			[]string{"v1 5 5 15", "v2 25 25 4500"}},
		"from the end of a step": {[]rating.Record{tokens("u", "10", 0, 0), late("1")},
			[]string{"v1 10 10 30", "v2 1 1 200"}},
		"after nothing": {[]rating.Record{late("1")}, []string{"v2 1 1 300"}},
		"after more was retracted than used": {[]rating.Record{tokens("u", "-5", 0, 0), late("1")},
			[]string{"v1 -5 -5 0", "v2 1 1 300"}},
	} {
		require.Equal(t, c.want, linesOf(t, both, c.records...), name)
	}
	after.SKU = "h100" // which is another shelf
	sold := late("3")
	sold.SKU = "h100"
	early := tokens("u", "12", 0, 0)
	early.SKU = "h100"
	require.Equal(t, []string{"v1 12 12 34", "v2 3 3 900"}, linesOf(t, []rating.Price{before, after}, early, sold))
}

func TestVersionsOfOneOriginAreOneLine(t *testing.T) {
	t.Parallel()
	head, tail, between := euros("v1", "1"), euros("v3", "1"), euros("v2", "5")
	head.To, between.From = day.Add(time.Hour), day.Add(time.Hour)
	between.To, tail.From = day.Add(2*time.Hour), day.Add(2*time.Hour)
	tail.Origin, head.Minimum, tail.Minimum = "v1", money.Int(9), money.Int(9)
	require.Equal(t, []string{"v1 8 8 9", "v2 4 4 20"},
		linesOf(t, []rating.Price{head, between, tail}, tokens("u", "12", 0, 3*time.Hour)), "the minimum is paid once")
}

func TestSpansAreWhenPricesOfAnOriginApply(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return day.Add(time.Duration(hour) * time.Hour) }
	span := func(from, to int) rating.Span { return rating.Span{From: at(from), To: at(to)} }
	version := func(id, origin string, from, to int) rating.Price {
		p := euros(id, "1")
		p.Meter, p.Origin, p.From, p.To = rating.AnyCapacity, origin, at(from), at(to)
		return p
	}
	e := engine(t, version("v1", "a", -5, 2), version("v2", "a", 2, 4), version("v3", "b", 4, 6),
		version("v4", "a", 6, 7), version("v5", "a", 9, 30))
	heading := rating.Heading{Project: "prj", Meter: "gpu_seconds", Unit: "second"}
	require.Equal(t, []rating.Span{span(0, 4), span(6, 7), span(9, 24)}, e.Spans(heading, true, "a"),
		"versions of one origin that touch are one span, and none reaches over the period")
	require.Equal(t, []rating.Span{span(4, 6)}, e.Spans(heading, true, "b"))
	require.Equal(t, []rating.Span{span(7, 9)}, e.Spans(heading, true, ""), "while nothing is priced")
	require.Empty(t, e.Spans(heading, true, "c"))
	require.Equal(t, []rating.Span{span(0, 24)}, e.Spans(heading, false, ""), "what is not capacity has no price")
	require.Empty(t, e.Spans(heading, false, "a"))
}
