package hello

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func addOf(c *cluster, ids []string) adapter.Dispatch {
	d := c.op(adapter.MembersAdd, ids...)
	d.Change = raw(c.t, adapter.AddChange{Components: []adapter.ComponentCount{{Key: component, Count: len(ids)}}})
	return d
}

func TestClusterGrowsToEightAndEveryPeerKnowsTheOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	require.Equal(t, []string{"mem_0", "mem_1"}, c.roll("mem_0"))
	added := c.grow(6)
	status := c.succeed(addOf(c, added))
	for _, id := range added {
		require.Equal(t, adapter.MemberActive, stateOf(status, id).Status)
		require.Equal(t, adapter.Healthy, stateOf(status, id).Health)
	}
	for _, member := range c.members {
		require.Len(t, c.roll(member.ID), 8)
	}
	seen := c.observe()
	require.Equal(t, adapter.Healthy, seen.Health)
	require.Len(t, seen.Members, 8)
}

func TestCanceledAddLeavesNothingOfTheNewPeersBehind(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	added := c.grow(2)
	c.p.Away(added[1])
	d := addOf(c, added)
	c.p.Dispatch(c.base, d)
	c.await(d, "half way", func(s adapter.Status) bool { return stateOf(s, added[0]).Status == adapter.MemberActive })
	result := c.cancel(d)
	require.NotEqual(t, adapter.CancelTooLate, result.Outcome)
	status := c.await(d, "canceled", func(s adapter.Status) bool { return s.State == adapter.StateCanceled })
	require.Equal(t, adapter.MemberFailed, stateOf(status, added[0]).Status)
	require.Equal(t, []string{"mem_0", "mem_1"}, c.roll("mem_0"))
	require.Len(t, c.observe().Members, 2, "what never came to be is not observed")
}

func TestRemoveWaitsForWorkAndTheOthersForget(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	id := c.work("mem_2", 3)
	d := c.op(adapter.MemberRemove, "mem_2")
	c.p.Dispatch(c.base, d)
	status := c.await(d, "waiting", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 || s.State.Terminal() })
	require.Equal(t, id, status.WaitsFor[0].ID)
	status = c.await(d, "removed", func(s adapter.Status) bool { return s.State.Terminal() })
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.Equal(t, adapter.MemberRemoved, stateOf(status, "mem_2").Status)
	require.Zero(t, evidence[struct{ WorkLeft int }](t, status, "drained").WorkLeft)
	require.Equal(t, map[string]int{"mem_2": 0}, evidence[map[string]int](t, status, "residue"))
	require.Equal(t, []string{"mem_0", "mem_1"}, c.roll("mem_0"))
	require.NoDirExists(t, c.p.Root("mem_2"))
	require.Len(t, c.observe().Members, 2)
}

func TestForcedRemoveOfAPeerThatIsAwayWaitsForNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.p.Away("mem_1")
	c.members[1].Node.Reachable = new(bool)
	d := c.op(adapter.MemberRemove, "mem_1")
	d.Force = true
	status := c.succeed(d)
	require.Equal(t, adapter.MemberRemoved, stateOf(status, "mem_1").Status)
	require.Equal(t, []string{"mem_1"}, evidence[[]string](t, status, "notTornDown"))
	require.Equal(t, []string{"peer-1"}, evidence[[]string](t, status, "notAsked"))
	require.Equal(t, []string{"mem_0"}, c.roll("mem_0"))
}

func TestForceTakesOverARemoveThatWaits(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.work("mem_1", 600)
	d := c.op(adapter.MemberRemove, "mem_1")
	c.p.Dispatch(c.base, d)
	c.await(d, "waiting", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 })
	d.Attempt, d.Force = 2, true
	status := c.succeed(d)
	require.Equal(t, 1, evidence[struct{ Total int }](t, status, "workLost").Total)
	require.Equal(t, adapter.MemberRemoved, stateOf(status, "mem_1").Status)
	require.Empty(t, status.WaitsFor)
}

func TestReplaceBringsTheNewPeerInBeforeTheOldOneGoes(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*cluster){
		"a peer that works":            func(c *cluster) { c.work("mem_0", 2) },
		"a peer whose process is dead": func(c *cluster) { c.p.KillProcess("mem_0", process) },
		"a peer whose sandbox is gone": func(c *cluster) { c.p.Destroy("mem_0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2)
			fault(c)
			fresh := c.grow(1)[0]
			d := c.op(adapter.MemberReplace, "mem_0")
			d.Instance.Components[0].Count = 2
			d.Change = raw(t, adapter.ReplaceChange{ReplacementID: fresh})
			status := c.succeed(d)
			require.Equal(t, adapter.MemberActive, stateOf(status, fresh).Status)
			require.Equal(t, adapter.MemberRemoved, stateOf(status, "mem_0").Status)
			require.Equal(t, []string{"mem_1", "mem_2"}, c.roll("mem_1"))
			require.Len(t, c.observe().Members, 2)
		})
	}
}

