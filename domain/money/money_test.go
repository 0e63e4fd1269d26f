package money_test

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/money"
)

func TestNumbersAreReadAndWrittenInOneForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"0": "0", "-0": "0", "1.50": "1.5", "100": "100",
		"-0.000000000001":                         "-0.000000000001",
		"99999999999999999999999999.999999999999": "99999999999999999999999999.999999999999"} {
		read, err := money.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, read.String())
		encoded, err := json.Marshal(read)
		require.NoError(t, err)
		var back money.Decimal
		require.NoError(t, json.Unmarshal(encoded, &back))
		require.Zero(t, back.Cmp(read))
	}
	for _, text := range []string{"", "1e3", "01", ".5", "5.", "+1", "0x1", "NaN", "Infinity", "1,5", " 1",
		"0.0000000000001",
		strings.Repeat("9", 27)} {
		_, err := money.Parse(text)
		require.True(t, fault.Is(err, fault.InvalidArgument), text)
		var back money.Decimal
		require.Error(t, json.Unmarshal([]byte(strconv.Quote(text)), &back), text)
	}
	var back money.Decimal
	require.Error(t, json.Unmarshal([]byte("1.5"), &back), "a JSON number is not exact to every reader")
	require.ErrorContains(t, back.UnmarshalGQL(1.5), "must be a string", "1.5 itself would be right in quotes")
	require.True(t, fault.Is(back.UnmarshalGQL("1,5"), fault.InvalidArgument))
	require.NoError(t, back.UnmarshalGQL("1.5"))
	var out strings.Builder
	back.MarshalGQL(&out)
	require.Equal(t, `"1.5"`, out.String())
	require.Panics(t, func() { money.Must("x") })
}

func TestHalvesGoToEven(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"0.5": "0", "1.5": "2", "2.5": "2", "-0.5": "0", "-1.5": "-2", "-2.5": "-2",
		"2.51":  "3",
		"-2.51": "-3", "2.49": "2"} {
		require.Equal(t, want, money.Must(in).Round(0).String(), in)
	}
	require.Equal(t, "0.12", money.Must("0.125").Round(2).String())
	require.Equal(t, "0.333333333333", money.Int(1).Quotient(money.Int(3), money.Scale).String())
	require.Equal(t, "-0.67", money.Int(-2).Quotient(money.Int(3), 2).String())
	require.Equal(t, "0.67", money.Int(-2).Quotient(money.Int(-3), 2).String())
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	a, b := money.Must("1.25"), money.Must("-0.5")
	require.Equal(t, []string{"0.75", "1.75", "-0.625", "-1.25"},
		[]string{a.Add(b).String(), a.Sub(b).String(), a.Mul(b).String(), a.Neg().String()})
	require.Equal(t, []string{"-0.5", "1.25"}, []string{a.Min(b).String(), b.Max(a).String()})
	require.Equal(t, []string{"120", "60", "0", "-60"}, []string{money.Int(61).CeilTo(money.Int(60)).String(),
		money.Int(60).CeilTo(money.Int(60)).String(), money.Int(0).CeilTo(money.Int(60)).String(),
		money.Int(-119).CeilTo(money.Int(60)).String()})
	require.Equal(t, "3.333333333333", money.Int(10).Part(1, 3).String())
	require.Equal(t, "-3.333333333333", money.Int(-10).Part(1, 3).String())
}

func TestAFixedNumberHasADigitBeforeThePointAndNoMinusBeforeZero(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		places int32
		want   string
	}{
		{"0", 2, "0.00"}, {"-0", 2, "0.00"}, {"0.01", 2, "0.01"}, {"-0.01", 2, "-0.01"}, {"0.12", 2, "0.12"},
		{"-1.5", 2, "-1.50"}, {"123.4", 2, "123.40"}, {"7", 0, "7"}, {"-7", 0, "-7"}, {"0", 0, "0"},
	} {
		require.Equal(t, c.want, money.Must(c.text).Fixed(c.places), c.text)
	}
	require.Panics(t, func() { money.Must("1.234").Fixed(2) }, "rounding has names of its own")
}

// A product of two stored numbers has 76 digits, and a sum of 10^20 of them 96. An operation that cannot be exact
// panics: a wrong amount would be paid.
func TestAnOperationIsExactTo120DigitsAndRefusedBeyond(t *testing.T) {
	t.Parallel()
	most := money.Must(strings.Repeat("9", 26) + "." + strings.Repeat("9", 12)) // 38 digits
	cube := most.Mul(most).Mul(most)                                            // 114 digits, the last a 9
	longest := cube.Mul(money.Int(999_999))
	digits := strings.NewReplacer(".", "").Replace(longest.String())
	require.Len(t, digits, 120)
	nines, _ := new(big.Int).SetString(strings.Repeat("9", 38), 10)
	want := new(big.Int).Exp(nines, big.NewInt(3), nil)
	require.Equal(t, want.Mul(want, big.NewInt(999_999)).String(), digits)
	require.Panics(t, func() { cube.Mul(money.Int(9_999_999)) }, "121 digits")
}

