package workers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbevent "github.com/gpuaas/app-platform/ent/generated/db/event"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dbmanifest "github.com/gpuaas/app-platform/ent/generated/db/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/service/retry"
)

// Other tests write operations by hand, to say exactly what workers make of them. Here the verbs
// themselves write them, so that the two halves are held to the same word.

// asker is a project's admin with every verb.
type asker struct {
	*cluster
	ctx       context.Context
	members   *member.Service
	instances *instance.Service
	used      int
}

func (c *cluster) asker() *asker {
	c.Helper()
	ctx := c.Context()
	user := ids.New(ids.User)
	c.own.User.Create().SetID(user).SetTenantID(c.tenant).SetEmail("ada@example.test").SetDisplayName("Ada").SaveX(ctx)
	c.own.RoleBinding.Create().SetID(ids.New(ids.RoleBinding)).SetUserID(user).SetRole(string(authz.ProjectAdmin)).
		SetTenantID(c.tenant).
		SetProjectID(c.project).SaveX(ctx)
	text, secret := token.Mint(token.Session)
	c.own.Session.Create().SetID(secret.ID).SetUserID(user).SetSecretHash(secret.Hash).
		SetExpiresAt(time.Now().Add(time.Hour)).ExecX(ctx)
	credential, err := tx.ParseCredential(text, c.ring, time.Now())
	require.NoError(c.TB, err)
	// A launch by hand names no app that is there, and no config.
	c.own.Instance.Update().Where(dbinstance.ID(c.instance)).SetAppSlug(c.own.Manifest.GetX(ctx,
		c.manifest).AppSlug).SetConfig(json.RawMessage(`{"a":2,"b":1}`)).ExecX(ctx)
	return &asker{cluster: c, ctx: tx.WithCredential(ctx, credential), members: &member.Service{DB: c.db},
		instances: &instance.Service{DB: c.db}}
}

// newer publishes the active version 2.0.0.
func (a *asker) newer() {
	before := a.own.Manifest.GetX(a.Context(), a.manifest)
	a.own.Manifest.Update().Where(dbmanifest.ID(a.manifest)).SetStage(lifecycle.StageDeprecated).ExecX(a.Context())
	a.own.Manifest.Create().SetID(ids.New(ids.Manifest)).SetAppID(before.AppID).SetAppSlug(before.AppSlug).
		SetVersion("2.0.0").
		SetStage(lifecycle.StageActive).SetDigest("sha256:2").
		SetDocument([]byte(strings.ReplaceAll(string(before.Document),
			`"version":"1.0.0"`, `"version":"2.0.0"`))).
		SetAdapterName(a.adapter).SaveX(a.Context())
}

func (a *asker) key() string {
	a.used++
	return "key-" + string(rune('a'+a.used))
}

// input is a verb's input on the second member.
func (a *asker) input() member.Input {
	return member.Input{MemberID: a.cluster.members[1], DeadlineSeconds: 60, Reason: "a test", IdempotencyKey: a.key()}
}

// asks calls the verb of a kind and notes its operation.
func (a *asker) asks(kind lifecycle.OperationKind) {
	a.Helper()
	op, newcomer, err := a.call(kind)
	require.NoError(a.TB, err)
	a.op, a.newcomer = op.ID, newcomer
}

