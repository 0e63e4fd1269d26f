package spending_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/spending"
)

// Whatever the price, and however unlucky the moments at which usage is booked and the books are read: what is spent
// until both operations have missed their deadlines passes the amount by no more than is stated.
func TestNothingPassesABudgetByMoreThanIsStated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hourly := money.Int(rapid.Int64Range(1, 10_000).Draw(t, "hourly"))
		seconds := func(most time.Duration, name string) time.Duration {
			often := rapid.OneOf(rapid.Just(int(most/time.Second)), rapid.IntRange(0, int(most/time.Second)))
			return time.Duration(often.Draw(t, name)) * time.Second
		}
		fullAt := seconds(time.Hour, "when the amount is used up")
		amount := spending.OfHour(hourly, fullAt)
		read := seconds(spending.Every, "the first read")
		for read-seconds(spending.Behind, "how far the books are behind") < fullAt { // it sees what was used until then
			read += spending.Every
		}
		ended := read + seconds(spending.TeardownDeadline, "teardown") + seconds(spending.ReleaseDeadline, "release")
		over := spending.OfHour(hourly, ended).Sub(amount)
		stated := *spending.Decommission.Overshoot(hourly)
		rounding := money.Must("0.000002") // each amount is rounded at the sixth place
		require.LessOrEqual(t, over.Cmp(stated.Add(rounding)), 0, "%s over, %s stated", over, stated)
	})
}

func TestOnlyWhatEndsCapacityHasABound(t *testing.T) {
	t.Parallel()
	for _, goesOn := range []spending.Outcome{spending.Tell, spending.Refuse, spending.Drain} {
		require.Nil(t, goesOn.Overshoot(money.Int(6)), goesOn)
		require.NotEmpty(t, goesOn.Sentence())
	}
	require.Equal(t, "3.25", spending.Decommission.Overshoot(money.Int(6)).String())
}

// Six places tell what a second costs at a price of 1 an hour: three digits are left of it.
func TestATimeIsPricedToTheSixthPlaceHalfToEven(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		hourly string
		during time.Duration
		cost   string
	}{
		"an hour":            {"2.5", time.Hour, "2.5"},
		"rounded up":         {"1", time.Second, "0.000278"},
		"rounded down":       {"1", 12 * time.Second, "0.003333"},
		"half, down to even": {"0.0018", time.Second, "0"},
		"half, up to even":   {"0.0054", time.Second, "0.000002"},
		"whole seconds":      {"3600", 1_999 * time.Millisecond, "1"},
		"a month":            {"10000", 31 * 24 * time.Hour, "7440000"},
	} {
		require.Equal(t, one.cost, spending.OfHour(money.Must(one.hourly), one.during).String(), name)
	}
}
