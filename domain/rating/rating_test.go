package rating_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
)

// euros is a price of one step for each unit of the meter "tokens", valid for ever from the first day on.
func euros(id, each string) rating.Price {
	return rating.Price{ID: id, Origin: id, Meter: "tokens", Currency: "EUR", Scope: rating.Platform, From: day,
		Terms: rating.Terms{Measure: rating.Quantity, Per: money.Int(1),
			Tiers: []rating.Tier{{Price: money.Must(each)}}}}
}

// tokens is usage from one time of the first day to another.
func tokens(id, quantity string, from, to time.Duration) rating.Record {
	return rating.Record{Source: "src", Meter: "tokens", ID: id, Basis: rating.App, Project: "prj", Unit: "token",
		Session: "ses", Quantity: money.Must(quantity), From: day.Add(from), To: day.Add(to)}
}

// engine rates the first day of a tenant in euros.
func engine(t *testing.T, prices ...rating.Price) *rating.Engine {
	t.Helper()
	e, err := rating.New(rating.Engine{Tenant: "ten", Currency: "EUR", From: day, To: day.Add(24 * time.Hour),
		Prices: prices})
	require.NoError(t, err)
	return e
}

// linesOf are the lines of records, each as its price, quantity, what is billed and the amount.
func linesOf(t *testing.T, prices []rating.Price, records ...rating.Record) (lines []string) {
	t.Helper()
	result, err := engine(t, prices...).Rate(records)
	require.NoError(t, err)
	for _, l := range result.Lines {
		lines = append(lines, strings.Join([]string{l.Price, l.Quantity.String(), l.Billed.String(), l.Amount.String()},
			" "))
	}
	return lines
}

func TestAnEngineHasACurrencyOfTheStandard(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"", "eur", "XXY"} {
		none, err := rating.New(rating.Engine{Currency: currency})
		require.True(t, fault.Is(err, fault.InvalidArgument), "%q: %v", currency, err)
		require.Nil(t, none)
	}
}

func TestUsageCountsOnceAndItsIDHasOneContent(t *testing.T) {
	t.Parallel()
	once := tokens("u1", "10", 0, time.Hour)
	moved := once
	moved.From, moved.To = once.From.In(time.FixedZone("CET", 3600)), once.To.In(time.FixedZone("CET", 3600))
	require.Equal(t, []string{" 10 10 0"}, linesOf(t, nil, once, once, moved), "the same instant, written otherwise")

	other := once
	other.Quantity = money.Int(11)
	result, err := engine(t).Rate([]rating.Record{once, other})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	require.ErrorContains(t, err, `usage record "u1" of "src" has two contents`)
	require.Nil(t, result)

	elsewhere, another := once, once
	elsewhere.Source, another.Meter = "src2", "requests"
	result, err = engine(t).Rate([]rating.Record{once, elsewhere, another})
	require.NoError(t, err, "an id is its source's and its meter's own")
	require.Len(t, result.Lines, 2)
}

// The ledger stores the digest of a record and compares a later delivery with it: a version of the program that
// computed another one would refuse what was delivered before.
func TestARecordsDigestIsOfEachOfItsTextsInOrder(t *testing.T) {
	t.Parallel()
	r := rating.Record{Source: "so", Meter: "me", ID: "id", Basis: rating.App, Project: "pr", SKU: "sk", Region: "re",
		Unit: "un", Session: "se", Quantity: money.Must("1.50"), From: day, To: day.Add(time.Microsecond), Borne: "bo",
		Use: rating.Use{Instance: "in", Allocation: "al", Member: "me", Component: "co", Operation: "op"}}
	written := "so|me|id|APP|pr|in|al|me|co|op|sk|re|un|se|1.5|2026-11-01T00:00:00Z|2026-11-01T00:00:00.000001Z|bo|"
	sum := sha256.Sum256([]byte(strings.ReplaceAll(written, "|", "\x00")))
	require.Equal(t, hex.EncodeToString(sum[:]), r.Digest())
}

func TestUsageCountsFromTheBeginningOfThePeriodUntilItsEnd(t *testing.T) {
	t.Parallel()
	const end = 24 * time.Hour
	for name, c := range map[string]struct {
		from, to time.Duration
		want     []string
	}{
		"just before the beginning":       {-time.Microsecond, -time.Microsecond, nil},
		"the instant of the beginning":    {0, 0, []string{"prc 12 12 24"}},
		"just before the end":             {end - time.Microsecond, end - time.Microsecond, []string{"prc 12 12 24"}},
		"the instant of the end":          {end, end, nil},
		"an interval up to the beginning": {-time.Hour, 0, nil},
		"an interval over the beginning":  {-time.Hour, 2 * time.Hour, []string{"prc 8 8 16"}},
		"an interval over the end":        {end - time.Hour, end + 2*time.Hour, []string{"prc 4 4 8"}},
		"an interval from the end on":     {end, end + time.Hour, nil},
		"an interval over the whole":      {-end, 2 * end, []string{"prc 4 4 8"}},
		"an interval from bound to bound": {0, end, []string{"prc 12 12 24"}},
	} {
		require.Equal(t, c.want, linesOf(t, []rating.Price{euros("prc", "2")}, tokens("u", "12", c.from, c.to)), name)
	}
}

