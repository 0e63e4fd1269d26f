package nodehealth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/nodehealth"
)

func TestWhatIsNotKnownToBeGoodEnoughTakesNoNewMembers(t *testing.T) {
	t.Parallel()
	for state, effect := range map[nodehealth.State]nodehealth.Effect{
		nodehealth.Good: nodehealth.NoEffect, nodehealth.Warning: nodehealth.NoEffect,
		nodehealth.Unknown: nodehealth.NoNewMembers, nodehealth.Bad: nodehealth.NoNewMembers,
	} {
		require.Equal(t, effect, nodehealth.Condition{State: state}.Effect(), state)
	}
	require.Len(t, nodehealth.State("").Values(), 4)
	require.Len(t, nodehealth.Effect("").Values(), 2)
}

func TestAConditionKeepsItsTimeWhileItsStateStays(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := first.Add(time.Minute)
	before := nodehealth.Merge(nil, []nodehealth.Condition{
		{Name: "memory", State: nodehealth.Good, Message: "3 GiB free"},
		{Name: "disk", State: nodehealth.Bad, Message: "full"},
	}, first)
	require.Equal(t, []string{"disk", "memory"}, []string{before[0].Name, before[1].Name}, "by name")
	after := nodehealth.Merge(before, []nodehealth.Condition{
		{Name: "disk", State: nodehealth.Bad, Message: "fuller", Since: later.Add(time.Hour)},
		{Name: "memory", State: nodehealth.Warning},
	}, later)
	require.Equal(t, first, after[0].Since, "another message is no other state, and an agent's time counts for nothing")
	require.Equal(t, "fuller", after[0].Message)
	require.Equal(t, later, after[1].Since)
	require.Empty(t, nodehealth.Merge(after, nil, later), "a check that is gone is gone")
}

func TestTheWorstAndOldestComesFirst(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	found := nodehealth.Barring([]nodehealth.Condition{
		{Name: "a", State: nodehealth.Unknown, Since: at}, {Name: "b", State: nodehealth.Bad, Since: at.Add(1)},
		{Name: "c", State: nodehealth.Good, Since: at}, {Name: "d", State: nodehealth.Bad, Since: at},
	})
	require.Equal(t, []string{"d", "b", "a"}, []string{found[0].Name, found[1].Name, found[2].Name})
	require.Len(t, found, 3)
}

func TestAReportIsCheckedFieldByField(t *testing.T) {
	t.Parallel()
	good := nodehealth.Condition{Name: "check/ib-links.sh", State: nodehealth.Good}
	// An agent cuts its messages to 500 bytes, and what it has cut is taken.
	longest := nodehealth.Condition{Name: "gpu", State: nodehealth.Unknown, Message: strings.Repeat("ä", 250)}
	at, field, why, ok := nodehealth.Check([]nodehealth.Condition{good, longest})
	require.True(t, ok)
	require.Equal(t, []any{0, "", ""}, []any{at, field, why}, "a good report has nothing to point at")
	for field, bad := range map[string]nodehealth.Condition{
		"name":    {Name: "Disk", State: nodehealth.Good},
		"state":   {Name: "disk", State: "FINE"},
		"message": {Name: "disk", State: nodehealth.Good, Message: strings.Repeat("ä", 250) + "x"},
	} {
		at, path, why, ok := nodehealth.Check([]nodehealth.Condition{good, bad})
		require.False(t, ok)
		require.Equal(t, []any{1, field}, []any{at, path})
		require.NotEmpty(t, why)
	}
	_, field, why, ok = nodehealth.Check([]nodehealth.Condition{good, good})
	require.False(t, ok)
	require.Equal(t, "name check/ib-links.sh is reported twice", field+" "+why)
}
