package files

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATenantLeavesPlacesForOthers(t *testing.T) {
	t.Parallel()
	s := &share{}
	all := func(tenant string) (leaves []func()) {
		for {
			leave, _, ok := s.take(tenant, MaxRequests)
			if !ok {
				return leaves
			}
			leaves = append(leaves, leave)
		}
	}
	first := all("a")
	require.Len(t, first, MaxRequests/2, "alone it has half")
	_, others, _ := s.take("a", MaxRequests)
	require.True(t, others, "what is free is for others")
	second := all("b")
	require.Len(t, second, MaxRequests/4)
	third := all("c")
	require.Len(t, third, MaxRequests/8)
	for _, leave := range first {
		leave()
		leave()
	}
	require.Len(t, all("d"), (MaxRequests-MaxRequests/4-MaxRequests/8)/2,
		"a place that is given back twice is one place")
	for _, leave := range append(second, third...) {
		leave()
	}
	full := &share{}
	_, _, ok := full.take("a", 1)
	require.True(t, ok)
	_, others, ok = full.take("b", 1)
	require.False(t, ok || others, "none is free at all")
}
