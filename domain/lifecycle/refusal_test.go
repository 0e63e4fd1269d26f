package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARefusedMoveSaysWhereItStands(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, InstanceRunning.CanMove(InstanceRunning), "the instance is RUNNING already")
	require.ErrorContains(t, InstanceStopped.CanMove(InstanceRunning),
		"the instance is STOPPED and cannot become RUNNING")
}

func TestTheListsThatAreOnlyAnsweredReadThemselvesToo(t *testing.T) {
	t.Parallel()
	list[DeadlineOutcome](t)
	list[OrphanKind](t)
	list[PlanAction](t)
	list[VerdictSource](t)
	list[VerdictOutcome](t)
}
