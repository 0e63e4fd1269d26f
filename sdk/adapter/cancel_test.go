package adapter

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func (l *lab) cancel(base, id string) CancelResult {
	l.t.Helper()
	code, body := l.call(base, http.MethodPost, CancelPath(id), CancelRequest{Attempt: 1})
	require.Equal(l.t, http.StatusOK, code, "body: %s", body)
	var result CancelResult
	require.NoError(l.t, json.Unmarshal(body, &result))
	require.NotEmpty(l.t, result.Message)
	return result
}

func TestCancelStopsARunAndUndoesIt(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("second")
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.eventually(base, "op_1", "in second", func(s Status) bool { return s.Phase == "second" })
	require.Equal(t, CancelDone, l.cancel(base, "op_1").Outcome)
	status := l.ends(base, "op_1", StateCanceled)
	require.Equal(t, CodeCanceled, status.Error.Code)
	require.Contains(t, l.steps(), "undo")
	require.NotContains(t, l.steps(), "third")
	require.Equal(t, CancelDone, l.cancel(base, "op_1").Outcome, "a repeat is answered the same")
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusOK)
}

func TestCancelAfterThePointOfNoReturnIsTooLate(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("committed")
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	require.Eventually(t, func() bool {
		steps := l.steps()
		return len(steps) > 0 && steps[len(steps)-1] == "committed"
	}, patience, tick)
	require.Equal(t, CancelTooLate, l.cancel(base, "op_1").Outcome)
	l.release("committed")
	l.ends(base, "op_1", StateSucceeded)
	require.Equal(t, CancelTooLate, l.cancel(base, "op_1").Outcome)
}

func TestCancelOfAnUnknownOperationSaysSo(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	require.Equal(t, CancelUnknown, l.cancel(base, "op_1").Outcome)
}

func TestALateDispatchMeetsTheTombstoneOfItsCancel(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	config := l.config(t.TempDir(), demoApp())
	base, kit := startKit(t, l, config)
	for range 2 {
		require.True(t, l.cancel(base, "op_1").Tombstone, "a repeat is answered the same")
		require.True(t, l.cancel(base, "op_2").Tombstone)
	}
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusOK)
	require.Equal(t, CodeCanceled, l.ends(base, "op_1", StateCanceled).Error.Code)
	require.Equal(t, CancelDone, l.cancel(base, "op_1").Outcome, "it is known now, and canceled")

	kit.Stop()
	base, _ = startKit(t, l, config)
	l.ends(base, "op_1", StateCanceled)
	l.dispatch(base, l.dispatchOf("op_2", InstanceCreate), http.StatusOK) // tombstones are on disk
	l.ends(base, "op_2", StateCanceled)
	require.Empty(t, l.steps(), "nothing of either was begun")

	require.Equal(t, CancelUnknown, l.cancel(base, "op_3").Outcome)
	again := l.dispatchOf("op_3", InstanceCreate)
	again.Attempt = 2
	l.dispatch(base, again, http.StatusAccepted)
	l.ends(base, "op_3", StateSucceeded) // a higher attempt was dispatched on purpose
}

func TestCancelOfAWaitingOperationNeedsNoSlot(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	config := l.config(t.TempDir(), demoApp())
	config.MaxRunning = 1
	base, _ := startKit(t, l, config)
	l.hold("second")
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.eventually(base, "op_1", "in second", func(s Status) bool { return s.Phase == "second" })
	l.dispatch(base, l.dispatchOf("op_2", InstanceCreate), http.StatusAccepted)
	require.Equal(t, CancelDone, l.cancel(base, "op_2").Outcome)
	l.release("second")
	l.ends(base, "op_1", StateSucceeded)
	require.Len(t, l.steps(), 7, "the canceled operation did nothing")
}

func TestCancelRacingWithTheEndIsEitherStoppedOrTooLate(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	for _, id := range []string{"op_1", "op_2", "op_3", "op_4", "op_5", "op_6"} {
		l.dispatch(base, l.dispatchOf(id, InstanceCreate), http.StatusAccepted)
		outcomes := make([]CancelOutcome, 3)
		var all sync.WaitGroup
		for i := range outcomes {
			all.Go(func() { outcomes[i] = l.cancel(base, id).Outcome })
		}
		all.Wait()
		status := l.eventually(base, id, "at its end", func(s Status) bool { return s.State.Terminal() })
		for _, outcome := range outcomes {
			want := CancelDone
			if status.State == StateSucceeded {
				want = CancelTooLate
			}
			require.Equal(t, want, outcome, "state %s", status.State)
		}
	}
}