func TestNumbersInTensAreDividedAsWrittenOut(t *testing.T) {
	t.Parallel()
	hundreds, thousands := money.Shift(7, -2), money.Shift(2, -3)
	require.Equal(t, "700", hundreds.String())
	require.Equal(t, "0.35", hundreds.Quotient(thousands, 2).String())
	require.Equal(t, "2.86", thousands.Quotient(hundreds, 2).String())
	require.Equal(t, "2000", hundreds.CeilTo(thousands).String())
	require.Equal(t, "700.0", hundreds.Fixed(1))
}

func TestMinorUnits(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int32{"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3, "CLF": 4, "ISK": 0, "TND": 3} {
		places, err := money.Minor(code)
		require.NoError(t, err)
		require.Equal(t, want, places, code)
	}
	for _, code := range []string{"", "eur", "XAU", "XTS", "ABC"} {
		_, err := money.Minor(code)
		require.True(t, fault.Is(err, fault.InvalidArgument), code)
	}
}

func TestSharesSumToTheTotalAndTiesGoByID(t *testing.T) {
	t.Parallel()
	texts := func(of []money.Decimal) (out []string) {
		for _, one := range of {
			out = append(out, one.String())
		}
		return out
	}
	even := []money.Share{{ID: "b", Weight: money.Int(1)}, {ID: "a", Weight: money.Int(1)},
		{ID: "c", Weight: money.Int(1)}}
	require.Equal(t, []string{"0.33", "0.34", "0.33"}, texts(money.Shares(money.Int(1), 2, even)))
	require.Equal(t, []string{"-0.33", "-0.34", "-0.33"}, texts(money.Shares(money.Int(-1), 2, even)))
	require.Equal(t, []string{"0", "1"}, texts(money.Shares(money.Int(1), 0, []money.Share{{ID: "b"}, {ID: "a"}})),
		"without weights all are equal")
	require.Empty(t, money.Shares(money.Int(1), 2, nil))
	require.Equal(t, []string{"0.33", "0.67"}, texts(money.Shares(money.Int(1), 2,
		[]money.Share{{ID: "a", Weight: money.Int(1)}, {ID: "b", Weight: money.Int(2)}})),
		"of 33.3 and 66.7 units the second is nearer to one more, though its id is the greater")
	require.Equal(t, []string{"0", "0", "0"}, texts(money.Shares(money.Int(0), 2, even)))
	rapid.Check(t, func(t *rapid.T) {
		places := int32(rapid.IntRange(0, 4).Draw(t, "places"))
		total := money.Shift(rapid.Int64Range(-1_000_000, 1_000_000).Draw(t, "total"), places)
		var shares []money.Share
		for i := range rapid.IntRange(1, 12).Draw(t, "n") {
			shares = append(shares, money.Share{ID: strconv.Itoa(i),
				Weight: money.Shift(rapid.Int64Range(0, 9_999).Draw(t, "weight"), int32(i%5))})
		}
		var sum money.Decimal
		for i, part := range money.Shares(total, places, shares) {
			sum = sum.Add(part)
			require.LessOrEqual(t, abs(part).Cmp(abs(total)), 0, i)
		}
		require.Zero(t, sum.Cmp(total))
	})
}

func abs(d money.Decimal) money.Decimal { return d.Max(d.Neg()) }

func TestRoundingEqualsTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.Int64().Draw(t, "n"), rapid.Int64Range(1, 1<<40).Draw(t, "m")
		got := money.Int(n).Quotient(money.Int(m), 3)
		exact, half := new(big.Rat).SetFrac64(n, m), big.NewRat(1, 2000)
		read, _ := new(big.Rat).SetString(got.String())
		apart := new(big.Rat).Sub(exact, read)
		require.LessOrEqual(t, apart.Abs(apart).Cmp(half), 0)
	})
}

func TestADecimalIsScannedAndSentAsTheDatabaseHasIt(t *testing.T) {
	t.Parallel()
	for column, want := range map[string]string{"1.500000000000": "1.5", "-3.000": "-3", "100": "100",
		"0.000000000000": "0"} {
		var got money.Decimal
		require.NoError(t, got.Scan(column))
		require.Equal(t, money.Must(want), got, "in its one form")
		sent, err := got.Value()
		require.NoError(t, err)
		require.Equal(t, want, sent)
	}
	var none money.Decimal
	require.EqualError(t, none.Scan(nil), "money: a column is <nil>, and not a number", "NULL is not 0")
	require.Error(t, none.Scan("NaN"))
}
