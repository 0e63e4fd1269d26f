package instance_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// runs is a launched instance that runs.
func (b *bundle) runs() *instance.Started {
	b.t.Helper()
	started := b.launched()
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	return started
}

// version stores another version of the app.
func (b *bundle) version(stage lifecycle.Stage, version string, change ...func(map[string]any)) *db.Manifest {
	b.t.Helper()
	document := b.document(version)
	for _, c := range change {
		c(document)
	}
	if stage == lifecycle.StageActive { // there is one at a time
		b.SQL(`UPDATE manifest SET stage = 'DEPRECATED' WHERE stage = 'ACTIVE'`)
	}
	return b.Manifest(stage, document)
}

func upgradeOf(id ids.ID, key string, change ...func(*instance.UpgradeInput)) instance.UpgradeInput {
	in := instance.UpgradeInput{InstanceID: id, DeadlineSeconds: 600, Reason: "a test", IdempotencyKey: key}
	for _, c := range change {
		c(&in)
	}
	return in
}

// ended ends an operation, and for a success writes what a worker writes then.
func (b *bundle) ended(op ids.ID, state lifecycle.OperationState) {
	b.t.Helper()
	b.SQL(`UPDATE operation SET state = 'RUNNING', dispatch_attempt = 1 WHERE id = $1`, op)
	b.SQL(`UPDATE operation SET state = $2, ended_at = now() WHERE id = $1`, op, state)
	if state != lifecycle.OperationSucceeded {
		return
	}
	stored := b.Ent.Operation.GetX(b.t.Context(), op)
	to := operation.PrivateOf(stored).To
	b.SQL(`UPDATE instance SET manifest_id = $2, app_version = $3, config = $4, generation = generation + 1
		WHERE id = $1`,
		stored.InstanceID, to.ManifestID, to.Version, []byte(to.Config))
	b.SQL(`INSERT INTO instance_generation (id, tenant_id, project_id, instance_id, number, manifest_id, app_version,
		config, operation_id, created_at)
		SELECT $2, tenant_id, project_id, id, generation, manifest_id, app_version, config, $3, now() FROM instance
		WHERE id = $1`,
		stored.InstanceID, ids.New(ids.Generation), op)
}

func TestALaunchIsTheFirstGeneration(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	found, err := b.service.Generations(b.ctx, []ids.ID{started.Instance.ID})
	require.NoError(t, err)
	require.Len(t, found[started.Instance.ID], 1)
	first := found[started.Instance.ID][0]
	require.Equal(t, []any{1, b.stored.ID, "1.0.0", started.Operation.ID},
		[]any{first.Number, first.ManifestID, first.AppVersion, *first.OperationID})
	require.JSONEq(t, `{"size": 2}`, string(first.Config))
}

func TestALaunchBeyondTheQuotaIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE project SET max_members = 2 WHERE id = $1`, b.project.ID)
	before := b.written()
	_, err := b.service.Launch(b.ctx, b.launch())
	platformtest.Refused(t, err, fault.LimitExceeded, "input.components")
	require.Equal(t, before, b.written())
	b.SQL(`UPDATE project SET max_members = 3 WHERE id = $1`, b.project.ID)
	b.launched()
}

func TestAnUpgradeIsAcceptedAndTheInstanceStaysAsItIsUntilItSucceeds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	next := b.version(lifecycle.StageActive, "2.0.0")
	in := upgradeOf(started.Instance.ID, "k", func(in *instance.UpgradeInput) {
		in.Version, in.Config = "2.0.0", json.RawMessage(`{"note": "new"}`)
	})
	upgraded, err := b.service.Upgrade(b.ctx, in)
	require.NoError(t, err)
	require.Equal(t, []any{b.stored.ID, "1.0.0", 1}, []any{upgraded.Instance.ManifestID, upgraded.Instance.AppVersion,
		upgraded.Instance.Generation})
	op := b.Ent.Operation.GetX(t.Context(), upgraded.Operation.ID)
	require.Equal(t, []any{lifecycle.InstanceUpgrade, lifecycle.OperationPending}, []any{op.Kind, op.State})
	require.Empty(t, op.Targets)
	private := operation.PrivateOf(op)
	require.Equal(t, []ids.ID{b.stored.ID, next.ID}, []ids.ID{private.From.ManifestID, private.To.ManifestID})
	var stored struct {
		From, To struct {
			Version string
			Config  json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(op.DesiredChange, &stored))
	require.Equal(t, []string{"1.0.0", "2.0.0"}, []string{stored.From.Version, stored.To.Version})
	require.JSONEq(t, `{"size": 2, "note": "new"}`, string(stored.To.Config), "with the schema's defaults")
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'upgradeInstance' AND permission_key = 'apps.instance.update'"))

	before := b.written()
	again, err := b.service.Upgrade(b.ctx, in)
	require.NoError(t, err)
	require.Equal(t, op.ID, again.Operation.ID)
	_, err = b.service.Upgrade(b.ctx, upgradeOf(started.Instance.ID, "other", func(in *instance.UpgradeInput) {
		in.Version = "2.0.0"
	}))
	platformtest.Refused(t, err, fault.Conflict, "")
	require.Contains(t, fault.From(err).Message, string(op.ID))
	require.Equal(t, before, b.written())
}

func TestBadUpgradesAreRefusedAndWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publishes() // others do not see a version before it is launchable
	started := b.runs()
	id := started.Instance.ID
	elsewhere := b.Adapter("http://other.test", nil)
	b.version(lifecycle.StageDeprecated, "0.9.0")
	b.version(lifecycle.StageStaged, "3.0.0")
	for version, change := range map[string]func(map[string]any){
		"2.1.0": func(d map[string]any) { d["adapter"] = elsewhere.Name },
		"2.2.0": func(d map[string]any) {
			d["components"] = []map[string]any{{"key": "head", "displayName": "Head", "min": 1, "max": 1, "default": 1}}
		},
		"2.3.0": func(d map[string]any) { d["compatibility"].(map[string]any)["network_span"] = "allocation" },
		"2.4.0": func(d map[string]any) {
			d["components"].([]map[string]any)[1]["max"], d["components"].([]map[string]any)[1]["default"] = 1, 1
		},
	} {
		made := b.version(lifecycle.StageStaged, version, change)
		b.SQL(`ALTER TABLE manifest DISABLE TRIGGER USER`)
		b.SQL(`DROP INDEX IF EXISTS manifest_one_active`)
		b.SQL(`UPDATE manifest SET stage = 'ACTIVE' WHERE id = $1`, made.ID)
	}
	before := b.written()
	for name, c := range map[string]struct {
		change func(*instance.UpgradeInput)
		code   fault.Code
		path   string
	}{
		"nothing": {func(*instance.UpgradeInput) {}, fault.FailedPrecondition, "input.version"},
		"the same": {func(in *instance.UpgradeInput) {
			in.Version, in.Config = "1.0.0", json.RawMessage(`{"size":2}`)
		}, fault.FailedPrecondition, "input.version"},
		"no such version": {func(in *instance.UpgradeInput) { in.Version = "9.9.9" }, fault.NotFound,
			"input.version"},
		"deprecated": {func(in *instance.UpgradeInput) { in.Version = "0.9.0" }, fault.FailedPrecondition,
			"input.version"},
		"not active yet": {func(in *instance.UpgradeInput) { in.Version = "3.0.0" }, fault.FailedPrecondition,
			"input.version"},
		"another adapter": {func(in *instance.UpgradeInput) { in.Version = "2.1.0" }, fault.Incompatible,
			"input.version"},
		"component is gone": {func(in *instance.UpgradeInput) { in.Version = "2.2.0" }, fault.Incompatible,
			"input.version"},
		"allocations": {func(in *instance.UpgradeInput) { in.Version = "2.3.0" }, fault.Incompatible,
			"input.version"},
		"too many members": {func(in *instance.UpgradeInput) { in.Version = "2.4.0" }, fault.Incompatible,
			"input.version"},
		"bad config": {func(in *instance.UpgradeInput) { in.Config = json.RawMessage(`{"size": 0}`) },
			fault.ConfigInvalid, "input.config.size"},
		"config of no shape": {func(in *instance.UpgradeInput) { in.Config = json.RawMessage(`[]`) },
			fault.ConfigInvalid, "input.config"},
		"config too long": {func(in *instance.UpgradeInput) { in.Config = json.RawMessage(`"` + long(70_000) + `"`) },
			fault.InvalidArgument, "input.config"},
		"deadline": {func(in *instance.UpgradeInput) { in.DeadlineSeconds = 9 }, fault.InvalidArgument,
			"input.deadlineSeconds"},
		"plan": {func(in *instance.UpgradeInput) {
			in.Config, in.PlanHash = json.RawMessage(`{"size":3}`), "x"
		}, fault.PlanStale, "input.planHash"},
		"no instance": {func(in *instance.UpgradeInput) { in.InstanceID = ids.New(ids.Instance) }, fault.NotFound, ""},
	} {
		in := upgradeOf(id, "k", c.change)
		_, err := b.service.Upgrade(b.ctx, in)
		require.Error(t, err, name)
		platformtest.Refused(t, err, c.code, c.path)
		if c.code == fault.InvalidArgument || c.code == fault.PlanStale || in.InstanceID != id {
			continue
		}
		plan, err := b.service.PlanUpgrade(b.ctx, in)
		require.NoError(t, err, name)
		require.False(t, plan.Allowed, name)
	}
	require.Equal(t, before, b.written())
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectMember, b.project)))
	_, err := b.service.Upgrade(viewer, upgradeOf(id, "k", func(in *instance.UpgradeInput) {
		in.Config = json.RawMessage(`{"size":3}`)
	}))
	platformtest.Refused(t, err, fault.Forbidden, "")
	b.SQL(`UPDATE instance SET status = 'STOPPING'`)
	_, err = b.service.Upgrade(b.ctx, upgradeOf(id, "k", func(in *instance.UpgradeInput) {
		in.Config = json.RawMessage(`{"size":3}`)
	}))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
}

func TestTheConfigMayChangeOnADeprecatedVersionThatRunsAlready(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED'`)
	in := upgradeOf(started.Instance.ID, "k", func(in *instance.UpgradeInput) {
		in.Config = json.RawMessage(`{"size": 3}`)
	})
	plan, err := b.service.PlanUpgrade(b.ctx, in)
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	require.Len(t, plan.Members, 3)
	require.JSONEq(t,
		`{"from": {"version": "1.0.0", "config": {"size": 2}}, "to": {"version": "1.0.0", "config": {"size": 3}}}`,
		string(plan.Change))
	in.PlanHash = plan.Hash
	_, err = b.service.Upgrade(b.ctx, in)
	require.NoError(t, err)
}

