package tx

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// off is a clock whose database is ahead of it.
func off(by time.Duration) *clock {
	c := newClock(func() time.Time { return time.Now() })
	c.base = c.base.Add(-time.Minute) // it has run for a minute
	c.read(by, 0)
	return c
}

// read takes a reading of a database that is ahead, after a round trip.
func (c *clock) read(by, took time.Duration) {
	after := c.elapsed()
	c.observe(time.Now().Round(0).Add(by), after-took, after)
}

func TestTheDatabasesTimeIsKeptAndNeverAhead(t *testing.T) {
	t.Parallel()
	c := off(time.Hour)
	late := func(by time.Duration) time.Duration { return time.Now().Add(by).Sub(c.now()) }
	require.InDelta(t, 0, late(time.Hour), float64(50*time.Millisecond))

	c.read(time.Hour, 10*time.Second) // the process was halted while it read
	require.InDelta(t, 0, late(time.Hour), float64(50*time.Millisecond), "a loose reading says nothing new")

	c.read(-time.Hour, time.Millisecond) // another server answers
	require.InDelta(t, 0, late(-time.Hour), float64(50*time.Millisecond), "a clock that was set is followed")
}

func TestAClockThatIsOffIsFoundAndAHaltIsNot(t *testing.T) {
	t.Parallel()
	require.NoError(t, off(0).off())
	require.NoError(t, off(maxSkew-100*time.Millisecond).off())
	require.ErrorContains(t, off(3*time.Second).off(), "behind the database's")
	ahead := off(-3 * time.Second)
	require.ErrorIs(t, ahead.off(), ErrSkew)
	require.ErrorContains(t, ahead.off(), "ahead of")
	require.ErrorContains(t, ahead.off(), "NTP")

	halted := newClock(time.Now)
	halted.base = halted.base.Add(-time.Minute)
	after := halted.elapsed()
	halted.observe(time.Now().Round(0).Add(-30*time.Second), after-30*time.Second, after)
	require.NoError(t, halted.off(), "the answer is as old as the halt was long")
}

// Nothing listens at the database's address.
func TestAClockThatIsOffIsFoundWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	away, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=1")
	require.NoError(t, err)
	t.Cleanup(away.Close)
	db := &DB{lease: &pool{Pool: away}, clock: off(0)}
	db.clock.look()
	require.NoError(t, db.clock.off(), "two clocks run apart by little in a minute")
	db.clock.own = func() time.Time { return time.Now().Add(time.Hour) }
	require.ErrorIs(t, db.KeepTime(t.Context()), ErrSkew)
}
