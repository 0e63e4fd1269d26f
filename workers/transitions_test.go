package workers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// ways are how a worker comes to each move that ends an operation or turns it back.
var ways = map[transition]func(c *cluster) ids.ID{
	{lifecycle.OperationRunning, lifecycle.OperationSucceeded}: func(c *cluster) ids.ID {
		return c.goes(lifecycle.MemberCordon, adapter.StateSucceeded)
	},
	{lifecycle.OperationRunning, lifecycle.OperationFailed}: func(c *cluster) ids.ID {
		return c.goes(lifecycle.InstanceDecommission, adapter.StateFailed)
	},
	{lifecycle.OperationRunning, lifecycle.OperationCompensating}: func(c *cluster) ids.ID {
		return c.goes(lifecycle.MembersAdd, adapter.StateFailed)
	},
	{lifecycle.OperationCompensating, lifecycle.OperationFailed}: func(c *cluster) ids.ID {
		return c.goes(lifecycle.MembersAdd, adapter.StateFailed)
	},
	{lifecycle.OperationCanceling, lifecycle.OperationCanceled}: func(c *cluster) ids.ID {
		return c.stops(lifecycle.MemberCordon)
	},
	{lifecycle.OperationCanceling, lifecycle.OperationCompensating}: func(c *cluster) ids.ID {
		return c.stops(lifecycle.MembersAdd)
	},
	{lifecycle.OperationCompensating, lifecycle.OperationCanceled}: func(c *cluster) ids.ID {
		return c.stops(lifecycle.MembersAdd)
	},
	{lifecycle.OperationCanceling, lifecycle.OperationFailed}: func(c *cluster) ids.ID {
		s := c.lab.script("another")
		it := c.launch(c.lab.world("another", s.url), time.Minute)
		s.with(func() {
			s.onCancel = func(id string) adapter.CancelResult {
				s.sayLocked(failedStatus(id))
				return adapter.CancelResult{Outcome: adapter.CancelUnknown, Message: "asked to stop"}
			}
		})
		s.dispatched(string(it.create))
		c.lab.stop(it)
		return it.create
	},
}

// elsewhere are moves that no worker makes.
var elsewhere = map[transition]string{
	{lifecycle.OperationPending, lifecycle.OperationFailed}:   "break-glass ends what no worker has claimed",
	{lifecycle.OperationPending, lifecycle.OperationCanceled}: "the verb that cancels, in its own transaction",
	{lifecycle.OperationCanceling,
		lifecycle.OperationSucceeded}: "whoever asks to stop has an answer first, so that it is RUNNING again",
}

// goes has the adapter end an operation of a kind.
func (c *cluster) goes(kind lifecycle.OperationKind, how adapter.State) ids.ID {
	c.Helper()
	c.ask(asked{kind: kind})
	c.says(how, "", "")
	return c.op
}

// stops cancels an operation of a kind while the adapter works on it.
func (c *cluster) stops(kind lifecycle.OperationKind) ids.ID {
	c.Helper()
	c.ask(asked{kind: kind})
	c.script.dispatched(string(c.op))
	c.cancel()
	return c.op
}

func TestEveryMoveThatEndsOrTurnsBackIsTripped(t *testing.T) {
	t.Parallel()
	for _, move := range endingMoves() {
		if _, not := elsewhere[move]; not {
			require.NotContains(t, ways, move)
			continue
		}
		way := ways[move]
		require.NotNil(t, way, "%s to %s: say how a worker comes there, or who else does", move.from, move.to)
		t.Run(string(move.from)+" to "+string(move.to), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.work()
			c := l.cluster("tripped")
			c.trips(2)
			op := l.ended(way(c))
			require.GreaterOrEqual(t, l.tripped(move), 3, "two were refused")
			require.NotEqual(t, "END_REFUSED", op.ErrorCode)
			if op.State.Terminal() && move.to.Terminal() {
				require.Equal(t, move.to, op.State)
			}
			c.none(`SELECT name FROM operation_step WHERE state IN ('PENDING', 'RUNNING', 'UNDOING')
				AND operation_id = '` +
				string(op.ID) + `'`)
		})
	}
}
