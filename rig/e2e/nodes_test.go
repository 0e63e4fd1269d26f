package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// noticed is how soon whatever dies has its event.
const noticed = 30 * time.Second

// lodging is an app whose peers are on nodes that the test chose, seen only through the public API.
type lodging struct {
	t        *testing.T
	ctx      context.Context
	c        *client.Client
	instance string
	told     []gql.Event // the timeline, as far as it was read
}

// TestNodesLiveAndDie is what operators do with nodes and what happens to them, and what an app there goes through: it
// is cordoned, drained and given back; members die, are recovered by a person, then by the platform until its budget is
// spent; a node restarts, another is lost for good, is replaced and written off.
func TestNodesLiveAndDie(t *testing.T) {
	needsRoot(t)
	ctx := bounded(t)
	ownInstallation(t, ctx, stack.Config{Nodes: 2})
	c := automation(t)
	doomed, err := shared.BootNode(ctx, "node-doomed")
	require.NoError(t, err)
	l := &lodging{t: t, ctx: ctx, c: c}
	l.deletedAtLast(doomed.Name())
	there, here := l.rentOn(doomed.Name()), l.rentOn("node-1")
	launched, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{
		ProjectId: shared.Demo.ProjectID, AppSlug: "hello-cluster", Name: "hello-nodes",
		AllocationIds:   []string{here, there},
		DeadlineSeconds: 120, Reason: "end-to-end test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	l.instance = launched.LaunchInstance.Instance.Id
	succeeds(t, ctx, c, launched.LaunchInstance.Operation.Id)

	l.cordonKeepsNewMembersAway(here)
	l.drainAndBack()
	l.deadMemberIsRecoveredByAPerson()
	l.deadMemberIsRecoveredByThePlatform()
	l.restartBringsItsMembersBack()
	l.lostNodeIsReplacedAndWrittenOff(doomed)
	l.budgetIsSpent()

	members := l.present()
	requireProof(t, decommission(t, ctx, c, l.instance), members)
	requireGone(t, ctx, members)
}

// deletedAtLast takes a node from the list once the test has given back what it rented there.
func (l *lodging) deletedAtLast(name string) {
	l.t.Helper()
	l.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		page, err := gql.ListNodes(ctx, shared.Operator, 100, "")
		require.NoError(l.t, err)
		for _, edge := range page.Nodes.Edges {
			if edge.Node.Name != name {
				continue
			}
			_, err := gql.DeleteNode(ctx, shared.Operator, gql.NodeOperateInput{NodeId: edge.Node.Id,
				Reason: "it burned"})
			require.NoError(l.t, err)
		}
	})
}

// rentOn takes one GPU on a node: all others are cordoned meanwhile, since a request does not name a node.
func (l *lodging) rentOn(name string) (allocation string) {
	l.t.Helper()
	page, err := gql.ListNodes(l.ctx, shared.Operator, 100, "")
	require.NoError(l.t, err)
	for _, edge := range page.Nodes.Edges {
		if edge.Node.Name == name || edge.Node.Status == gql.NodeStatusRetired {
			continue
		}
		cordoned, err := gql.CordonNode(l.ctx, shared.Operator,
			gql.NodeOperateInput{NodeId: edge.Node.Id, Reason: "not here"})
		require.NoError(l.t, err)
		require.True(l.t, cordoned.CordonNode.Cordoned)
		defer l.uncordon(edge.Node.Id)
	}
	allocation = rent(l.t, l.ctx, l.c)
	rented, err := gql.RentedNodes(l.ctx, l.c, shared.Demo.ProjectID, "")
	require.NoError(l.t, err)
	for _, edge := range rented.Allocations.Edges {
		if edge.Node.Id == allocation {
			require.Equal(l.t, name, edge.Node.Node.Name, "a cordoned node was given new capacity")
		}
	}
	return allocation
}

func (l *lodging) uncordon(node string) {
	l.t.Helper()
	_, err := gql.UncordonNode(l.ctx, shared.Operator, gql.NodeOperateInput{NodeId: node})
	require.NoError(l.t, err)
}

// peers are the members that have not left.
func (l *lodging) peers() []gql.Member {
	l.t.Helper()
	return slices.DeleteFunc(membersOf(l.t, l.ctx, l.c, l.instance), func(member gql.Member) bool {
		return member.Status == gql.MemberStatusRemoved
	})
}

// on is the first member on a node.
func (l *lodging) on(node string) gql.Member {
	l.t.Helper()
	for _, peer := range l.peers() {
		if peer.Node.Name == node {
			return peer
		}
	}
	l.t.Fatalf("no member is on %s", node)
	return gql.Member{}
}

func (l *lodging) present() (ids []string) {
	for _, peer := range l.peers() {
		ids = append(ids, peer.Id)
	}
	return ids
}

