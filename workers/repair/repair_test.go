package repair_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	rules "github.com/gpuaas/app-platform/domain/repair"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/workers/repair"
)

// bench is a running instance of two workers, each on a node of its own.
type bench struct {
	*platformtest.Kit
	*testing.T
	instance *db.Instance
	members  []*db.Member
	repairer *repair.Repairer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Kit: platformtest.New(t), T: t}
	project := b.Kit.Project(b.Tenant())
	app := b.App("apps")
	adapter := b.Adapter("http://127.0.0.1:1", nil)
	stored := b.Manifest(lifecycle.StageActive, platformtest.Document(app, "1.0.0", adapter,
		b.Artifact(lifecycle.StageActive)))
	b.Entitle(project, app)
	var homes []*db.Allocation
	for range 2 {
		node, _ := b.Node(0)
		homes = append(homes, b.Allocation(project, node))
	}
	b.instance = b.Instance(project, stored, lifecycle.InstanceRunning, homes...)
	b.SQL(`UPDATE member SET status = 'ACTIVE' WHERE instance_id = $1`, b.instance.ID)
	b.members = b.Ent.Member.Query().Order(db.Asc("ordinal")).AllX(b.Context())
	b.repairer = repair.New(b.DB, slog.New(slog.DiscardHandler), time.Minute)
	return b
}

// lose has a member lost.
func (b *bench) lose(member *db.Member, why lifecycle.MemberFailure) {
	b.SQL(`UPDATE member SET status = 'FAILED', failure = $2, failed_at = now() WHERE id = $1`, member.ID, why)
}

// away has a member's node lost, and the member with it.
func (b *bench) away(member *db.Member) {
	b.SQL(`UPDATE compute_node SET status = 'OFFLINE', last_seen_at = now() - interval '1 hour'
		WHERE id = $1`, member.NodeID)
	b.lose(member, lifecycle.FailureNodeLost)
}

func (b *bench) policy(change func(*rules.Policy)) {
	policy := rules.Default()
	policy.Mode = rules.Automatic
	if change != nil {
		change(&policy)
	}
	raw, err := json.Marshal(policy)
	require.NoError(b, err)
	b.SQL(`UPDATE instance SET repair = $2 WHERE id = $1`, b.instance.ID, raw)
}

// look has the repairer look once, and returns the operations there are.
func (b *bench) look() []*db.Operation {
	b.Helper()
	require.NoError(b, b.repairer.Repair(b.Context()))
	return b.Ent.Operation.Query().Order(db.Asc("id")).AllX(b.Context())
}

