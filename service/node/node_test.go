package node_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/node"
)

func TestANodeEnrolsBeatsAndIsSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, text := b.invite("")
	out, err := b.Enrol(ctx, enrolment("gpu-1"))
	require.NoError(t, err)
	require.Equal(t, lifecycle.NodeOffline, out.Node.Status, "nobody has heard it yet")
	require.True(t, out.Node.ID.Is(ids.Node))
	require.JSONEq(t, `{"rack": "r1"}`, string(out.Node.Labels))
	require.WithinDuration(t, time.Now().Add(24*time.Hour), out.ExpiresAt, time.Minute)

	agent := b.With(out.Token)
	alive, err := b.Heartbeat(agent, beat)
	require.NoError(t, err)
	require.Equal(t, lifecycle.NodeOnline, alive.Status)
	require.NotNil(t, alive.LastSeenAt)
	require.Equal(t, out.Node.ID, alive.ID)
	changed := beat
	changed.BootID = "boot-2"
	changed.Inventory = &node.Inventory{CPUs: 4, MemoryMiB: 8_192, GPUs: 1, Isolation: lifecycle.IsolationProcess}
	after, err := b.Heartbeat(agent, changed)
	require.NoError(t, err)
	require.Equal(t, "boot-2", after.BootID)
	require.Equal(t, 4, after.Cpus)
	require.Equal(t, "PROCESS", after.Isolation)
	require.Empty(t, after.GpuModel)
	require.Empty(t, after.Labels)

	found, err := b.List(b.operator, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, found.Rows, 1)
	var actions []string
	for _, entry := range b.Audit() {
		actions = append(actions, entry.Action)
		require.NotContains(t, string(entry.After), text[len(text)-20:], "no secret reaches the audit")
		require.NotContains(t, string(entry.After), out.Token[len(out.Token)-20:])
	}
	require.Equal(t, []string{"createNodeEnrolment", "enrolNode"}, actions, "a heartbeat is no entry")
}

func TestAnEnrolmentWorksOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, _ := b.invite("gpu-1")
	_, err := b.Enrol(ctx, enrolment("gpu-2"))
	platformtest.Refused(t, err, fault.InvalidArgument, "input.name")
	others := b.Kit.Hub.Wait(event.NodesTopic)
	defer others.Close()
	_, err = b.Enrol(ctx, enrolment("gpu-1"))
	require.NoError(t, err)
	require.Len(t, others.C, 1, "other nodes' network knows it")
	_, err = b.Enrol(ctx, enrolment("gpu-1"))
	platformtest.Refused(t, err, fault.Unauthenticated, "")
	require.Equal(t, 1, b.Count("compute_node", ""))
	require.Equal(t, 1, b.Count("node_credential", ""))
	late, _ := b.invite("")
	b.SQL(`UPDATE node_enrolment SET expires_at = now() WHERE used_at IS NULL`)
	_, err = b.Enrol(late, enrolment("gpu-3"))
	platformtest.Refused(t, err, fault.Unauthenticated, "")
}

func TestAnEnrolmentUsedByManyAtOnceMakesOneNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, _ := b.invite("")
	const callers = 5
	failures := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { _, failures[i] = b.Enrol(ctx, enrolment("gpu-1")) })
	}
	running.Wait()
	won := 0
	for _, err := range failures {
		if err == nil {
			won++
			continue
		}
		platformtest.Refused(t, err, fault.Unauthenticated, "")
	}
	require.Equal(t, 1, won)
	require.Equal(t, 1, b.Count("node_credential", ""))
}

func TestANamesSecondNodeIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enrolled("gpu-1")
	ctx, _ := b.invite("")
	_, err := b.Enrol(ctx, enrolment("gpu-1"))
	platformtest.Refused(t, err, fault.Conflict, "input.name")
	_, err = b.Enrol(ctx, enrolment("gpu-2"))
	require.NoError(t, err, "the enrolment was not spent")
}

