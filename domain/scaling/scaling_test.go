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

// Each rank's members have a higher index than those of the rank before, so that the index alone would order them the
// other way round.
func TestEachRankLeavesBeforeTheNextWhateverTheIndex(t *testing.T) {
	t.Parallel()
	ranked := []struct {
		rank   int
		member scaling.Candidate
	}{
		{0, scaling.Candidate{Status: lifecycle.MemberFailed, Health: lifecycle.HealthHealthy}},
		{1, scaling.Candidate{Status: lifecycle.MemberRemoving, Cordoned: true}},
		{1, scaling.Candidate{Status: lifecycle.MemberJoining, Health: lifecycle.HealthUnhealthy}},
		{1, scaling.Candidate{Status: lifecycle.MemberPending}},
		{2, scaling.Candidate{Status: lifecycle.MemberDrained, Cordoned: true}},
		{3, scaling.Candidate{Status: lifecycle.MemberActive, Cordoned: true, Health: lifecycle.HealthUnhealthy}},
		{3, scaling.Candidate{Status: lifecycle.MemberDraining}},
		{4, scaling.Candidate{Status: lifecycle.MemberActive, Health: lifecycle.HealthUnhealthy}},
		{5, scaling.Candidate{Status: lifecycle.MemberActive, Health: lifecycle.HealthDegraded}},
		{5, scaling.Candidate{Status: lifecycle.MemberActive, Health: lifecycle.HealthUnknown}},
		{5, scaling.Candidate{Status: lifecycle.MemberActive, Health: lifecycle.HealthHealthy}},
	}
	var ranks, left []int
	var members []scaling.Candidate
	for i, one := range ranked {
		require.Equal(t, one.rank, one.member.Rank(), "%+v", one.member)
		one.member.Index = i
		members, ranks = append(members, one.member), append(ranks, one.rank)
	}
	for _, one := range scaling.Order(members, nil) {
		left = append(left, one.Rank())
	}
	require.Equal(t, ranks, left)
}