// end ends an operation without success, long enough ago for the next try.
func (b *bench) end(op *db.Operation) {
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now() - interval '20 minutes' WHERE id = $1`, op.ID)
}

func (b *bench) now() *db.Instance { return b.Ent.Instance.GetX(b.Context(), b.instance.ID) }

func TestAMemberThatARestartOfItsNodeEndedIsRecoveredUnderAnyPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.lose(b.members[0], lifecycle.FailureNodeRestarted)
	ops := b.look()
	require.Len(t, ops, 1)
	require.Equal(t, lifecycle.MemberRecover, ops[0].Kind)
	require.Equal(t, []ids.ID{b.members[0].ID}, ops[0].Targets)
	require.Equal(t, string(authz.KindSystem), ops[0].RequesterKind)
	require.Equal(t, "repair", ops[0].RequesterName)
	require.Contains(t, ops[0].Reason, "its node has restarted")
	require.Equal(t, 1, b.Count("audit_entry", "action = 'repairMember' AND object_id = $1", b.members[0].ID))
	require.Len(t, b.look(), 1, "one at a time")
}

func TestOtherFailuresAreLeftToPeopleUnlessThePolicySaysOtherwise(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.lose(b.members[0], lifecycle.FailureInitGone)
	require.Empty(t, b.look())
	b.policy(nil)
	require.Len(t, b.look(), 1)
}

func TestAMemberOfALostNodeIsReplacedIntoCapacityLikeItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(0) // free
	b.SQL(`UPDATE compute_node SET status = 'OFFLINE', last_seen_at = now() - interval '1 hour'
		WHERE id = $1`, b.members[1].NodeID)
	require.NoError(t, b.repairer.FailOnLostNodes(t.Context()))
	require.Equal(t, lifecycle.MemberActive, b.Ent.Member.GetX(t.Context(), b.members[1].ID).Status,
		"the platform may have been away itself")
	b.repairer.NodeGrace = time.Nanosecond
	require.NoError(t, b.repairer.FailOnLostNodes(t.Context()))
	lost := b.Ent.Member.GetX(t.Context(), b.members[1].ID)
	require.Equal(t, lifecycle.MemberFailed, lost.Status)
	require.Equal(t, lifecycle.FailureNodeLost, *lost.Failure)
	require.Equal(t, lifecycle.MemberActive, b.Ent.Member.GetX(t.Context(), b.members[0].ID).Status)
	require.Empty(t, b.look(), "not under a manual policy")
	b.policy(nil)
	ops := b.look()
	require.Len(t, ops, 1, b.now().RepairStopped)
	require.Equal(t, lifecycle.MemberReplace, ops[0].Kind)
	require.True(t, ops[0].Force, "the lost node proves nothing")
	require.Equal(t, 1, b.Count("allocation", "created_by_operation_id = $1", ops[0].ID))
}

func TestAMemberOfANodeThatIsBackIsRecoveredThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.lose(b.members[1], lifecycle.FailureNodeLost)
	b.SQL(`UPDATE compute_node SET status = 'ONLINE', last_seen_at = now() WHERE id = $1`, b.members[1].NodeID)
	ops := b.look()
	require.Len(t, ops, 1)
	require.Equal(t, lifecycle.MemberRecover, ops[0].Kind)
}

func TestRepairStopsAndSaysSoWhenARuleRefusesIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy(nil)
	b.away(b.members[1])
	require.Empty(t, b.look(), "no node is free")
	require.Contains(t, b.now().RepairStopped, "CAPACITY_EXHAUSTED")
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.instance.repair_stopped'"))
	b.look()
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.instance.repair_stopped'"), "told once")
	b.SQL(`UPDATE member SET status = 'JOINING' WHERE id = $1`, b.members[1].ID)
	b.SQL(`UPDATE member SET status = 'ACTIVE', failure = NULL WHERE id = $1`, b.members[1].ID)
	b.look()
	require.Empty(t, b.now().RepairStopped)
}

func TestManyInstancesThatCannotBeRepairedKeepNoneFromIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`INSERT INTO instance SELECT (jsonb_populate_record(i, jsonb_build_object('id', 'ins_0' || n, 'name',
		'damaged-'
		|| n,
		'repair_stopped', 'for good'))).* FROM instance i, generate_series(100, 199) n WHERE i.id = $1`, b.instance.ID)
	b.SQL(`INSERT INTO member (id, tenant_id, project_id, instance_id, component_key, ordinal, status, failure, node_id,
		correlation_id, created_at, updated_at) SELECT 'mem_0' || n, tenant_id, project_id, 'ins_0' || n, component_key,
		ordinal, 'FAILED', 'EXITED', node_id, correlation_id, created_at, updated_at
		FROM member, generate_series(100, 199) n WHERE id = $1`, b.members[0].ID)
	b.lose(b.members[0], lifecycle.FailureNodeRestarted)
	require.Empty(t, b.look(), "a look has its bound")
	require.Len(t, b.look(), 1)
}

func TestCapacityOfAReplacementIsHeldToItsLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Node(0)
	b.policy(func(p *rules.Policy) { p.HourlyLimitMicros = new(1) })
	b.away(b.members[1])
	require.Empty(t, b.look())
	require.Contains(t, b.now().RepairStopped, "LIMIT_EXCEEDED")
	require.Equal(t, 0, b.Count("allocation", "created_by_operation_id IS NOT NULL"), "nothing is kept")
}

func TestABudgetThatIsSpentEndsAnInstanceWithoutService(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy(func(p *rules.Policy) { p.Budget = 1 })
	b.lose(b.members[0], lifecycle.FailureInitGone)
	ops := b.look()
	require.Len(t, ops, 1)
	b.end(ops[0])
	require.Len(t, b.look(), 1, "the budget is spent")
	require.Contains(t, b.now().RepairStopped, "its budget of 1 within an hour is spent")
	require.Equal(t, lifecycle.InstanceRunning, b.now().Status, "it still serves")
	b.SQL(`UPDATE instance SET unserved_at = now() WHERE id = $1`, b.instance.ID)
	b.look()
	require.Equal(t, lifecycle.InstanceFailed, b.now().Status)
	require.Equal(t, "BUDGET_SPENT", b.now().FailureCode)
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.instance.failed'"))
}

func TestAnInstanceIsGivenUpWhenItsGraceIsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`UPDATE instance SET unserved_at = now() - interval '2 minutes' WHERE id = $1`, b.instance.ID)
	require.NoError(t, b.repairer.GiveUp(t.Context()))
	require.Equal(t, lifecycle.InstanceRunning, b.now().Status, "without a policy never")
	b.policy(func(p *rules.Policy) { p.GraceSeconds = new(121) })
	require.NoError(t, b.repairer.GiveUp(t.Context()))
	require.Equal(t, lifecycle.InstanceRunning, b.now().Status)
	b.policy(func(p *rules.Policy) { p.GraceSeconds = new(60) })
	require.NoError(t, b.repairer.GiveUp(t.Context()))
	require.Equal(t, lifecycle.InstanceFailed, b.now().Status)
	require.Equal(t, "GRACE_OVER", b.now().FailureCode)
}
