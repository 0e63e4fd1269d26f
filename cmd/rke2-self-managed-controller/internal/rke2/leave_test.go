package rke2

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/standin"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestAServerStaysInEtcdUntilItIsEmpty(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 3)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	l.pods("mem-server2", "web", "free")
	l.begin(l.dispatch("op_2", adapter.MemberRemove, time.Minute, "mem_server2"))
	status := l.until("op_2", func(s adapter.Status) bool { return s.State.Terminal() || len(s.WaitsFor) == 1 })
	require.Equal(t, adapter.StateRunning, status.State, "the pod and its budget are waited for")
	require.Equal(t, "shop/web", status.WaitsFor[0].Name)
	require.Len(t, l.look("mem-server0").Voters, 3)
	require.NoError(t, standin.Arrange(l.state, "mem-server0", l.look("mem-server0").Pods, nil))
	status = l.until("op_2", func(s adapter.Status) bool { return s.State.Terminal() })
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.Equal(t, []string{"mem-server0", "mem-server1"}, l.look("mem-server0").Voters)
}

func TestADeadServerIsForgottenAndItsNodeTakesAnotherMember(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.grow(machine.Server, 3)
	l.carry(l.dispatch("op_1", adapter.InstanceCreate, time.Minute), adapter.StateSucceeded)
	away := false
	dead := l.members[2]
	l.members[2].Node.Reachable, l.members[2].Status = &away, string(adapter.MemberFailed)
	forced := l.dispatch("op_2", adapter.MemberRemove, time.Minute, dead.ID)
	forced.Force = true
	status := l.carry(forced, adapter.StateSucceeded)
	require.Contains(t, status.Evidence, "notTornDown", "what may be left on the node is said")
	view := l.look("mem-server0")
	require.Equal(t, []string{"mem-server0", "mem-server1"}, view.Voters)
	require.Equal(t, view.Nodes, view.Passwords, "a password that is kept would refuse the next of its name")

	fresh := l.grow(machine.Server, 1)
	l.members[2].Node.ID, l.members[2].Node.Name = dead.Node.ID, dead.Node.Name // the same node is back
	add := l.dispatch("op_3", adapter.MembersAdd, time.Minute, fresh...)
	add.Change = []byte(`{"components":[{"key":"server","count":1}]}`)
	l.carry(add, adapter.StateSucceeded)
	require.Equal(t, []string{"mem-server0", "mem-server1", "mem-server3"}, l.look("mem-server0").Voters)
}

func TestNoTokenIsInTheProgramsLog(t *testing.T) {
	t.Parallel()
	p := newProcessLab(t)
	p.grow(machine.Server, 1)
	p.grow(machine.Agent, 1)
	p.begin(p.dispatch("op_create", adapter.InstanceCreate, time.Minute))
	p.await("op_create")
	said, err := os.ReadFile(p.log)
	require.NoError(t, err)
	require.NotEmpty(t, said)
	for _, password := range p.passwords() {
		require.NotContains(t, string(said), password)
	}
}