func TestUsageIsPaidAtThePriceOfItsTime(t *testing.T) {
	t.Parallel()
	early, late := euros("early", "1"), euros("late", "2")
	early.To, late.From = day.Add(2*time.Hour), day.Add(3*time.Hour)
	late.To = day.Add(5 * time.Hour)
	prices := []rating.Price{early, late}
	all := []string{" 4 4 0", "early 4 4 4", "late 4 4 8"}
	for name, c := range map[string]struct {
		from, to time.Duration
		want     []string
	}{
		"up to the end of a price":          {time.Hour, 2 * time.Hour, []string{"early 12 12 12"}},
		"at the end of a price":             {2 * time.Hour, 2 * time.Hour, []string{" 12 12 0"}},
		"between two":                       {2 * time.Hour, 3 * time.Hour, []string{" 12 12 0"}},
		"at the beginning of a price":       {3 * time.Hour, 3 * time.Hour, []string{"late 12 12 24"}},
		"a microsecond before a beginning":  {3*time.Hour - 1000, 3*time.Hour - 1000, []string{" 12 12 0"}},
		"over both and between":             {time.Hour, 4 * time.Hour, all},
		"from the end of the last price on": {5 * time.Hour, 6 * time.Hour, []string{" 12 12 0"}},
		"over everything":                   {0, 6 * time.Hour, all},
	} {
		require.Equal(t, c.want, linesOf(t, prices, tokens("u", "12", c.from, c.to)), name)
	}
}

func TestTimeIsPaidBySecondsHoweverMuchIsMetered(t *testing.T) {
	t.Parallel()
	price := euros("prc", "3.6")
	price.Measure, price.Per = rating.Time, money.Int(3600)
	half := 90*time.Minute + 500*time.Millisecond
	require.Equal(t, []string{"prc 8 5400.5 5.4"}, linesOf(t, []rating.Price{price}, tokens("u", "8", 0, half)))
	require.Equal(t, []string{"prc 0 0 0"}, linesOf(t, []rating.Price{price}, tokens("u", "8", 0, half),
		tokens("retracted", "-8", 0, half)), "a retraction takes its seconds back")
	require.Equal(t, []string{"prc 0 0 0"}, linesOf(t, []rating.Price{price}, tokens("u", "0", 0, half)),
		"nothing takes no time")
	require.Equal(t, []string{" 8 8 0"}, linesOf(t, nil, tokens("u", "8", 0, half)), "no price measures the quantity")
}

func TestSessionIsRoundedUpOnceAsThePriceOfItsLastUsageDemands(t *testing.T) {
	t.Parallel()
	minutes, plain := euros("minutes", "1"), euros("plain", "1")
	minutes.RoundUpTo, minutes.To = money.Int(60), day.Add(time.Hour)
	plain.From = minutes.To
	early := func(id, quantity string) rating.Record { return tokens(id, quantity, 0, time.Minute) }
	other := early("u2", "50")
	other.Session = "another"
	for name, c := range map[string]struct {
		records []rating.Record
		want    []string
	}{
		"a whole multiple": {[]rating.Record{early("u1", "120")}, []string{"minutes 120 120 120"}},
		"a little more":    {[]rating.Record{early("u1", "120.001")}, []string{"minutes 120.001 180 180"}},
		"its records together": {[]rating.Record{early("u1", "50"), early("u2", "50")},
			[]string{"minutes 100 120 120"}},
		"each session for itself": {[]rating.Record{early("u1", "50"), other}, []string{"minutes 100 120 120"}},
		"one that is taken back": {[]rating.Record{early("u1", "50"), early("r1", "-50")},
			[]string{"minutes 0 0 0"}},
		"only its retraction yet": {[]rating.Record{early("r1", "-50")}, []string{"minutes -50 -50 0"}},
		"its last usage under a price that rounds nothing": {
			[]rating.Record{tokens("u1", "50", 0, time.Minute), tokens("u2", "5", 2*time.Hour, 3*time.Hour)},
			[]string{"minutes 50 50 50", "plain 5 5 5"}},
	} {
		require.Equal(t, c.want, linesOf(t, []rating.Price{minutes, plain}, c.records...), name)
	}
	minutes.From, minutes.To = day.Add(2*time.Hour), time.Time{}
	require.Equal(t, []string{" 50 50 0", "minutes 15 70 70"}, linesOf(t, []rating.Price{minutes},
		tokens("u1", "50", 0, time.Minute), tokens("u2", "15", 3*time.Hour, 4*time.Hour)),
		"the whole session is 65, up to 120, and the supplement of 55 is the last usage's")
}