func TestCanceledReplaceKeepsTheOldPeerInService(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.work("mem_0", 600)
	fresh := c.grow(1)[0]
	d := c.op(adapter.MemberReplace, "mem_0")
	d.Change = raw(t, adapter.ReplaceChange{ReplacementID: fresh})
	c.p.Dispatch(c.base, d)
	c.await(d, "waiting", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 })
	c.cancel(d)
	status := c.await(d, "canceled", func(s adapter.Status) bool { return s.State == adapter.StateCanceled })
	require.Equal(t, adapter.MemberActive, stateOf(status, "mem_0").Status)
	require.Equal(t, adapter.MemberFailed, stateOf(status, fresh).Status)
	require.Equal(t, []string{"mem_0", "mem_1"}, c.roll("mem_1"))
	c.work("mem_0", 1)
}

func TestRecoverStartsAPeerThatWasLostFromTheBeginning(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.p.Destroy("mem_1")
	require.Equal(t, adapter.Degraded, c.observe().Health)
	c.members[1].Status = "failed"
	status := c.succeed(c.op(adapter.MemberRecover, "mem_1"))
	require.Equal(t, adapter.MemberActive, stateOf(status, "mem_1").Status)
	require.Equal(t, []string{"mem_0", "mem_1"}, c.roll("mem_1"))
	require.Equal(t, adapter.Healthy, c.observe().Health)
}

func TestObservationTellsDeadFromUnknown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.p.KillProcess("mem_0", process)
	c.p.Away("mem_1")
	seen := c.observe()
	require.Equal(t, adapter.Degraded, seen.Health)
	health := map[string]adapter.Health{}
	for _, member := range seen.Members {
		health[member.ID] = member.Health
	}
	require.Equal(t, map[string]adapter.Health{"mem_0": adapter.Unhealthy, "mem_1": adapter.HealthUnknown, "mem_2": adapter.Healthy}, health)
	c.p.Away("mem_0", "mem_2")
	require.Equal(t, adapter.HealthUnknown, c.observe().Health, "unknown is never read as good or bad")
}

func TestForcedDecommissionPassesOverNodesThatAreAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.work("mem_0", 600)
	c.p.Away("mem_1")
	c.members[1].Node.Reachable = new(bool)
	d := c.op(adapter.InstanceDecommission)
	d.Force = true
	status := c.succeed(d)
	require.Equal(t, 1, evidence[struct{ Total int }](t, status, "workLost").Total)
	require.Equal(t, []string{"mem_1"}, evidence[[]string](t, status, "notTornDown"))
	require.NoDirExists(t, c.p.Root("mem_0"))
}

func TestWhatTheClusterCouldNotSurviveIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	below, above, unknown, other := c.op(adapter.MemberRemove, "mem_0"), c.op(adapter.MembersAdd, "mem_0"), c.op(adapter.MembersAdd, "mem_0"), c.op(adapter.InstanceUpgrade)
	below.Instance.Components[0].Count = 0
	above.Instance.Components[0].Count = 17
	unknown.Instance.Components[0].Key = "queen"
	other.Change = raw(t, adapter.VersionChange{To: adapter.VersionConfig{Version: "9.9.9"}})
	stranger := c.op(adapter.MemberReplace, "mem_0")
	stranger.Change = raw(t, adapter.ReplaceChange{ReplacementID: "mem_9"})
	for code, d := range map[string]adapter.Dispatch{
		"BELOW_MINIMUM": below, "ABOVE_MAXIMUM": above, "UNKNOWN_COMPONENT": unknown, "VERSION_MISMATCH": other,
		"REPLACEMENT_UNKNOWN": stranger, "TARGET_MISSING": c.op(adapter.MemberDrain),
	} {
		status, body := c.p.Call(c.base, "PUT", adapter.OperationPath(d.OperationID), d, nil)
		require.Equal(t, 422, status, "body: %s", body)
		require.Contains(t, string(body), `"`+code+`"`)
		status, _ = c.p.Call(c.base, "GET", adapter.OperationPath(d.OperationID), nil, nil)
		require.Equal(t, 404, status, "%s: nothing was written", code)
	}
}
