package bulkhead_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/workers/bulkhead"
)

// held is the nth operation of a tenant, on an adapter.
func held(tenant, adapter string, n int) *queue.Held {
	return &queue.Held{Operation: &db.Operation{ID: ids.ID(fmt.Sprint(tenant, n)), TenantID: ids.ID(tenant),
		AdapterName: adapter, ClaimEpoch: 1}}
}

func TestATenantLeavesAQuarterOfTheSlotsToOthers(t *testing.T) {
	t.Parallel()
	slots := bulkhead.NewSlots(4, func() {})
	for n := range 2 {
		require.True(t, slots.Take(held("a", "x", n)))
	}
	room, full := slots.Room()
	require.Equal(t, 2, room)
	require.Empty(t, full.Tenants)
	last := held("a", "x", 2)
	require.True(t, slots.Take(last))
	require.False(t, slots.Take(held("a", "x", 2)), "it is in hand")
	room, full = slots.Room()
	require.Equal(t, 1, room)
	require.Equal(t, bulkhead.Full{Tenants: []string{"a"}}, full)
	slots.Give(last)
	_, full = slots.Room()
	require.Empty(t, full.Tenants)
	require.ElementsMatch(t, []string{"a0", "a1"}, slots.InHand())
}

func TestCallsThatTakeLongGiveTheirSlotsBackAndFillTheirAdapter(t *testing.T) {
	t.Parallel()
	poked := make(chan struct{}, 8)
	slots := bulkhead.NewSlots(4, func() { poked <- struct{}{} })
	var done []func()
	for n := range 4 {
		one := held(fmt.Sprint("tenant", n), "slow", 0)
		require.True(t, slots.Take(one))
		done = append(done, slots.Calling(one))
	}
	room, _ := slots.Room()
	require.Zero(t, room, "for a moment they have all")
	require.Eventually(t, func() bool {
		room, full := slots.Room()
		return room == 4 && len(full.Adapters) == 1 && full.Adapters[0] == "slow"
	}, 10*time.Second, time.Millisecond)
	<-poked
	for _, end := range done {
		end()
	}
	room, full := slots.Room()
	require.Zero(t, room, "the steps go on")
	require.Empty(t, full.Adapters)
}

// A call that ends in the moment in which it becomes a long one leaves nothing behind.
func TestACallThatEndsAsItsSlotIsGivenBackTakesItAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := bulkhead.NewSlots(1, func() {})
		one := held("a", "x", 0)
		require.True(t, slots.Take(one))
		for range 2_000 {
			timer := time.NewTimer(250 * time.Millisecond)
			done := slots.Calling(one)
			<-timer.C
			done()
			synctest.Wait()
			room, full := slots.Room()
			require.Zero(t, room)
			require.Empty(t, full.Adapters)
		}
	})
}

func TestABreakerLetsOneProbeThroughAtATime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	breakers := &bulkhead.Breakers{Now: func() time.Time { return now }}
	silence := errors.New("cannot be reached")
	enter := func(adapter string) *bulkhead.Pass {
		t.Helper()
		pass, err := breakers.Enter(adapter)
		require.NoError(t, err)
		return pass
	}
	refused := func() {
		t.Helper()
		_, err := breakers.Enter("away")
		require.ErrorIs(t, err, silence, "it says what was met last")
	}
	late := enter("away")
	for range 3 {
		enter("away").Silent(silence)
	}
	refused()
	enter("well").Answered()
	require.Equal(t, []string{"away"}, breakers.Away())
	now = now.Add(3 * time.Second)
	probe := enter("away")
	refused()
	late.Silent(silence)
	now = now.Add(3 * time.Second)
	refused() // the probe is under way still, whatever calls from before come to
	probe.Abandoned()
	probe = enter("away") // one that was given up is followed by another
	probe.Silent(silence)
	refused()
	now = now.Add(3 * time.Second)
	enter("away").Answered()
	require.Empty(t, breakers.Away())
	enter("away").Answered()
}
