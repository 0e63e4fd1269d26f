package task_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// wakened reports whether the waiter was woken since it was last read. In the process of the writer wake-ups come
// with the commit.
func wakened(waiter *event.Waiter) bool {
	select {
	case <-waiter.C:
		return true
	default:
		return false
	}
}

func TestAReportWakesItsTaskAndTheQueueEachOnTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made, other := b.ask("k"), b.ask("other")
	ofTask, ofOther := b.Hub.Wait(event.TaskTopic(made.ID)), b.Hub.Wait(event.TaskTopic(other.ID))
	queue := b.Hub.Wait(event.QueueTopic)
	for _, waiter := range []*event.Waiter{ofTask, ofOther, queue} {
		defer waiter.Close()
		wakened(waiter) // what the tasks' own making woke
	}

	_, err := b.report(made.ID, lifecycle.TaskRunning)
	require.NoError(t, err)
	require.True(t, wakened(ofTask), "its state has changed")
	require.False(t, wakened(queue), "its operation has nothing to do yet")
	_, err = b.report(made.ID, lifecycle.TaskRunning)
	require.NoError(t, err)
	require.False(t, wakened(ofTask), "progress alone wakes nobody")

	_, err = b.report(made.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	require.True(t, wakened(ofTask), "those who wait for its end")
	require.True(t, wakened(queue), "its operation is due")
	require.False(t, wakened(ofOther))

	_, err = b.report(made.ID, lifecycle.TaskFailed)
	platformtest.Refused(t, err, fault.Conflict, "")
	require.False(t, wakened(ofTask) || wakened(queue), "a report that is refused wakes nobody")
}