func (a *asker) call(kind lifecycle.OperationKind) (*operation.View, ids.ID, error) {
	plain := map[lifecycle.OperationKind]func(context.Context, member.Input) (*member.Changed, error){
		lifecycle.MemberDrain: a.members.Drain, lifecycle.MemberCordon: a.members.Cordon,
		lifecycle.MemberUncordon: a.members.Uncordon,
		lifecycle.MemberRemove:   a.members.Remove, lifecycle.MemberRecover: a.members.Recover,
		lifecycle.MemberLabel: func(ctx context.Context, in member.Input) (*member.Changed, error) {
			return a.members.Label(ctx, member.LabelInput{Input: in, Labels: json.RawMessage(`{"tier":"gold"}`)})
		},
		lifecycle.MemberReplace: func(ctx context.Context, in member.Input) (*member.Changed, error) {
			return a.members.Replace(ctx, member.ReplaceInput{Input: in, AllocationID: a.free})
		},
	}
	if verb, ok := plain[kind]; ok {
		return opOf(verb(a.ctx, a.input()))
	}
	in := a.input()
	switch kind {
	case lifecycle.MembersAdd:
		added, err := a.members.Add(a.ctx, member.AddInput{InstanceID: a.instance, ComponentKey: "peer", Count: 1,
			AllocationIDs:   []ids.ID{a.free},
			DeadlineSeconds: 60, IdempotencyKey: in.IdempotencyKey})
		if err != nil {
			return nil, "", err
		}
		return added.Operation, added.Members[0].ID, nil
	case lifecycle.InstanceUpgrade:
		return startedOf(a.instances.Upgrade(a.ctx, instance.UpgradeInput{InstanceID: a.instance, Version: "2.0.0",
			Config:          json.RawMessage(`{"a":3}`),
			DeadlineSeconds: 60, IdempotencyKey: in.IdempotencyKey}))
	case lifecycle.InstanceRollback:
		return startedOf(a.instances.Rollback(a.ctx, instance.RollbackInput{InstanceID: a.instance, DeadlineSeconds: 60,
			IdempotencyKey: in.IdempotencyKey}))
	}
	return startedOf(a.instances.Decommission(a.ctx,
		instance.DecommissionInput{InstanceID: a.instance, DeadlineSeconds: 60, IdempotencyKey: in.IdempotencyKey}))
}

func opOf(changed *member.Changed, err error) (*operation.View, ids.ID, error) {
	switch {
	case err != nil:
		return nil, "", err
	case changed.Replacement != nil:
		return changed.Operation, changed.Replacement.ID, nil
	}
	return changed.Operation, "", nil
}

func startedOf(started *instance.Started, err error) (*operation.View, ids.ID, error) {
	if err != nil {
		return nil, "", err
	}
	return started.Operation, "", nil
}

// prepare brings the cluster to where the verb of the kind is accepted.
func (a *asker) prepare(kind lifecycle.OperationKind) {
	a.Helper()
	second := a.cluster.members[1]
	switch kind {
	case lifecycle.MemberRecover:
		a.own.Member.UpdateOneID(second).SetStatus(lifecycle.MemberFailed).ExecX(a.Context())
	case lifecycle.MemberUncordon:
		a.runs(lifecycle.MemberDrain, adapter.MemberDrained)
	case lifecycle.InstanceUpgrade:
		a.newer()
	case lifecycle.InstanceRollback:
		a.newer()
		a.runs(lifecycle.InstanceUpgrade, "")
	}
}

// runs carries a kind to its good end.
func (a *asker) runs(kind lifecycle.OperationKind, second adapter.MemberStatus) {
	a.Helper()
	a.asks(kind)
	a.says(adapter.StateSucceeded, second, "")
	op := a.end()
	require.Equal(a.TB, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
}

func TestWhatTheVerbsWriteIsWhatTheWorkersCarryOut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		a := c.asker()
		a.prepare(r.kind)
		a.asks(r.kind)
		a.says(adapter.StateSucceeded, r.second, r.newcomer)
		op := a.end()
		want := r.good
		if r.kind == lifecycle.InstanceRollback { // after the upgrade, to exactly what ran before it
			want = strings.Replace(want, "generation 2 2.0.0", "generation 3 1.0.0", 1)
			require.JSONEq(t, `{"a":2,"b":1}`, string(c.own.Instance.GetX(t.Context(), c.instance).Config))
		}
		require.Equal(t, want, a.world(), op.ErrorMessage)
		sent := c.script.dispatched(string(op.ID))[0]
		require.NotContains(t, string(sent.Change), "platform", "the platform's part stays here")
		require.Len(t, sent.Targets, len(op.Targets))
	})
}

