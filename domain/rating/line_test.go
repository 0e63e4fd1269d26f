package rating_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
)

func sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// The books refer to a line by its key and compare it by its JSON, and a run to its result by the digest of its bytes:
// another version of the program must give the same.
func TestAResultHasOneFormToTheByte(t *testing.T) {
	t.Parallel()
	price := steps("prc", "3", "2", "1")
	price.To = day.Add(2 * time.Hour)
	one := tokens("u1", "12", 0, time.Hour)
	one.Instance, one.Component = "ins", "api <&>"
	none := tokens("u2", "7", 3*time.Hour, 4*time.Hour)
	none.Volume = "vol"
	e := engine(t, price)
	result, err := e.Rate([]rating.Record{none, one})
	require.NoError(t, err)

	const book = `{"id":"prc","origin":"prc","meter":"tokens","sku":"","region":"","currency":"EUR",` +
		`"scope":"PLATFORM","owner":"","from":"2026-11-01T00:00:00Z","to":"2026-11-01T02:00:00Z",` +
		`"measure":"QUANTITY","per":"1","tiers":[{"upTo":"10","price":"3"},{"upTo":"20","price":"2"},` +
		`{"price":"1"}],"minimum":"0","roundUpTo":"0"}` + "\n"
	const about = `"project":"prj","meter":"tokens","unit":"token"`
	const input = `[{` + about + `},"","ses",{"volume":"vol"},"7","7","2026-11-01T04:00:00Z"]` + "\n" +
		`[{` + about + `},"prc","ses",{"instance":"ins","component":"api <&>"},"12","12","2026-11-01T01:00:00Z"]` + "\n"
	head := fmt.Sprintf(`{"engine":1,"tenant":"ten","currency":"EUR","from":"2026-11-01T00:00:00Z",`+
		`"to":"2026-11-02T00:00:00Z","prices":"%s","input":"%s"}`, sum(book), sum(input))
	free := fmt.Sprintf(`{"key":"%s",%s,"quantity":"7","billed":"7","exact":"0","amount":"0","shares":[`+
		`{"volume":"vol","quantity":"7","billed":"7","amount":"0"}]}`,
		sum("prj\x00tokens\x00token\x00\x00\x00\x00")[:32], about)
	paid := fmt.Sprintf(`{"key":"%s",%s,"price":"prc","quantity":"12","billed":"12","exact":"34","amount":"34",`+
		`"shares":[{"instance":"ins","component":"api <&>","quantity":"12","billed":"12","amount":"34"}]}`,
		sum("prj\x00tokens\x00token\x00\x00\x00\x00prc")[:32], about)
	require.Equal(t, []string{head, free, paid, ""}, strings.Split(string(result.Bytes()), "\n"))
	require.Equal(t, sum(string(result.Bytes())), result.Digest())
	require.Equal(t, paid, string(result.Lines[1].JSON()))
}

func TestLinesAreInTheOrderOfWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	var want []rating.Heading
	for _, project := range []string{"a", "b"} { // each field after the one before it
		for _, meter := range []string{"a", "b"} {
			for _, sku := range []string{"", "b"} {
				for _, region := range []string{"", "b"} {
					for _, unit := range []string{"a", "b"} {
						for _, borne := range []string{"", "b"} {
							want = append(want, rating.Heading{Project: project, Meter: meter, SKU: sku,
								Region: region, Unit: unit, Borne: borne})
						}
					}
				}
			}
		}
	}
	e := engine(t)
	for i := range want {
		r := tokens("u", "1", 0, 0)
		h := want[(i*37)%len(want)] // in a mixed order: 37 and the 64 have no factor in common
		r.Project, r.Meter, r.SKU, r.Region, r.Unit, r.Borne = h.Project, h.Meter, h.SKU, h.Region, h.Unit, h.Borne
		e.Add(&r)
	}
	var got []rating.Heading
	keys := map[string]bool{}
	for _, line := range e.Result().Lines {
		got = append(got, line.Heading)
		keys[line.Key] = true
		require.Len(t, line.Key, 32, "the half of a SHA-256 in hex")
	}
	require.Equal(t, want, got)
	require.Len(t, keys, len(want), "each has a key of its own")
}

func TestPricesHaveOneHashWhateverTheirOrderAndTimeZone(t *testing.T) {
	t.Parallel()
	a, b := euros("a", "1"), euros("b", "2")
	elsewhere := a
	elsewhere.From = a.From.In(time.FixedZone("CET", 3600))
	prices := []rating.Price{b, elsewhere}
	require.Equal(t, rating.HashPrices([]rating.Price{a, b}), rating.HashPrices(prices))
	require.Equal(t, []rating.Price{b, elsewhere}, prices, "the caller's own order stays")
	require.NotEqual(t, rating.HashPrices([]rating.Price{a}), rating.HashPrices([]rating.Price{a, b}))
}

// A cent that shares have an equal right to must not move from one to another when the program changes: a use without a
// volume keeps the place that it had before there were volumes.
func TestSharesAreInTheOrderOfTheirUseAndTheFirstGetsTheOddCent(t *testing.T) {
	t.Parallel()
	want := []rating.Use{{Allocation: "a"}, {Member: "a"}, {Operation: "a"}, {Instance: "a"}, {Component: "a"},
		{Component: "a", Volume: "v1"}, {Component: "a", Volume: "v2"}, {Component: "b"}}
	e := engine(t, euros("prc", "0.00375"))
	for i := range want {
		r := tokens("u", "1", 0, 0)
		r.Use = want[(i*5)%len(want)]
		e.Add(&r)
	}
	lines := e.Result().Lines
	require.Len(t, lines, 1)
	require.Equal(t, []string{"0.03", "0.03"}, []string{lines[0].Exact.String(), lines[0].Amount.String()})
	for i, share := range lines[0].Shares {
		require.Equal(t, want[i], share.Use)
		require.Equal(t, map[bool]string{true: "0.01", false: "0"}[i < 3], share.Amount.String(), "%d", i)
	}
	require.Equal(t, []int{0, -1, 1}, []int{want[5].Compare(want[5]), want[5].Compare(want[6]),
		want[5].Compare(want[4])})
}

func TestAShareOfMoreThanIsTakenBackGetsNothing(t *testing.T) {
	t.Parallel()
	used, back := tokens("u", "10", 0, 0), tokens("r", "-3", 0, 0)
	used.Member, back.Member = "a", "b"
	result, err := engine(t, euros("prc", "1")).Rate([]rating.Record{used, back})
	require.NoError(t, err)
	shares := result.Lines[0].Shares
	require.Equal(t, []string{"7", "7", "0"}, []string{result.Lines[0].Amount.String(), shares[0].Amount.String(),
		shares[1].Amount.String()})
	require.Equal(t, money.Must("-3").String(), shares[1].Quantity.String(), "though its usage is shown")
}

func TestAnAmountIsRoundedOnceToTheUnitOfItsCurrency(t *testing.T) {
	t.Parallel()
	for currency, want := range map[string]string{"JPY": "2", "EUR": "2.34", "KWD": "2.345"} {
		p := euros("prc", "7.0349")
		p.Currency, p.Per = currency, money.Int(3)
		e, err := rating.New(rating.Engine{Tenant: "ten", Currency: currency, From: day, To: day.Add(time.Hour),
			Prices: []rating.Price{p}})
		require.NoError(t, err)
		result, err := e.Rate([]rating.Record{tokens("u", "1", 0, 0)})
		require.NoError(t, err)
		require.Equal(t, []string{"2.344966666667", want}, []string{result.Lines[0].Exact.String(),
			result.Lines[0].Amount.String()}, currency)
	}
}
