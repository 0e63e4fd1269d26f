package scaling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/scaling"
)

var present = []scaling.Candidate{
	{ID: "mem_0", Index: 0, Status: lifecycle.MemberActive, Health: lifecycle.HealthHealthy},
	{ID: "mem_1", Index: 1, Status: lifecycle.MemberActive, Health: lifecycle.HealthUnhealthy},
	{ID: "mem_2", Index: 2, Status: lifecycle.MemberFailed},
	{ID: "mem_3", Index: 3, Status: lifecycle.MemberActive, Health: lifecycle.HealthHealthy, Cordoned: true},
	{ID: "mem_4", Index: 4, Status: lifecycle.MemberDrained, Cordoned: true},
	{ID: "mem_5", Index: 5, Status: lifecycle.MemberJoining},
	{ID: "mem_6", Index: 6, Status: lifecycle.MemberActive, Health: lifecycle.HealthUnknown},
	{ID: "mem_7", Index: 7, Status: lifecycle.MemberDraining},
	{ID: "mem_8", Index: 8, Status: lifecycle.MemberRemoving},
	{ID: "mem_9", Index: 9, Status: lifecycle.MemberPending},
	{ID: "mem_a", Index: 10, Status: lifecycle.MemberActive, Health: lifecycle.HealthDegraded},
}

func order(preferred ...ids.ID) (list []ids.ID) {
	for _, one := range scaling.Order(present, preferred) {
		list = append(list, one.ID)
	}
	return list
}

func TestWhatServesNobodyLeavesFirstThenTheHighestIndex(t *testing.T) {
	t.Parallel()
	require.Equal(t, []ids.ID{"mem_2", "mem_9", "mem_8", "mem_5", "mem_4", "mem_7", "mem_3", "mem_1", "mem_a", "mem_6",
		"mem_0"},
		order())
	require.Equal(t, ids.ID("mem_0"), present[0].ID, "the list that was given stays as it is")
}

func TestAnAdaptersChoiceComesFirstAndTheRuleFillsUp(t *testing.T) {
	t.Parallel()
	require.Equal(t, []ids.ID{"mem_0", "mem_6", "mem_2", "mem_9"}, order("mem_0", "mem_unknown", "mem_6")[:4])
}
