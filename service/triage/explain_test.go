package triage_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/triage"
	"github.com/gpuaas/app-platform/service/triage/links"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// scene is rows of an operation, as a test changes them.
func scene(kind lifecycle.OperationKind, state lifecycle.OperationState, change func(*triage.Rows)) *triage.Rows {
	instance := ids.ID("ins_1")
	op := &db.Operation{ID: "op_1", TenantID: "ten_1", ProjectID: "prj_1", InstanceID: &instance, Kind: kind,
		State:         state,
		RequesterKind: "USER", RequesterID: "usr_1", RequesterName: "Ada", Reason: "new work", CorrelationID: "cor-1",
		CreatedAt: noon}
	if state.Terminal() {
		op.EndedAt = &noon
	}
	rows := &triage.Rows{Operation: &operation.View{Operation: op}, Family: "apps", Key: "triage-key",
		Templates: links.Templates{Trace: "https://tools.example.com/trace/{trace_id}"}}
	change(rows)
	return rows
}

func blocked(code, owner, key string) *blocker.Blocker {
	return &blocker.Blocker{Code: code, Message: "the blocker's message", Owner: owner, PermissionKey: key, Since: noon}
}

func in(step string, state lifecycle.StepState) []*db.OperationStep {
	return []*db.OperationStep{{ID: "stp_1", Name: step, State: state, StartedAt: &noon, Message: "the step's message"},
		{ID: "stp_2", Name: "later", State: lifecycle.StepPending}}
}