func TestANodeIsEnrolledAgainUnderItsName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.enrolled("gpu-1")
	old := b.With(first.Token)
	_, err := b.Heartbeat(old, beat)
	require.NoError(t, err)
	ctx, _ := b.invite("gpu-1")
	in := enrolment("gpu-1")
	in.Address, in.SealingKey = "192.0.2.8", base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	again, err := b.Enrol(ctx, in)
	require.NoError(t, err)
	require.Equal(t, first.Node.ID, again.Node.ID)
	require.Equal(t, "192.0.2.8", again.Node.Address)
	require.Equal(t, in.SealingKey, again.Node.SealingKey)
	require.Equal(t, lifecycle.NodeOnline, again.Node.Status)
	_, err = b.Heartbeat(old, beat)
	platformtest.Refused(t, err, fault.Unauthenticated, "")
	_, err = b.Heartbeat(b.With(again.Token), beat)
	require.NoError(t, err)

	late, _ := b.invite("gpu-1")
	b.SQL(`UPDATE compute_node SET status = 'RETIRED'`)
	_, err = b.Enrol(late, enrolment("gpu-1"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.name")
	_, err = b.CreateEnrolment(b.operator, node.EnrolmentInput{Name: "gpu-1", TTLMinutes: 5})
	platformtest.Refused(t, err, fault.Conflict, "input.name")
	_, err = b.Heartbeat(b.With(again.Token), beat)
	platformtest.Refused(t, err, fault.Unauthenticated, "")
}

func TestARotatedCredentialEndsTheOldOneAtItsFirstUse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.CredentialLife = time.Hour
	first := b.enrolled("gpu-1")
	old := b.With(first.Token)
	lost, err := b.Rotate(old)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), lost.ExpiresAt, time.Minute)
	_, err = b.Heartbeat(old, beat)
	require.NoError(t, err, "the fresh one was not used yet")
	fresh, err := b.Rotate(old)
	require.NoError(t, err)
	_, err = b.Heartbeat(b.With(lost.Token), beat)
	platformtest.Refused(t, err, fault.Unauthenticated, "")
	_, err = b.Heartbeat(b.With(fresh.Token), beat)
	require.NoError(t, err)
	_, err = b.Heartbeat(old, beat)
	platformtest.Refused(t, err, fault.Unauthenticated, "")
	require.Equal(t, 2, b.Count("audit_entry", "action = 'rotateNodeCredential'"))
	require.Equal(t, 1, b.Count("node_credential", "revoked_at IS NULL"))
}

func TestOnlyOperatorsEnrolAndOnlyAgentsBeat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	invited, _ := b.invite("")
	out := b.enrolled("gpu-1")
	agent := b.With(out.Token)
	for name, ctx := range map[string]context.Context{"a tenant's admin": admin, "an agent": agent} {
		_, err := b.CreateEnrolment(ctx, node.EnrolmentInput{TTLMinutes: 5})
		require.True(t, fault.Is(err, fault.Forbidden), "%s: %v", name, err)
		_, err = b.Enrol(ctx, enrolment("gpu-9"))
		require.True(t, fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound), "%s: %v", name, err)
	}
	for name, ctx := range map[string]context.Context{"a tenant's admin": admin, "an operator": b.operator,
		"an enrolment": invited} {
		_, err := b.Heartbeat(ctx, beat)
		require.True(t, fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound), "%s: %v", name, err)
		_, err = b.Rotate(ctx)
		require.True(t, fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound), "%s: %v", name, err)
	}
	_, err := b.List(admin, page.Args{First: 10})
	platformtest.Refused(t, err, fault.Forbidden, "")
	require.Equal(t, 1, b.Count("compute_node", ""))
	require.Equal(t, 2, b.Count("node_enrolment", ""))
}

func TestBadInputIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, _ := b.invite("")
	long := strings.Repeat("x", 300)
	for path, values := range map[string][]func(*node.EnrolInput){
		"input.name": {func(in *node.EnrolInput) { in.Name = "" }, func(in *node.EnrolInput) { in.Name = "GPU 1" },
			func(in *node.EnrolInput) { in.Name = "-a" }, func(in *node.EnrolInput) { in.Name = long }},
		"input.address": {func(in *node.EnrolInput) { in.Address = "gpu-1" }, func(in *node.EnrolInput) {
			in.Address = "0.0.0.0"
		},
			func(in *node.EnrolInput) {
				in.Address = "224.0.0.1"
			}, func(in *node.EnrolInput) { in.Address = "fe80::1%eth0" }},
		"input.sealingKey": {func(in *node.EnrolInput) { in.SealingKey = "%" }, func(in *node.EnrolInput) {
			in.SealingKey = "AAAA"
		}},
		"input.agentVersion": {func(in *node.EnrolInput) { in.AgentVersion = "" }},
		"input.bootId":       {func(in *node.EnrolInput) { in.BootID = "a\x00" }},
		"input.inventory.cpus": {func(in *node.EnrolInput) { in.Inventory.CPUs = 0 }, func(in *node.EnrolInput) {
			in.Inventory.CPUs = 4_097
		}},
		"input.inventory.memoryMiB": {func(in *node.EnrolInput) { in.Inventory.MemoryMiB = 0 }},
		"input.inventory.gpus": {func(in *node.EnrolInput) { in.Inventory.GPUs = 65 }, func(in *node.EnrolInput) {
			in.Inventory.GPUs = -1
		}},
		"input.inventory.gpuModel":  {func(in *node.EnrolInput) { in.Inventory.GPUModel = long }},
		"input.inventory.isolation": {func(in *node.EnrolInput) { in.Inventory.Isolation = "NONE" }},
		"input.inventory.region":    {func(in *node.EnrolInput) { in.Inventory.Region = "a b" }},
		"input.inventory.sku":       {func(in *node.EnrolInput) { in.Inventory.SKU = "ä" }},
		"input.inventory.kernel":    {func(in *node.EnrolInput) { in.Inventory.Kernel = "6\n" }},
		"input.inventory.labels": {func(in *node.EnrolInput) { in.Inventory.Labels = json.RawMessage(`[]`) },
			func(in *node.EnrolInput) { in.Inventory.Labels = json.RawMessage(`{"a":["\u0000"]}`) },
			func(in *node.EnrolInput) {
				in.Inventory.Labels = json.RawMessage(`{"a":"` + strings.Repeat("x", 4<<10) + `"}`)
			}},
	} {
		for _, change := range values {
			in := enrolment("gpu-1")
			change(&in)
			_, err := b.Enrol(ctx, in)
			platformtest.Refused(t, err, fault.InvalidArgument, path)
		}
	}
	for path, in := range map[string]node.EnrolmentInput{
		"input.name": {Name: "A", TTLMinutes: 5}, "input.ttlMinutes": {TTLMinutes: 1_441},
	} {
		_, err := b.CreateEnrolment(b.operator, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	_, err := b.Heartbeat(b.With(b.enrolled("gpu-1").Token),
		node.HeartbeatInput{AgentVersion: "1", BootID: "b", Inventory: &node.Inventory{}})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.inventory.cpus")
}

func TestATenantSeesTheNodesItRents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	project, sibling, foreign := b.Project(tenant), b.Project(tenant), b.Project(other)
	mine, _ := b.Node(1)
	theirs, _ := b.Node(1)
	free, _ := b.Node(1)
	_, stored := b.Launchable(project, "apps")
	held := b.Allocation(project, mine)
	instance := b.Instance(project, stored, lifecycle.InstanceRunning, held)
	b.Allocation(foreign, theirs)
	wanted := []ids.ID{mine.ID, theirs.ID, free.ID}
	see := func(ctx context.Context) []ids.ID {
		t.Helper()
		found, err := b.Many(ctx, wanted)
		require.NoError(t, err)
		var seen []ids.ID
		for _, id := range wanted {
			if found[id] != nil {
				seen = append(seen, id)
			}
		}
		return seen
	}
	viewer := b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	require.Equal(t, []ids.ID{mine.ID}, see(viewer))
	require.Empty(t, see(b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, sibling)))))
	require.Equal(t, wanted, see(b.operator))
	operation := b.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	require.Equal(t, []ids.ID{mine.ID}, see(b.With(b.OperationToken(operation, authz.AllocationRead))))
	require.Empty(t, see(b.With(b.OperationToken(operation, authz.TaskRun))))
	b.SQL(`UPDATE allocation SET released_at = now() WHERE id = $1`, held.ID)
	require.Empty(t, see(viewer), "a node that was given back is not theirs to see")
	_, err := b.Get(viewer, mine.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
}

func TestListIsByNameInPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"c", "a", "e", "b", "d"} {
		b.enrolled(name)
	}
	var seen []string
	args := page.Args{First: 2}
	for more := true; more; {
		found, err := b.List(b.operator, args)
		require.NoError(t, err)
		for _, row := range found.Rows {
			seen = append(seen, row.Name)
		}
		more, args.After = found.HasNext, found.Cursors[len(found.Cursors)-1]
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, seen)
}
