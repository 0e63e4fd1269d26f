package workers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestTeardownTakesThePlaceOfAnAdditionAndLeavesNothingOfIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("replaced")
	add := c.ask(asked{kind: lifecycle.MembersAdd})
	c.script.dispatched(string(add))
	c.op = l.teardown(c.launched)
	require.Equal(t, "SUPERSEDED", l.op(add).ErrorCode)
	c.says(adapter.StateSucceeded, "", "")
	op := c.end()
	require.Equal(t, "SUCCEEDED NORMAL | REMOVED REMOVED REMOVED | 0 of 3 | theirs ready free released | generation "+
		"1 1.0.0 | orphans 0", c.world(), op.ErrorMessage)
	c.script.with(func() { require.Contains(t, c.script.cancels, string(add)) })
}

func TestATeardownThatFailsOnASilentNodeListsWhatItMayHaveLeft(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("unheard")
	c.silence()
	c.ask(asked{kind: lifecycle.InstanceDecommission, deadline: 2 * time.Second})
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	op := c.end()
	require.Equal(t, lifecycle.OperationFailed, op.State, op.ErrorMessage)
	left := c.orphans()
	require.Len(t, left, 1, "of the member on the silent node, and of no other")
	require.Equal(t, []any{c.members[1], c.second, c.op}, []any{*left[0].MemberID, *left[0].NodeID,
		*left[0].OperationID})
	require.Contains(t, left[0].Message, "was silent at the deadline")
	c.comesBack()
	c.resolved()
}

func TestForceWhileATeardownWaitsEndsItThoughANodeIsLost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("hurried")
	c.silence()
	c.ask(asked{kind: lifecycle.InstanceDecommission})
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	c.until("it waits for the node", func() bool {
		return strings.Contains(c.operation().Message,
			"waits for the agent of node")
	})
	err := l.db.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		_, err := operation.Hasten(ctx, t, c.operation(), "now")
		return err
	})
	require.NoError(t, err)
	op := c.end()
	require.Equal(t, []any{lifecycle.OperationSucceeded, lifecycle.OutcomeUnverified}, []any{op.State, *op.Outcome},
		op.ErrorMessage)
	require.Len(t, c.orphans(), 1, "what could not be proved is listed")
}