func scenes() map[string]*triage.Rows {
	const create, stop = lifecycle.InstanceCreate, lifecycle.InstanceDecommission
	running, failed := lifecycle.OperationRunning, lifecycle.OperationFailed
	fail := func(r *triage.Rows, code, owner string) {
		r.Operation.ErrorCode, r.Operation.ErrorOwner, r.Operation.ErrorMessage = code, owner, "why it failed"
	}
	return map[string]*triage.Rows{
		"done": scene(create, lifecycle.OperationSucceeded, func(r *triage.Rows) {
			r.Events = []*event.Event{{Event: &db.Event{ID: "evt_1", Type: "apps.instance.running", OccurredAt: noon}}}
		}),
		"no worker": scene(create, lifecycle.OperationPending, func(r *triage.Rows) {
			r.Blockers = []*blocker.Blocker{blocked("NO_WORKER", blocker.OwnerPlatform, "")}
		}),
		"only working": scene(create, running, func(r *triage.Rows) {
			r.Steps = in("await", lifecycle.StepRunning)
			r.Blockers = []*blocker.Blocker{blocked("ADAPTER_WORKING", blocker.OwnerAdapter, "operation.cancel")}
		}),
		"adapter away": scene(create, running, func(r *triage.Rows) {
			r.Steps = in("dispatch", lifecycle.StepRunning)
			r.Blockers = []*blocker.Blocker{blocked("ADAPTER_UNAVAILABLE", blocker.OwnerAdapter, "")}
		}),
		"probes fail": scene(create, running, func(r *triage.Rows) {
			r.Steps = in("verify", lifecycle.StepRunning)
			r.Blockers = []*blocker.Blocker{blocked("PROBE_FAILING", blocker.OwnerAdapter, "operation.cancel")}
			r.Tasks = []*triage.Task{{ID: "tsk_1", Kind: "PROBE", State: "FAILED", Message: "connection refused",
				CreatedAt: noon}}
		}),
		"node away at the stop": scene(stop, running, func(r *triage.Rows) {
			r.Steps = in("residue", lifecycle.StepRunning)
			r.Blockers = []*blocker.Blocker{blocked("NODE_OFFLINE", blocker.OwnerNode, "apps.instance.delete")}
		}),
		"end refused": scene(stop, running, func(r *triage.Rows) {
			r.Blockers = []*blocker.Blocker{blocked("END_REFUSED", blocker.OwnerPlatform, "break_glass.use")}
		}),
		"create failed": scene(create, failed, func(r *triage.Rows) {
			r.Steps = in("dispatch", lifecycle.StepFailed)
			fail(r, "ADAPTER_REJECTED", blocker.OwnerAdapter)
			r.Audits = []*triage.Audit{{ID: "aud_1", Action: "launchInstance", Allowed: true, At: noon}}
		}),
		"artifact not fetched": scene(create, failed, func(r *triage.Rows) {
			r.Steps = in("await", lifecycle.StepFailed)
			fail(r, "ADAPTER_FAILED", blocker.OwnerNode)
			r.Tasks = []*triage.Task{{ID: "tsk_1", Kind: "FETCH_ARTIFACT", State: "FAILED", Code: "DIGEST_MISMATCH",
				Message: "other bytes", CreatedAt: noon}}
		}),
		"artifact fetched the second time": scene(create, failed, func(r *triage.Rows) {
			r.Steps = in("await", lifecycle.StepFailed)
			fail(r, "ADAPTER_FAILED", blocker.OwnerAdapter)
			r.Tasks = []*triage.Task{{ID: "tsk_1", Kind: "FETCH_ARTIFACT", State: "FAILED",
				Code:    "ARTIFACT_UNAVAILABLE",
				Message: "not now", CreatedAt: noon}, {ID: "tsk_2", Kind: "FETCH_ARTIFACT", State: "SUCCEEDED",
				CreatedAt: noon}}
		}),
		"add failed": scene(lifecycle.MembersAdd, failed, func(r *triage.Rows) {
			fail(r, "DEADLINE_EXCEEDED", "user")
		}),
		"drain waits for work": scene(lifecycle.MemberDrain, running, func(r *triage.Rows) {
			r.Operation.Targets = []ids.ID{"mem_1"}
			r.Steps = in("await", lifecycle.StepRunning)
			r.Call = &triage.Call{Adapter: "an-adapter", Attempt: 2, State: "running", Message: "one job runs"}
			r.Blockers = []*blocker.Blocker{blocked("WORK_RUNNING", blocker.OwnerUser, "apps.node.operate")}
			r.Cost = &orphan.Money{Amount: "1.5", Currency: "EUR"}
			r.Others = []*triage.Other{{OperationID: "op_0", Kind: lifecycle.MembersAdd, State: failed, At: noon}}
		}),
		"removal waits for a node": scene(lifecycle.MemberRemove, running, func(r *triage.Rows) {
			r.Operation.Targets = []ids.ID{"mem_1"}
			r.Blockers = []*blocker.Blocker{blocked("NODE_OFFLINE", blocker.OwnerNode, "apps.member.remove")}
		}),
		"removal of several": scene(lifecycle.MemberRemove, running, func(r *triage.Rows) {
			r.Operation.Targets = []ids.ID{"mem_1", "mem_2"}
			r.Blockers = []*blocker.Blocker{blocked("NODE_OFFLINE", blocker.OwnerNode, "apps.member.remove")}
		}),
		"two members on the node since": unwell("NODE_OFFLINE", "apps.member.replace", id(ids.Node, 2)),
		"allocation failed": scene(create, running, func(r *triage.Rows) {
			r.Blockers = []*blocker.Blocker{blocked("ALLOCATION_FAILED", blocker.OwnerPlatform, "allocation.release")}
			r.Blockers[0].Subject = id(ids.Allocation, 1)
		}),
		"member failed since": unwell("MEMBER_FAILED", "apps.member.recover", id(ids.Member, 1)),
		"node away since":     unwell("NODE_OFFLINE", "apps.member.replace", id(ids.Node, 1)),
		"drift since":         unwell("DRIFT", "apps.member.replace", id(ids.Member, 2)),
		"failed since":        unwell("OPERATION_FAILED", "operation.retry", id(ids.Operation, 1)),
		"instance failed":     unwell("INSTANCE_FAILED", "apps.instance.delete", id(ids.Instance, 1)),
		"superseded": scene(lifecycle.MembersAdd, failed, func(r *triage.Rows) {
			fail(r, operation.Superseded, "user")
		}),
		"action on wrong input": {Audits: []*triage.Audit{{ID: "aud_1", Action: "invokeAction queue.submit",
			Allowed: true,
			Code:    "INVALID_ARGUMENT", Actor: authz.Ref{Kind: "USER", ID: "usr_1", Name: "Ada"}, Correlation: "cor-2",
			At: noon}}},
		"action that the app refuses": {Audits: []*triage.Audit{{ID: "aud_1", Action: "invokeAction queue.submit",
			Allowed: true,
			Code:    "ADAPTER_REJECTED", Actor: authz.Ref{Kind: "USER", ID: "usr_1", Name: "Ada"}, Correlation: "cor-2",
			At: noon}}},
		"refused": {Audits: []*triage.Audit{{ID: "aud_1", Action: "launchInstance", Code: "NOT_ENTITLED",
			Actor: authz.Ref{Kind: "USER", ID: "usr_1", Name: "Ada"}, Correlation: "cor-2", At: noon}}},
		"accepted": {Audits: []*triage.Audit{{ID: "aud_1", Action: "grantRole", Allowed: true,
			Actor: authz.Ref{Kind: "USER", ID: "usr_1", Name: "Ada"}, Correlation: "cor-2", At: noon}}},
	}
}

// id is a valid id that is the same in each run.
func id(kind ids.Kind, number byte) string { return string(ids.From(kind, [16]byte{15: number})) }

// unwell is an instance with something wrong since its newest operation succeeded.
func unwell(code, key, subject string) *triage.Rows {
	return scene(lifecycle.InstanceCreate, lifecycle.OperationSucceeded, func(r *triage.Rows) {
		r.Unwell = []*blocker.Blocker{blocked(code, blocker.OwnerUser, key)}
		r.Unwell[0].Subject = subject
		for member, node := range map[byte]byte{1: 1, 2: 2, 3: 2} {
			r.Members = append(r.Members, &triage.Member{ID: ids.ID(id(ids.Member, member)),
				NodeID: ids.ID(id(ids.Node, node))})
		}
	})
}

func TestReportsAreGolden(t *testing.T) {
	t.Parallel()
	reports := map[string]*triage.Report{}
	for name, rows := range scenes() {
		reports[name] = triage.Explain(rows, func(key authz.Key) bool { return key != authz.BreakGlassUse })
	}
	got, err := json.MarshalIndent(reports, "", " ")
	require.NoError(t, err)
	const path = "testdata/reports.json"
	if *update {
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}