func TestAnAdditionThatFailsIsTakenBackAndRetried(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	a := l.cluster("again").asker()
	a.asks(lifecycle.MembersAdd)
	first := a.newcomer
	a.says(adapter.StateFailed, "", "")
	require.Equal(t, lifecycle.OperationFailed, a.end().State)
	require.Equal(t, "FAILED ADAPTER_FAILED"+strings.Replace(takenOff, "free released", "free ready", 1), a.world(),
		"what was brought is only unbound")
	failed := a.op
	again := &retry.Service{DB: a.db, Members: a.members.Again, Instances: a.instances.Again}
	view, err := again.Retry(a.ctx, retry.Input{OperationID: failed, IdempotencyKey: "retry"})
	require.NoError(t, err)
	a.op, a.newcomer = view.ID, view.Targets[0]
	require.NotEqual(t, first, a.newcomer)
	a.says(adapter.StateSucceeded, "", adapter.MemberActive)
	op := a.end()
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Equal(t, failed, *op.RetryOf)
	require.Contains(t, a.world(), "3 of 3")
}

func TestACancelByItsVerbIsToldToTheAdapterAndUndoesTheDrain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	a := l.cluster("stop").asker()
	a.asks(lifecycle.MemberDrain)
	a.script.dispatched(string(a.op))
	stopped, err := operation.Cancel(a.ctx, a.db, a.op, "a better idea")
	require.NoError(t, err)
	require.Contains(t, []lifecycle.OperationState{lifecycle.OperationCanceling, lifecycle.OperationCanceled},
		stopped.State)
	require.Equal(t, "canceled by Ada: a better idea", a.end().ErrorMessage)
	require.Equal(t, "CANCELED CANCELED"+asBefore, a.world())
}

func TestAnAdditionCanceledBeforeAnyWorkerSawItLeavesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stop := l.work()
	a := l.cluster("early").asker()
	stop()
	a.asks(lifecycle.MembersAdd)
	stopped, err := operation.Cancel(a.ctx, a.db, a.op, "")
	require.NoError(t, err)
	require.Equal(t, lifecycle.OperationCanceling, stopped.State)
	l.work()
	require.Equal(t, lifecycle.OperationCanceled, a.end().State)
	require.Equal(t, "CANCELED CANCELED"+strings.Replace(takenOff, "free released", "free ready", 1), a.world())
}

func TestARemovalTakesOverADrainUnderWay(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	a := l.cluster("over").asker()
	a.asks(lifecycle.MemberDrain)
	drain := a.op
	a.script.dispatched(string(drain))
	a.asks(lifecycle.MemberRemove)
	a.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	op := a.end()
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	old := l.op(drain)
	require.Equal(t, []any{lifecycle.OperationCanceled, operation.Superseded}, []any{old.State, old.ErrorCode})
	gone := l.own.Member.GetX(t.Context(), a.cluster.members[1])
	require.Equal(t, lifecycle.MemberRemoved, gone.Status)
}

func TestAScalingDownTakesSeveralMembersOutByOneDispatch(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("shrinks")
	a := c.asker()
	a.asks(lifecycle.MembersAdd)
	a.says(adapter.StateSucceeded, "", adapter.MemberActive)
	require.Equal(t, lifecycle.OperationSucceeded, a.end().State)
	scaled, err := a.members.Scale(a.ctx, member.ScaleInput{InstanceID: a.instance, ComponentKey: "peer", ScaleTo: 1,
		DeadlineSeconds: 60, IdempotencyKey: a.key()})
	require.NoError(t, err)
	a.op = scaled.Operation.ID
	sent := a.script.dispatched(string(a.op))[0]
	require.Equal(t, []any{adapter.MemberRemove, 2}, []any{sent.Kind, len(sent.Targets)}, "what every adapter knows")
	a.says(adapter.StateSucceeded, adapter.MemberRemoved, adapter.MemberRemoved)
	op := a.end()
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	for _, id := range op.Targets {
		require.Equal(t, lifecycle.MemberRemoved, l.own.Member.GetX(t.Context(), id).Status)
	}
	told := l.own.Event.Query().Where(dbevent.OperationID(a.op), dbevent.Type(string(lifecycle.EventMemberRemoved)))
	require.Equal(t, 2, told.CountX(t.Context()), "one for each")
	require.Contains(t, a.world(), "1 of 1")
}
