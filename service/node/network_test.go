package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodenet"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/node"
)

const reported = `{"classes": ["CONTAINER"], "profiles": ["SERVICE"], "runtime": "crun", "runtimeVersion": "1.8.1", "cgroupVersion": 1, "gaps": []}`

// walled is an online node whose members have networks of their own, with its agent as a caller.
func (b *bench) walled() (*db.ComputeNode, context.Context) {
	b.t.Helper()
	made, credential := b.Node(8)
	made.Address = fmt.Sprintf("192.0.2.%d", 100+b.walls.Add(1))
	b.SQL(`UPDATE compute_node SET walls = $2::jsonb, address = $3 WHERE id = $1`, made.ID, reported, made.Address)
	return made, b.With(credential)
}

// housed is an instance with one member on each node, launched from a manifest with this network.
func (b *bench) housed(project *db.Project, network string, nodes ...*db.ComputeNode) *db.Instance {
	b.t.Helper()
	app := b.App("apps")
	document := platformtest.Document(app, "1.0.0", b.Adapter("http://adapter.test", nil),
		b.Artifact(lifecycle.StageActive))
	if network != "" {
		document["network"] = json.RawMessage(network)
	}
	version := b.Manifest(lifecycle.StageActive, document)
	var allocations []*db.Allocation
	for _, at := range nodes {
		allocations = append(allocations, b.Allocation(project, at))
	}
	return b.Instance(project, version, lifecycle.InstanceRunning, allocations...)
}

func (b *bench) members(of *db.Instance) []*db.Member {
	b.t.Helper()
	rows, err := b.Ent.Member.Query().All(context.Background())
	require.NoError(b.t, err)
	var found []*db.Member
	for _, row := range rows {
		if row.InstanceID == of.ID {
			found = append(found, row)
		}
	}
	return found
}

func instanceOf(t *testing.T, view *nodenet.View, id ids.ID) nodenet.Instance {
	t.Helper()
	for _, instance := range view.Instances {
		if instance.ID == id {
			return instance
		}
	}
	require.Fail(t, "the instance is not in the view")
	return nodenet.Instance{}
}

func TestMembersHaveAnAddressWhereTheirNodeGivesOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.Project(b.Tenant())
	first, agent := b.walled()
	second, _ := b.walled()
	old, _ := b.Node(8)
	instance := b.housed(project,
		`{"ranges": [{"name": "pods", "bits": 24}], "endpoints": [{"name": "web", "port": 8888}]}`, first, second, old)
	seen := map[string]bool{}
	for _, member := range b.members(instance) {
		if *member.NodeID == old.ID {
			require.Empty(t, member.Address, "a node without networks has none to give")
			require.Empty(t, member.Ranges)
			continue
		}
		require.Regexp(t, `^100\.64\.\d+\.\d+$`, member.Address)
		require.False(t, seen[member.Address], "an address is one member's")
		require.Len(t, member.Ranges, 1)
		require.Regexp(t, `^100\.96\.\d+\.0/24$`, member.Ranges[0].CIDR)
		require.False(t, seen[member.Ranges[0].CIDR])
		seen[member.Address], seen[member.Ranges[0].CIDR] = true, true
	}
	view, err := b.Network(agent, "", 0)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{first.Address, second.Address, old.Address}, view.Nodes)
	require.Equal(t, []string{"100.64.0.0/11", "100.96.0.0/11"}, view.Pools)
	told := instanceOf(t, view, instance.ID)
	require.Len(t, told.Members, 3)
	for _, member := range told.Members {
		require.Equal(t, []nodenet.Port{{Protocol: "tcp", Number: 8888}}, member.Open)
		if member.NodeID == old.ID {
			require.Equal(t, old.Address, member.Address)
		}
	}
}

func TestNobodyWaitsForANetworkInAProcessThatEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, agent := b.walled()
	view, err := b.Network(agent, "", 0)
	require.NoError(t, err)
	stopping := make(chan struct{})
	close(stopping)
	ending := &node.Service{DB: b.DB, Hub: b.Hub, Stopping: stopping}
	ctx, cancel := context.WithTimeout(agent, 10*time.Second)
	defer cancel()
	again, err := ending.Network(ctx, view.Version, 20)
	require.NoError(t, err, "answered, not cut")
	require.Equal(t, view.Version, again.Version)
}

func TestANodeIsToldOfItsOwnInstancesAndOfAcceptedShares(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	owner, other := b.Project(tenant), b.Project(tenant)
	here, agent := b.walled()
	there, elsewhere := b.walled()
	plane, guest := b.housed(owner, "", here), b.housed(other, "", there)
	stranger := b.housed(b.Project(b.Tenant()), "", there)
	view, err := b.Network(agent, "", 0)
	require.NoError(t, err)
	require.Len(t, view.Instances, 1)
	require.Empty(t, instanceOf(t, view, plane.ID).Reaches)
	b.SQL(`INSERT INTO control_plane_share (id, tenant_id, project_id, instance_id, owner_project_id, status,
		created_at)
		VALUES ($1, $2, $3, $4, $5, 'OFFERED', now())`, ids.New(ids.ControlPlane), tenant.ID, other.ID,
		plane.ID, owner.ID)
	again, err := b.Network(agent, view.Version, 0)
	require.NoError(t, err)
	require.Equal(t, view.Version, again.Version, "an offer opens nothing")
	b.SQL(`UPDATE control_plane_share SET status = 'ATTACHED', answered_at = now()`)
	shared, err := b.Network(agent, view.Version, 5)
	require.NoError(t, err)
	require.Equal(t, []ids.ID{plane.ID}, instanceOf(t, shared, guest.ID).Reaches)
	theirs, err := b.Network(elsewhere, "", 0)
	require.NoError(t, err)
	require.Equal(t, []ids.ID{plane.ID}, instanceOf(t, theirs, guest.ID).Reaches)
	require.Empty(t, instanceOf(t, theirs, stranger.ID).Reaches)
}

func TestAChangeEndsTheWaitForIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.Project(b.Tenant())
	here, agent := b.walled()
	instance := b.housed(project, "", here)
	view, err := b.Network(agent, "", 0)
	require.NoError(t, err)
	changed := make(chan *nodenet.View, 1)
	go func() {
		next, err := b.Network(agent, view.Version, 20)
		if err == nil {
			changed <- next
		}
	}()
	require.Eventually(t, func() bool {
		return b.Kit.Hub.Waiting(event.InstanceTopic(instance.ID)) > 0
	}, 15*time.Second,
		time.Millisecond)
	b.SQL(`UPDATE member SET status = 'FAILED' WHERE instance_id = $1`, instance.ID)
	b.SQL(`UPDATE member SET status = 'REMOVING' WHERE instance_id = $1`, instance.ID)
	b.SQL(`UPDATE member SET status = 'REMOVED' WHERE instance_id = $1`, instance.ID)
	b.Kit.Hub.Wake(event.InstanceTopic(instance.ID))
	select {
	case next := <-changed:
		require.Empty(t, next.Instances)
	case <-time.After(15 * time.Second):
		require.Fail(t, "the wait did not end")
	}
}

func TestAnAddressIsFreeAgainWhenItsMemberIsRemovedAndExhaustionIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.Project(b.Tenant())
	here, agent := b.walled()
	b.SQL(`UPDATE platform.member_pool SET addresses = '10.99.0.0/29', ranges = '10.98.0.0/24'`)
	instance := b.housed(project, `{"ranges": [{"name": "pods", "bits": 25}]}`, here, here)
	held := map[string]bool{}
	for _, member := range b.members(instance) {
		held[member.Address] = true
	}
	require.Len(t, held, 2)
	before := b.Count("member", "true")
	_, err := b.Admin.Exec(t.Context(), `INSERT INTO member (id, tenant_id, project_id, instance_id, component_key,
		ordinal, status, node_id,
		correlation_id, created_at, updated_at) SELECT 'mem_x' || n, tenant_id, project_id, id, 'late', n, 'PENDING', $2, '',
		now(), now()
		FROM instance, generate_series(1, 9) n WHERE id = $1`, instance.ID, here.ID)
	require.ErrorContains(t, err, "GP507")
	require.Equal(t, before, b.Count("member", "true"), "nothing is written")
	for _, to := range []string{"FAILED", "REMOVING", "REMOVED"} {
		b.SQL(`UPDATE member SET status = $2 WHERE instance_id = $1`, instance.ID, to)
	}
	require.Zero(t, b.Count("platform.member_range", "true"))
	next := b.housed(project, `{"ranges": [{"name": "pods", "bits": 25}]}`, here, here)
	given := b.members(next)[0]
	b.SQL(`UPDATE member SET address = '10.99.0.1', ranges = '[]' WHERE id = $1`, given.ID)
	require.Equal(t, 1, b.Count("member", "id = $1 AND address = $2", given.ID, given.Address), "what was given stays")
	require.Len(t, b.members(next), 2)
	view, err := b.Network(agent, "", 0)
	require.NoError(t, err)
	require.Len(t, view.Instances, 1)
}

func TestOnlyANodeReadsItsNetworkAndBadInputIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, agent := b.walled()
	_, err := b.Network(b.operator, "", 0)
	require.True(t, fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden), "%v", err)
	_, err = b.Network(agent, "", 21)
	platformtest.Refused(t, err, fault.InvalidArgument, "waitSeconds")
	_, err = b.Network(agent, "", -1)
	platformtest.Refused(t, err, fault.InvalidArgument, "waitSeconds")
}

// A member is locked by the transaction that works on it, which may lock its node next: a heartbeat that locked the
// node and then waited for the member would be a deadlock, which ends one of the two.
func TestANodeThatLearnsToGiveNetworksWaitsForNoMember(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, credential := b.Node(8)
	agent := b.With(credential)
	instance := b.housed(b.Project(b.Tenant()), `{"ranges": [{"name": "pods", "bits": 24}]}`, here, here)
	members := b.members(instance)
	busy, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = busy.Rollback(context.Background()) }()
	_, err = busy.Exec(t.Context(), `SELECT FROM member WHERE id = $1 FOR UPDATE`, members[0].ID)
	require.NoError(t, err)
	learns := beat
	learns.Inventory = &node.Inventory{CPUs: 4, MemoryMiB: 8_192, GPUs: 8, Isolation: lifecycle.IsolationNamespace,
		Walls: &isolation.Walls{
			Classes: []isolation.Class{isolation.Container}, Profiles: []isolation.Profile{isolation.Service},
			Runtime:        "crun",
			RuntimeVersion: "1.8.1", CgroupVersion: 1,
		}}
	told := b.Kit.Hub.Wait(event.InstanceTopic(instance.ID))
	defer told.Close()
	_, err = b.Heartbeat(agent, learns)
	require.NoError(t, err)
	_, err = b.Heartbeat(agent, beat)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("member", "address <> '' AND id <> $1", members[0].ID))
	require.Len(t, told.C, 1, "the instance's other nodes are woken")
	require.NoError(t, busy.Rollback(t.Context()))
	_, err = b.Heartbeat(agent, beat)
	require.NoError(t, err)
	require.Equal(t, 2, b.Count("member", "address <> '' AND ranges IS NOT NULL AND instance_id = $1", instance.ID))
	_, other := b.walled()
	_, err = b.Heartbeat(other, beat)
	require.NoError(t, err)
}
