package roles

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestAnInstanceIsAsWellAsTheWorstOfItsMembers(t *testing.T) {
	t.Parallel()
	active := func(health lifecycle.Health) seen { return seen{"w", lifecycle.MemberActive, health, 1} }
	for _, one := range []struct {
		want   lifecycle.Health
		counts []seen
	}{
		{lifecycle.HealthUnknown, nil},
		{lifecycle.HealthUnknown, []seen{{"w", lifecycle.MemberRemoved, lifecycle.HealthHealthy, 2}}},
		{lifecycle.HealthHealthy, []seen{active(lifecycle.HealthHealthy),
			{"w", lifecycle.MemberRemoved, lifecycle.HealthUnhealthy, 2}}},
		{lifecycle.HealthUnknown, []seen{active(lifecycle.HealthHealthy), active(lifecycle.HealthUnknown)}},
		{lifecycle.HealthDegraded, []seen{active(lifecycle.HealthUnknown), active(lifecycle.HealthDegraded),
			active(lifecycle.HealthHealthy)}},
		{lifecycle.HealthDegraded, []seen{active(lifecycle.HealthDegraded), active(lifecycle.HealthUnknown)}},
		{lifecycle.HealthUnhealthy, []seen{active(lifecycle.HealthDegraded), active(lifecycle.HealthUnhealthy)}},
		{lifecycle.HealthUnhealthy, []seen{active(lifecycle.HealthHealthy),
			{"w", lifecycle.MemberFailed, lifecycle.HealthHealthy, 1}}},
	} {
		require.Equal(t, one.want, (&Pending{counts: one.counts}).Health(), "%v", one.counts)
	}
}

func TestMembersThatJoinAreCountedAsActive(t *testing.T) {
	t.Parallel()
	p := &Pending{stored: []byte(`[{"componentKey":"w","displayName":"Workers","desired":3}]`), counts: []seen{
		{"w", lifecycle.MemberActive, lifecycle.HealthHealthy, 1},
		{"w", lifecycle.MemberJoining, lifecycle.HealthUnknown, 2}}}
	p.Joined()
	counts, err := p.Roles()
	require.NoError(t, err)
	require.JSONEq(t,
		`[{"componentKey":"w","displayName":"Workers","desired":3,"current":3,"healthy":1,"summary":"3 of 3 active"}]`,
		string(counts))
}