// becomes waits until the member on a node is in a status, and returns it.
func (l *lodging) becomes(node string, status gql.MemberStatus) (found gql.Member) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		found = l.on(node)
		return found.Status == status
	}, time.Minute, 100*time.Millisecond, "the member on %s never was %s", node, status)
	return found
}

// hears waits until the timeline has an event about a member ("" for none) after a moment, and returns it. It waits no
// longer than a death takes to be noticed. The event's payload has the keys that are named.
func (l *lodging) hears(member, kind string, since time.Time, with ...string) (found *gql.Event) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		l.readOn()
		for i, told := range l.told {
			about := ""
			if told.MemberId != nil {
				about = *told.MemberId
			}
			if told.Type != kind || about != member || !told.OccurredAt.After(since) {
				continue
			}
			payload := payloadOf(l.t, &told)
			if !slices.ContainsFunc(with, func(key string) bool { return payload[key] == nil }) {
				found = &l.told[i]
				return true
			}
		}
		return false
	}, noticed, 200*time.Millisecond, "no %s of %s within %s", kind, member, noticed)
	return found
}

// readOn reads what the timeline has since the last look.
func (l *lodging) readOn() {
	l.t.Helper()
	for {
		after := ""
		if len(l.told) > 0 {
			after = l.told[len(l.told)-1].Cursor
		}
		page, err := gql.ListEvents(l.ctx, l.c, l.instance, 100, after)
		require.NoError(l.t, err)
		for _, edge := range page.Instance.Events.Edges {
			l.told = append(l.told, edge.Node)
		}
		if !page.Instance.Events.PageInfo.HasNextPage {
			return
		}
	}
}

// byThePlatform waits for the end of the newest operation of a kind that the platform itself has begun, and requires
// that it succeeded.
func (l *lodging) byThePlatform(kind gql.OperationKind, since time.Time) (found *gql.OperationDetail) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		page, err := gql.ListOperations(l.ctx, l.c, shared.Demo.ProjectID, nil, 50, "")
		require.NoError(l.t, err)
		for _, edge := range page.Operations.Edges {
			op := edge.Node
			if op.Kind == kind && op.InstanceId != nil && *op.InstanceId == l.instance && op.CreatedAt.After(since) {
				require.Equal(l.t, "SYSTEM", string(op.Requester.Kind))
				require.NotEmpty(l.t, op.Reason)
				found = succeeds(l.t, l.ctx, l.c, op.Id)
				return true
			}
		}
		return false
	}, time.Minute, 200*time.Millisecond, "the platform began no %s", kind)
	return found
}

func (l *lodging) cordonKeepsNewMembersAway(allocation string) {
	l.t.Helper()
	node := l.on("node-1").Node.Id
	_, err := gql.CordonNode(l.ctx, shared.Operator, gql.NodeOperateInput{NodeId: node, Reason: "planned maintenance"})
	require.NoError(l.t, err)
	_, err = gql.AddMembers(l.ctx, l.c, gql.AddMembersInput{
		InstanceId: l.instance, ComponentKey: "peer", Count: 1, AllocationIds: []string{allocation},
		IdempotencyKey: client.NewKey(),
	})
	refused, ok := client.AsError(err)
	require.True(l.t, ok, "%v", err)
	require.NotEmpty(l.t, refused.Reasons)
	require.Equal(l.t, "NODE_CORDONED", refused.Reasons[0].Code)
	require.Len(l.t, l.peers(), 2, "nothing was written")
	require.Equal(l.t, gql.MemberStatusActive, l.on("node-1").Status, "what is there goes on")
	l.uncordon(node)
}

func (l *lodging) drainAndBack() {
	l.t.Helper()
	since, node := time.Now(), l.on("node-1").Node.Id
	_, err := gql.DrainNode(l.ctx, shared.Operator, gql.DrainNodeInput{NodeId: node, DeadlineSeconds: 120,
		Reason: "planned maintenance"})
	require.NoError(l.t, err)
	l.becomes("node-1", gql.MemberStatusDrained)
	require.Contains(l.t, l.byThePlatform(gql.OperationKindMemberDrain, since).Reason, "planned maintenance")
	lodgers, err := gql.ListNodeMembers(l.ctx, shared.Operator, node, "")
	require.NoError(l.t, err)
	require.Equal(l.t, "hello-nodes", lodgers.NodeMembers[0].InstanceName)
	l.uncordon(node)
	l.byThePlatform(gql.OperationKindMemberUncordon, since)
	l.becomes("node-1", gql.MemberStatusActive)
}

