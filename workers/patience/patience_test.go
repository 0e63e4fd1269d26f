package patience

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// moments are when operations ask next, the soonest first.
type moments []time.Duration

func (m moments) Len() int           { return len(m) }
func (m moments) Less(i, j int) bool { return m[i] < m[j] }
func (m moments) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)        { *m = append(*m, x.(time.Duration)) }
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

func TestHoweverManyWaitAnAdapterIsAskedABoundedNumberOfTimesASecond(t *testing.T) {
	t.Parallel()
	const pace = 5 * time.Second
	for _, crowd := range []int{1, 20, 1_000, 10_000} {
		// All were dispatched at once, and go on waiting for an hour.
		random := rand.New(rand.NewPCG(1, uint64(crowd)))
		pause := func() time.Duration { return pace + time.Duration(random.Int64N(int64(spread(pace, crowd))+1)) }
		asking := &moments{}
		for range crowd {
			*asking = append(*asking, pause())
		}
		heap.Init(asking)
		perMinute := make([]int, 60)
		for (*asking)[0] < time.Hour {
			perMinute[(*asking)[0]/time.Minute]++
			(*asking)[0] += pause()
			heap.Fix(asking, 0)
		}
		for minute, n := range perMinute {
			// chance adds less than a tenth
			require.LessOrEqual(t, n, askedPerSecond*60*11/10, "minute %d, %d waiting", minute, crowd)
		}
		require.Positive(t, perMinute[30]+perMinute[31], "%d waiting: nobody is forgotten", crowd)
	}
}

func TestAnAdapterIsWaitedForAsLongAsItMostlyEndsSuchAtOnce(t *testing.T) {
	t.Parallel()
	h := &Habits{}
	create, remove := habit{"a", lifecycle.InstanceCreate}, habit{"a", lifecycle.MemberRemove}
	require.Equal(t, Quick, h.of(create), "nothing is known of it")
	for range 50 {
		h.learn(create, false)
	}
	require.Zero(t, h.of(create))
	require.Equal(t, Quick, h.of(remove), "another kind is another habit")
	for range 10 {
		h.learn(create, true)
	}
	require.Equal(t, Quick, h.of(create), "it has become quick again")
	for n := range 3 * maxHabits {
		h.learn(habit{time.Duration(n).String(), lifecycle.InstanceCreate}, true)
	}
	require.LessOrEqual(t, len(h.share), maxHabits)
}