func TestMinimumIsPaidForAnyUsageAndForNone(t *testing.T) {
	t.Parallel()
	price := euros("prc", "1")
	price.Minimum, price.Per = money.Int(5), money.Int(2)
	prices := []rating.Price{price}
	require.Equal(t, []string{"prc 0.01 0.01 5"}, linesOf(t, prices, tokens("u", "0.01", 0, 0)))
	require.Equal(t, []string{"prc 10 10 5"}, linesOf(t, prices, tokens("u", "10", 0, 0)), "at 1 for 2 units")
	require.Equal(t, []string{"prc 11 11 5.5"}, linesOf(t, prices, tokens("u", "11", 0, 0)))
	require.Equal(t, []string{"prc 0 0 0"}, linesOf(t, prices, tokens("u", "3", 0, 0), tokens("r", "-3", 0, 0)),
		"what is taken back wholly costs nothing")
}

func TestWhatIsShownAndNotPricedDoesNotCount(t *testing.T) {
	t.Parallel()
	r := tokens("u", "10", 0, time.Hour)
	r.Basis = rating.Showback
	e := engine(t, euros("prc", "1"))
	e.Add(&r)
	e.AddTotal(&r, money.Int(3600))
	require.Empty(t, e.Result().Lines)
}

func TestTotalsBetweenCutsGiveTheBytesOfTheirRecords(t *testing.T) {
	t.Parallel()
	quantity, seconds := euros("quantity", "1"), euros("seconds", "0.001")
	quantity.To, seconds.From, seconds.Measure = day.Add(4*time.Hour), day.Add(4*time.Hour), rating.Time
	capacity := euros("capacity", "7")
	capacity.Meter = rating.AnyCapacity
	prices := []rating.Price{quantity, seconds, capacity}
	for name, basis := range map[string]rating.Basis{"of an app": rating.App, "of capacity": rating.Capacity} {
		a, b, c := tokens("a", "10", 0, time.Hour), tokens("b", "5", 2*time.Hour, 3*time.Hour),
			tokens("c", "3", 4*time.Hour, 5*time.Hour)
		a.Basis, b.Basis, c.Basis = basis, basis, basis
		c.Meter = "requests" // which only capacity has a price for
		one, err := engine(t, prices...).Rate([]rating.Record{a, b, c})
		require.NoError(t, err)
		total := a
		total.Quantity, total.To = money.Int(15), b.To
		sums := engine(t, prices...)
		sums.AddTotal(&total, money.Int(7200))
		sums.AddTotal(&c, money.Int(3600))
		require.Equal(t, string(one.Bytes()), string(sums.Result().Bytes()), name)
	}
	timed := tokens("t", "3", 4*time.Hour, 5*time.Hour)
	sums := engine(t, prices...)
	sums.AddTotal(&timed, money.Int(1800)) // of two records, half an hour each
	require.Equal(t, "1.8", sums.Result().Lines[0].Amount.String(), "seconds are paid for as they were added up")
}

func TestTotalsOutsideThePeriodDoNotCount(t *testing.T) {
	t.Parallel()
	for from, want := range map[time.Duration]int{-time.Microsecond: 0, 0: 1, 24*time.Hour - time.Microsecond: 1,
		24 * time.Hour: 0} {
		e := engine(t)
		r := tokens("u", "1", from, 25*time.Hour)
		e.AddTotal(&r, money.Int(1))
		require.Len(t, e.Result().Lines, want, from)
	}
}

func TestCutsAreTheBoundsAndEachChangeOfAPriceBetweenThem(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return day.Add(time.Duration(hour) * time.Hour) }
	ends := func(from, to int) rating.Price {
		p := euros("prc", "1")
		p.From, p.To = at(from), at(to)
		return p
	}
	open := euros("open", "1")
	open.From = at(-3)
	require.Equal(t, []time.Time{at(0), at(24)}, engine(t).Cuts())
	require.Equal(t, []time.Time{at(0), at(5), at(7), at(9), at(24)},
		engine(t, ends(7, 9), ends(5, 7), ends(-2, 0), ends(-1, 5), ends(24, 30), ends(9, 25), open).Cuts(),
		"in order and once each, without what changes at a bound or beyond it")
}