// killed ends the init of the member on a node, requires its event, and returns the member and when it died.
func (l *lodging) killed(node string) (gql.Member, time.Time) {
	l.t.Helper()
	member, since := l.on(node), time.Now()
	killInit(l.t, l.ctx, nodeOf(l.t, member), member.Id)
	told := l.hears(member.Id, "apps.instance.member_failed", since)
	require.JSONEq(l.t, `"INIT_GONE"`, string(payloadOf(l.t, told)["cause"]))
	return member, since
}

func (l *lodging) deadMemberIsRecoveredByAPerson() {
	l.t.Helper()
	member, _ := l.killed("node-1")
	require.Equal(l.t, gql.MemberStatusFailed, l.on("node-1").Status, "nobody repairs under MANUAL")
	l.recover(member)
}

func (l *lodging) recover(member gql.Member) {
	l.t.Helper()
	recovered, err := gql.RecoverMember(l.ctx, l.c, gql.MemberInput{MemberId: member.Id, DeadlineSeconds: 120,
		IdempotencyKey: client.NewKey()})
	require.NoError(l.t, err)
	succeeds(l.t, l.ctx, l.c, recovered.RecoverMember.Operation.Id)
	require.Equal(l.t, gql.MemberStatusActive, l.on(member.Node.Name).Status)
}

// repairs has the platform repair the instance, so often within an hour.
func (l *lodging) repairs(budget int) {
	l.t.Helper()
	_, err := gql.SetRepairPolicy(l.ctx, l.c, gql.SetRepairPolicyInput{InstanceId: l.instance,
		Mode:   gql.RepairModeAutomatic,
		Budget: budget, BackOffSeconds: 5, Reason: "end-to-end test"})
	require.NoError(l.t, err)
}

func (l *lodging) deadMemberIsRecoveredByThePlatform() {
	l.t.Helper()
	l.repairs(10)
	member, since := l.killed("node-1")
	l.byThePlatform(gql.OperationKindMemberRecover, since)
	require.Equal(l.t, member.Id, l.becomes("node-1", gql.MemberStatusActive).Id, "it was recovered, and not replaced")
}

// restartBringsItsMembersBack kills a node with its agent and all members on it, and boots it again.
func (l *lodging) restartBringsItsMembersBack() {
	l.t.Helper()
	member, since := l.on("node-1"), time.Now()
	require.NoError(l.t, nodeOf(l.t, member).Kill())
	require.NoError(l.t, shared.ReviveNode(l.ctx, "node-1"))
	told := l.hears(member.Id, "apps.instance.member_failed", since)
	require.JSONEq(l.t, `"NODE_RESTARTED"`, string(payloadOf(l.t, told)["cause"]))
	l.byThePlatform(gql.OperationKindMemberRecover, since)
	require.Equal(l.t, member.Id, l.becomes("node-1", gql.MemberStatusActive).Id)
}

// lostNodeIsReplacedAndWrittenOff kills a node for good: the timeline reports it within seconds, an operator writes it
// off, its member fails, and the platform puts another in its place.
func (l *lodging) lostNodeIsReplacedAndWrittenOff(doomed *stack.Node) {
	l.t.Helper()
	member, since := l.on(doomed.Name()), time.Now()
	require.NoError(l.t, doomed.Kill())
	told := l.hears(member.Id, "apps.instance.member_changed", since, "reachable") // the adapter may see it sick before
	require.JSONEq(l.t, "false", string(payloadOf(l.t, told)["reachable"]))
	retired, err := gql.RetireNode(l.ctx, shared.Operator,
		gql.RetireNodeInput{NodeId: member.Node.Id, Lost: true, Reason: "it burned"})
	require.NoError(l.t, err)
	require.True(l.t, retired.RetireNode.Lost)
	shared.ForgetNode(doomed.Name())
	l.hears("", "apps.allocation.failed", since)
	told = l.hears(member.Id, "apps.instance.member_failed", since)
	require.JSONEq(l.t, `"NODE_LOST"`, string(payloadOf(l.t, told)["cause"]))
	l.byThePlatform(gql.OperationKindMemberReplace, since)
	peers := l.peers()
	require.Len(l.t, peers, 2)
	for _, peer := range peers {
		require.NotEqual(l.t, doomed.Name(), peer.Node.Name)
		require.Equal(l.t, gql.MemberStatusActive, peer.Status)
	}
}

// budgetIsSpent lets the platform do no more repairs than it has done, and requires that it reports this and leaves the
// rest to people.
func (l *lodging) budgetIsSpent() {
	l.t.Helper()
	l.repairs(1)
	member, _ := l.killed("node-1")
	require.Eventually(l.t, func() bool {
		got, err := gql.GetRepair(l.ctx, l.c, l.instance)
		require.NoError(l.t, err)
		return got.Instance.RepairStopped != ""
	}, noticed, 200*time.Millisecond, "the platform does not say that it has stopped")
	require.Equal(l.t, gql.MemberStatusFailed, l.on("node-1").Status)
	l.recover(member)
}
