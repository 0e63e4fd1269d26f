package gather

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Elements whose callers have given up are skipped: after a time without an answer, callers that still wait come first.
func TestNobodyIsServedWhoHasGivenUp(t *testing.T) {
	t.Parallel()
	const most = 32
	g := New(most, 1, func([]int) {}, func(n int) bool { return n < 0 })
	g.leading = 1
	var there []int
	for n := range most + 3 {
		there = append(there, n)
		g.Add(-1)
		g.Add(n)
	}
	require.Equal(t, 2*len(there), g.Waiting())
	require.Equal(t, there[:most], g.next())
	require.Equal(t, there[most:], g.next())
	require.Equal(t, 1, g.leading)
	require.Nil(t, g.next())
	require.Zero(t, g.Waiting())
	require.Zero(t, g.leading, "who comes next leads")
}

// Each element is served once. Neither the batches nor the number of calls at once exceed their bounds.
func TestEachIsServedOnceWithinTheBounds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all sync.WaitGroup
	served, under, widest, largest := map[int]int{}, 0, 0, 0
	g := New(4, 2, func(some []int) {
		mu.Lock()
		under++
		widest, largest = max(widest, under), max(largest, len(some))
		for _, n := range some {
			served[n]++
		}
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		under--
		mu.Unlock()
		for range some {
			all.Done()
		}
	}, nil)
	for n := range 200 {
		all.Add(1)
		go g.Add(n)
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, served, 200)
	require.LessOrEqual(t, widest, 2)
	require.LessOrEqual(t, largest, 4)
	for n, times := range served {
		require.Equal(t, 1, times, "%d", n)
	}
}