func TestATeardownsPlanNamesEveryMemberAndWhatMakesWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	drain := b.Operation(started.Instance.Instance, lifecycle.MemberDrain, lifecycle.OperationRunning)
	b.service.Calls = nil
	in := b.teardown(started.Instance.ID, "k")
	in.Force, in.OnDeadline = true, lifecycle.DeadlineForce
	plan, err := b.service.PlanDecommission(b.ctx, in)
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	require.Len(t, plan.Members, 3)
	require.Equal(t, []any{lifecycle.PlanRemove, []ids.ID{drain.ID}, false},
		[]any{plan.Members[0].Action, plan.SupersedesIDs, plan.Reversible})
	require.Equal(t, lifecycle.VerdictUnknown, plan.Verdicts[len(plan.Verdicts)-1].Outcome, "nobody was asked")

	in.Reason, in.PlanHash = "", plan.Hash
	before := b.written()
	_, err = b.service.Decommission(b.ctx, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.reason")
	in.Reason, in.Force = "over", false
	_, err = b.service.Decommission(b.ctx, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.Equal(t, before, b.written())
	in.Force = true
	ended, err := b.service.Decommission(b.ctx, in)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("operation", "id = $1 AND force AND on_deadline = 'FORCE'", ended.Operation.ID))
	require.Equal(t, lifecycle.OperationCanceled, b.Ent.Operation.GetX(t.Context(), drain.ID).State)
}

func TestDriftIsReadFromTheInstancesRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	for stored, want := range map[string]int{`null`: 0, `[]`: 0,
		`[{"code": "GONE", "message": "not there", "memberId": "mem_1"}, {"code": "X", "message": "y"}]`: 2} {
		b.SQL(`UPDATE instance SET drift = $1`, []byte(stored))
		view, err := b.service.Get(b.ctx, started.Instance.ID, instance.Want{})
		require.NoError(t, err)
		drift, err := view.Drift()
		require.NoError(t, err)
		require.Len(t, drift, want)
		if want > 0 {
			require.Equal(t, []any{"GONE", ids.ID("mem_1"), true},
				[]any{drift[0].Code, *drift[0].MemberID, drift[1].MemberID == nil})
		}
	}
}

func TestATeardownIsAskedAgainAsItWasAskedFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	in := b.teardown(started.Instance.ID, "k")
	in.Force = true
	ended, err := b.service.Decommission(b.ctx, in)
	require.NoError(t, err)
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now() WHERE id = $1`, ended.Operation.ID)
	first := b.Ent.Operation.GetX(t.Context(), ended.Operation.ID)
	again, err := b.service.Again(b.ctx, lifecycle.InstanceDecommission,
		change.Again{RetryOf: first.ID, Input: operation.PrivateOf(first).Input, IdempotencyKey: "r"})
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("operation", "id = $1 AND retry_of = $2 AND force AND reason = $3", again.ID, first.ID,
		in.Reason))
}
