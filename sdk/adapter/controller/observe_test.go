package controller_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

func TestAnInstanceIsJudgedByItsMembers(t *testing.T) {
	t.Parallel()
	const well, ill, unknown = adapter.Healthy, adapter.Unhealthy, adapter.HealthUnknown
	for _, c := range []struct {
		members []adapter.Health
		want    adapter.Health
		message string
	}{
		{nil, ill, "0 of 0 peers run"},
		{[]adapter.Health{well, well}, well, "2 of 2 peers run"},
		{[]adapter.Health{well, ill}, adapter.Degraded, "1 of 2 peers run"},
		{[]adapter.Health{well, unknown}, adapter.Degraded, "1 of 2 peers run, 1 unknown"},
		{[]adapter.Health{ill, unknown}, unknown, "0 of 2 peers run, 1 unknown"},
		{[]adapter.Health{ill, ill}, ill, "0 of 2 peers run"},
	} {
		members := make([]adapter.Member, len(c.members))
		for i := range members {
			members[i].Index = i
		}
		seen, err := controller.Observe(t.Context(), members, "peers run", func(_ context.Context,
			m adapter.Member) adapter.MemberObservation {
			return adapter.MemberObservation{Health: c.members[m.Index]}
		})
		require.NoError(t, err)
		require.Equal(t, c.want, seen.Health, c.message)
		require.Equal(t, c.message, seen.Message)
		require.Len(t, seen.Members, len(members))
	}
}

func TestCountsAreCheckedAgainstTheirBounds(t *testing.T) {
	t.Parallel()
	bounds := []adapter.Component{{Key: "peer", Min: 1, Max: 3}}
	for code, count := range map[string]adapter.ComponentCount{
		"": {Key: "peer", Count: 3}, "BELOW_MINIMUM": {Key: "peer"}, "ABOVE_MAXIMUM": {Key: "peer", Count: 4},
		"UNKNOWN_COMPONENT": {Key: "x", Count: 1},
	} {
		err := controller.CheckCounts("the app", "peers", bounds, []adapter.ComponentCount{count})
		if code == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, code+": instance.components[0].")
	}
}
