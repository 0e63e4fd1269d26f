package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheTimeFromAHintToItsNewsIsThatOfTheFirstHint(t *testing.T) {
	t.Parallel()
	began := time.Now()
	after := func(d time.Duration) time.Time { return began.Add(d) }
	var open hint
	_, news := open.looked(began, true, true)
	require.False(t, news, "without a hint")
	open.come(began)
	open.come(after(time.Second))
	for _, at := range []time.Duration{time.Millisecond, 3 * time.Second, hintLasts} {
		_, news = open.looked(after(at), false, true)
		require.False(t, news)
	}
	took, news := open.looked(after(hintLasts), true, true)
	require.True(t, news, "an older transaction may hold it back for long")
	require.Equal(t, hintLasts, took)
	_, news = open.looked(after(hintLasts), true, true)
	require.False(t, news, "it was counted")
}

func TestAHintWithoutNewsIsForgotten(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var open hint
	open.come(began)
	open.looked(began.Add(time.Millisecond), false, false)
	_, news := open.looked(began.Add(time.Second), true, false)
	require.False(t, news, "a feed that is never delayed had none at once")
	open.come(began)
	open.looked(began.Add(hintLasts+time.Millisecond), false, true)
	_, news = open.looked(began.Add(hintLasts+time.Second), true, true)
	require.False(t, news, "what comes later has a hint of its own")
}
