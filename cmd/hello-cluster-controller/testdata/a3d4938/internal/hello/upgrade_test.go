package hello

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// change makes the dispatch that brings the cluster to a version and config.
func (c *cluster) change(kind adapter.Kind, version, config string) adapter.Dispatch {
	from := adapter.VersionConfig{Version: c.version, Config: []byte(c.config)}
	c.version, c.config = version, config
	d := c.op(kind)
	d.Change = raw(c.t, adapter.VersionChange{From: from, To: adapter.VersionConfig{Version: version, Config: []byte(config)}})
	return d
}

func TestUpgradeChangesEveryPeerWhileItsWorkGoesOnAndRollbackBringsItBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	id := c.work("mem_1", 600)
	before := c.runs("mem_0")
	status := c.succeed(c.change(adapter.InstanceUpgrade, "1.2.0", `{"greeting":"Ahoy"}`))
	require.Equal(t, map[string]string{"peer-0": "1.2.0", "peer-1": "1.2.0", "peer-2": "1.2.0"}, evidence[map[string]string](t, status, "versions"))
	require.Equal(t, "version 1.2.0\ngreeting Ahoy\n", c.runs("mem_2"))
	require.Equal(t, []string{id}, c.working(), "work is no part of the peer's process")

	status = c.succeed(c.change(adapter.InstanceRollback, "1.1.0", `{"greeting":"Welcome"}`))
	require.Equal(t, "1.1.0", evidence[map[string]string](t, status, "versions")["peer-0"])
	require.Equal(t, before, c.runs("mem_0"), "exactly as it was")
}

func TestFailedUpgradeIsChangedBackAndNothingIsTornDown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	settings := filepath.Join(c.p.Root("mem_1"), settingsPath)
	require.NoError(t, os.Remove(settings))
	require.NoError(t, os.Mkdir(settings, 0o755))
	status := c.run(c.change(adapter.InstanceUpgrade, "1.2.0", `{}`))
	require.Equal(t, adapter.StateFailed, status.State)
	require.Equal(t, adapter.OwnerNode, status.Error.Owner)
	found := evidence[map[string]string](t, status, "versions")
	require.Equal(t, "1.1.0", found["peer-0"], "changed and changed back")
	require.Equal(t, "1.1.0", found["peer-2"], "never touched")
	require.Equal(t, adapter.MemberFailed, stateOf(status, "mem_1").Status)
	require.Equal(t, adapter.MemberActive, stateOf(status, "mem_0").Status)
	require.DirExists(t, c.p.Root("mem_1"))
	require.Len(t, c.observe().Members, 3)
}

func TestCanceledUpgradeIsChangedBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	d := c.change(adapter.InstanceUpgrade, "1.2.0", `{}`)
	c.p.Dispatch(c.base, d)
	c.await(d, "at the second peer", func(s adapter.Status) bool { return s.Phase == "changing peer-1" || s.State.Terminal() })
	c.cancel(d)
	status := c.await(d, "canceled", func(s adapter.Status) bool { return s.State == adapter.StateCanceled })
	require.Equal(t, map[string]string{"peer-0": "1.1.0", "peer-1": "1.1.0", "peer-2": "1.1.0"}, evidence[map[string]string](t, status, "versions"))
}

func TestUpgradeDoesNotBeginWhileANodeIsAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.members[1].Node.Reachable = new(bool)
	d := c.change(adapter.InstanceUpgrade, "1.2.0", `{}`)
	require.Equal(t, adapter.VerdictUnsafe, c.plan(d).Verdict)
	status := c.run(d)
	require.Equal(t, adapter.StateFailed, status.State)
	require.Equal(t, adapter.CodeNodeUnreachable, status.Error.Code)
	require.Contains(t, c.runs("mem_0"), "version 1.1.0")
}

func TestPlansSayWhatWouldBeLostAndChangeNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	require.Equal(t, adapter.VerdictSafe, c.plan(c.op(adapter.MemberRemove, "mem_1")).Verdict)
	id := c.work("mem_1", 600)

	drain := c.plan(c.op(adapter.MemberDrain, "mem_1"))
	require.Equal(t, adapter.VerdictSafe, drain.Verdict, "a drain waits")
	require.True(t, drain.Reversible)
	require.Empty(t, drain.WorkLost)
	require.Equal(t, "WORK_AWAITED", drain.Reasons[0].Code)

	forced := c.op(adapter.MemberRemove, "mem_1")
	forced.Force = true
	answer := c.plan(forced)
	require.Equal(t, adapter.VerdictUnsafe, answer.Verdict)
	require.False(t, answer.Reversible)
	require.Equal(t, 1, answer.WorkTotal)
	require.Equal(t, id, answer.WorkLost[0].ID)

	require.Equal(t, 1, c.plan(c.op(adapter.InstanceDecommission)).WorkTotal, "a decommission waits for nothing")
	upgrade := c.plan(c.change(adapter.InstanceUpgrade, "1.2.0", `{}`))
	require.Equal(t, adapter.VerdictSafe, upgrade.Verdict)
	require.Empty(t, upgrade.WorkLost)

	below := c.op(adapter.MemberRemove, "mem_1")
	below.Instance.Components[0].Count = 0
	require.Equal(t, "BELOW_MINIMUM", c.plan(below).Reasons[0].Code)

	c.p.Away("mem_1")
	unknown := c.plan(c.op(adapter.MemberRemove, "mem_1"))
	require.Equal(t, adapter.VerdictUnknown, unknown.Verdict)
	require.Equal(t, adapter.CodeNodeUnreachable, unknown.Reasons[0].Code)
	c.p.Back("mem_1")
	require.Equal(t, []string{id}, c.working(), "no plan touched anything")
}
