package workers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	dborphan "github.com/gpuaas/app-platform/ent/generated/db/orphan"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// cluster is a running instance with an adapter that a test scripts. Its first member lives in the
// allocation of its world, its second in one of its own on a second node; there is a third allocation
// on that node, which is not used.
type cluster struct {
	*lab
	launched
	script       *script
	second       ids.ID // the second node
	theirs, free ids.ID // allocations on it
	newcomer     ids.ID // a member on its way in, for kinds that have one
	op           ids.ID
	to           ids.ID // the manifest of an upgrade
}

func (l *lab) cluster(name string) *cluster {
	l.Helper()
	c := &cluster{lab: l, script: l.script(name)}
	c.launched = l.launch(l.world(name, c.script.url), time.Minute)
	c.script.succeed(string(c.create), c.script.dispatched(string(c.create))[0].Attempt)
	op := l.ended(c.create)
	require.Equal(l.TB, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	c.furnish(name)
	return c
}

// furnish lays down the second node with its allocations, and the first generation.
func (c *cluster) furnish(name string) {
	c.Helper()
	l := c.lab
	c.second, c.theirs, c.free = ids.New(ids.Node), ids.New(ids.Allocation), ids.New(ids.Allocation)
	l.own.ComputeNode.Create().SetID(c.second).SetName("second-" +
		name).SetAddress("10.0.0.2").SetStatus(lifecycle.NodeOnline).SetCpus(4).
		SetMemoryMib(1000).SetGpus(0).SetIsolation("PROCESS").SetSealingKey("a2V5").
		SetLastSeenAt(time.Now().Add(time.Hour)).SaveX(l.Context())
	for _, id := range []ids.ID{c.theirs, c.free} {
		l.own.Allocation.Create().SetID(id).SetTenantID(c.tenant).SetProjectID(c.project).
			SetShape(lifecycle.ShapeBaremetal).
			SetGpuCount(0).SetStatus(lifecycle.AllocationReady).SetNodeID(c.second).SaveX(l.Context())
	}
	l.own.Allocation.UpdateOneID(c.theirs).SetInstanceID(c.instance).ExecX(l.Context())
	l.own.Member.UpdateOneID(c.members[1]).SetAllocationID(c.theirs).SetNodeID(c.second).ExecX(l.Context())
	l.own.Generation.Create().SetID(ids.New(ids.Generation)).SetTenantID(c.tenant).SetProjectID(c.project).
		SetInstanceID(c.instance).SetNumber(1).
		SetManifestID(c.manifest).SetAppVersion("1.0.0").SetConfig(json.RawMessage(`{"a":2,"b":1}`)).SaveX(l.Context())
}

// asked is an operation as its verb writes it.
type asked struct {
	kind       lifecycle.OperationKind
	force      bool
	onDeadline lifecycle.DeadlineOutcome
	deadline   time.Duration
	keep       bool
	planned    *operation.Planned // what its plan showed; nil for an operation without one
	age        time.Duration      // how long ago it was accepted
	brought    bool               // the newcomer's allocation was there before
}

// ask writes an operation of a kind on the second member, or on a newcomer, with all that its verb does
// to the instance, and wakes the workers.
func (c *cluster) ask(a asked) ids.ID {
	c.Helper()
	c.op = ids.New(ids.Operation)
	if a.deadline == 0 {
		a.deadline = time.Minute
	}
	if a.onDeadline == "" {
		a.onDeadline = lifecycle.DeadlineFail
	}
	targets, change := []ids.ID{c.members[1]}, map[string]any{}
	private := map[string]any{"keepFailed": a.keep}
	if a.planned != nil {
		private["planned"] = a.planned
	}
	switch a.kind {
	case lifecycle.MembersAdd:
		targets = []ids.ID{c.arrive(a, private)}
		change["components"] = []map[string]any{{"key": "peer", "count": 1}}
		c.want(3)
	case lifecycle.MemberReplace:
		change["replacementId"] = c.arrive(a, private)
	case lifecycle.MemberRemove:
		c.want(1)
	case lifecycle.MemberRecover:
		c.own.Member.UpdateOneID(c.members[1]).SetStatus(lifecycle.MemberFailed).ExecX(c.Context())
	case lifecycle.MemberUncordon:
		c.own.Member.UpdateOneID(c.members[1]).SetStatus(lifecycle.MemberDraining).SetCordoned(true).ExecX(c.Context())
		c.own.Member.UpdateOneID(c.members[1]).SetStatus(lifecycle.MemberDrained).ExecX(c.Context())
	case lifecycle.MemberLabel:
		change["labels"] = map[string]string{"tier": "gold"}
	case lifecycle.InstanceUpgrade, lifecycle.InstanceRollback:
		targets = nil
		c.newVersion(change, private)
	case lifecycle.InstanceDecommission:
		targets = nil
		c.own.Instance.UpdateOneID(c.instance).SetStatus(lifecycle.InstanceStopping).ExecX(c.Context())
	}
	change["platform"] = private
	encoded, err := json.Marshal(change)
	require.NoError(c.TB, err)
	create := c.own.Operation.Create().SetID(c.op).SetTenantID(c.tenant).SetProjectID(c.project).
		SetInstanceID(c.instance).SetKind(a.kind).
		SetState(lifecycle.OperationPending).SetAdapterName(c.adapter).SetRequesterKind("USER").SetRequesterID("usr_1").
		SetCorrelationID("corr").
		SetDesiredChange(encoded).SetDeadline(time.Now().Add(a.deadline)).SetCreatedAt(time.Now().Add(-a.age)).
		SetForce(a.force).SetOnDeadline(a.onDeadline)
	if targets != nil {
		create.SetTargets(targets)
	}
	create.SaveX(c.Context())
	c.hub.Wake(event.QueueTopic)
	return c.op
}

// overdue waits until the adapter works on an operation, and has its deadline pass.
func (c *cluster) overdue(op ids.ID) {
	c.Helper()
	c.until("the adapter works on it", func() bool { return len(c.lab.op(op).AdapterStatus) > 0 })
	c.expire(op)
}

// arrive creates a member PENDING in the free allocation, which the operation requested unless it was brought.
func (c *cluster) arrive(a asked, private map[string]any) ids.ID {
	c.newcomer = ids.New(ids.Member)
	node := *c.own.Allocation.GetX(c.Context(), c.free).NodeID
	bound := c.own.Allocation.UpdateOneID(c.free).SetInstanceID(c.instance)
	if !a.brought {
		bound.SetCreatedByOperationID(c.op)
		private["createdAllocations"] = []ids.ID{c.free}
	}
	bound.ExecX(c.Context())
	c.own.Member.Create().SetID(c.newcomer).SetTenantID(c.tenant).SetProjectID(c.project).SetInstanceID(c.instance).
		SetComponentKey("peer").
		SetOrdinal(2).SetStatus(lifecycle.MemberPending).SetAllocationID(c.free).SetNodeID(node).SaveX(c.Context())
	return c.newcomer
}

// want sets how many peers the instance's roles desire.
func (c *cluster) want(desired int) {
	c.own.Instance.UpdateOneID(c.instance).SetRoles(json.RawMessage(
		fmt.Sprintf(`[{"componentKey":"peer","displayName":"Peer","desired":%d,"current":2,"healthy":0,"summary":""}]`,
			desired))).ExecX(c.Context())
}

// newVersion publishes version 2.0.0 and leads the operation to it.
func (c *cluster) newVersion(change, private map[string]any) {
	before := c.own.Manifest.GetX(c.Context(), c.manifest)
	c.to = ids.New(ids.Manifest)
	c.own.Manifest.Create().SetID(c.to).SetAppID(before.AppID).SetAppSlug(before.AppSlug).SetVersion("2.0.0").
		SetStage(lifecycle.StageCanary).
		SetDigest("sha256:2").SetDocument([]byte(strings.ReplaceAll(demo, `"answers"`,
		`"answers-anew"`))).SetAdapterName(c.adapter).SaveX(c.Context())
	old := map[string]any{"version": "1.0.0", "config": map[string]any{"a": 2, "b": 1}}
	now := map[string]any{"version": "2.0.0", "config": map[string]any{"a": 3}}
	change["from"], change["to"] = old, now
	private["from"] = map[string]any{"manifestId": c.manifest, "version": "1.0.0", "config": old["config"]}
	private["to"] = map[string]any{"manifestId": c.to, "version": "2.0.0", "config": now["config"]}
}

// says has the adapter report on the operation's current dispatch: a state, and the statuses of the second member and
// the newcomer; empty for none.
func (c *cluster) says(state adapter.State, second, newcomer adapter.MemberStatus) {
	c.Helper()
	all := c.script.dispatched(string(c.op))
	status := adapter.Status{OperationID: string(c.op), Attempt: all[len(all)-1].Attempt, State: state, Percent: 50,
		Phase:    "working",
		Evidence: map[string]json.RawMessage{"seen": json.RawMessage(`"all of it"`)}}
	if second != "" {
		status.Members = append(status.Members, adapter.MemberUpdate{ID: string(c.members[1]), Status: second,
			Health: adapter.Healthy})
	}
	if newcomer != "" {
		status.Members = append(status.Members, adapter.MemberUpdate{ID: string(c.newcomer), Status: newcomer,
			Health: adapter.Healthy})
	}
	if state == adapter.StateFailed {
		status.Error = &adapter.OperationError{Code: "BROKEN", Message: "it broke", Owner: adapter.OwnerAdapter}
	}
	c.script.say(status)
}

// cancel asks the operation to stop, as its verb does.
func (c *cluster) cancel() {
	c.Helper()
	tag, err := c.pool().Exec(c.Context(), `UPDATE operation SET state = 'CANCELING', cancel_requested_at = now(),
		cancel_requester = 'Ada',
		cancel_reason = 'a better idea', next_run_at = now() WHERE id = $1 AND state = 'RUNNING'`, c.op)
	require.NoError(c.TB, err)
	require.EqualValues(c.TB, 1, tag.RowsAffected())
	c.hub.Wake(event.QueueTopic)
}

// world spells everything an operation's end is about in one line.
func (c *cluster) world() string {
	c.Helper()
	ctx := c.Context()
	op := c.operation()
	out := string(op.State)
	if op.Outcome != nil {
		out += " " + string(*op.Outcome)
	}
	out += strings.TrimRight(" "+op.ErrorCode, " ") + " |"
	for _, member := range c.own.Member.Query().Where(dbmember.InstanceID(c.instance)).
		Order(dbmember.ByOrdinal()).AllX(ctx) {
		out += " " + string(member.Status)
		if member.Cordoned {
			out += "+cordoned"
		}
	}
	instance := c.own.Instance.GetX(ctx, c.instance)
	var roles []struct{ Desired, Current int }
	require.NoError(c.TB, json.Unmarshal(instance.Roles, &roles))
	out += fmt.Sprintf(" | %d of %d | theirs %s free %s | generation %d %s | orphans %d", roles[0].Current,
		roles[0].Desired,
		c.allocated(c.theirs), c.allocated(c.free), instance.Generation, instance.AppVersion,
		c.own.Orphan.Query().Where(dborphan.InstanceID(c.instance), dborphan.ResolvedAtIsNil()).CountX(ctx))
	return out
}

func (c *cluster) allocated(id ids.ID) string {
	row := c.own.Allocation.GetX(c.Context(), id)
	out := strings.ToLower(string(row.Status))
	if row.InstanceID != nil {
		out += " bound"
	}
	return out
}

func (c *cluster) operation() *db.Operation { return c.lab.op(c.op) }

// end waits for the operation's end.
func (c *cluster) end() *db.Operation { c.Helper(); return c.ended(c.op) }
