package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

// Each verb that has a plan, in each way there is to agree to it.
func TestVerbsPlanFirstAndSendTheHashOnlyOnceAgreedTo(t *testing.T) {
	t.Parallel()
	for verb, line := range map[string]string{
		"addMembers":           "members add one --component worker --allocation alc_1",
		"drainMember":          "members drain mem_1",
		"removeMember":         "members remove mem_1",
		"removeMembers":        "members remove mem_1 mem_2",
		"scaleComponent":       "members scale one --component worker --count 1",
		"replaceMember":        "members replace mem_1",
		"upgradeInstance":      "instances upgrade one --version 1.3.0",
		"rollbackInstance":     "instances rollback one",
		"decommissionInstance": "instances decommission one",
	} {
		plan := "plan" + strings.ToUpper(verb[:1]) + verb[1:]
		for _, test := range []struct {
			name, stdin, flags string
			terminal           bool
			code, plans, sends int
			hash               any
		}{
			{name: "only the plan", flags: "--plan", plans: 1},
			{name: "nobody to ask", code: 2},
			{name: "agreed by flag", flags: "--yes", plans: 1, sends: 1, hash: "abc123"},
			{name: "agreed by a person", terminal: true, stdin: "y\n", plans: 1, sends: 1, hash: "abc123"},
			{name: "refused by a person", terminal: true, stdin: "\n", code: 5, plans: 1},
			{name: "a person who went away", terminal: true, code: 5, plans: 1},
			{name: "without a plan", flags: "--no-plan", sends: 1},
			{name: "by an earlier plan", flags: "--plan-hash old", sends: 1, hash: "old"},
		} {
			t.Run(verb+", "+test.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				got := r.runAt(t.Context(), test.terminal, test.stdin, strings.Fields(line+" "+test.flags)...)
				require.Equal(t, test.code, got.code, got.stderr)
				require.Len(t, r.CallsOf(plan), test.plans)
				sent := r.CallsOf(verb)
				require.Len(t, sent, test.sends)
				if test.sends > 0 {
					require.Equal(t, test.hash, sent[0].Input()["planHash"])
				}
				if test.terminal {
					require.Contains(t, got.stderr, "Go on? [y/N]")
					require.Contains(t, got.stderr, "3 pieces of work")
				}
			})
		}
	}
}

func TestARefusedPlanSendsNothingAndGivesEveryReason(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Handle("planRemoveMember", answer(refused("MEMBER_REMOVE")))
	got := r.run(t.Context(), "", "members", "remove", "mem_1", "--yes", "-o", "json")
	require.Equal(t, 5, got.code)
	require.Empty(t, r.CallsOf("removeMember"))
	var told struct {
		Error struct {
			Code    string
			Reasons []struct{ Code, Path string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stderr), &told), got.stderr)
	require.Equal(t, "CONFLICT", told.Error.Code)
	require.Len(t, told.Error.Reasons, 2)
	require.Equal(t, "input.memberId", told.Error.Reasons[1].Path)
}

func TestAStalePlanIsAConflictThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Handle("drainMember", refuse("PLAN_STALE", "the member's status has changed"))
	got := r.run(t.Context(), "", "members", "drain", "mem_1", "--yes")
	require.Equal(t, 5, got.code)
	require.Contains(t, got.stderr, "run the command again and read the new plan")
}

func TestTheShortDecommissionNeitherPlansNorAsksAScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Zero(t, r.run(t.Context(), "", "decommission", "one").code)
	require.Empty(t, r.CallsOf("planDecommissionInstance"))
	require.Equal(t, 5, r.runAt(t.Context(), true, "n\n", "decommission", "one").code, "but it asks a person")
	require.Len(t, r.CallsOf("decommissionInstance"), 1)
}

func TestVerbsSendWhatWasAsked(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]string{
		"members add one --component worker --count 3 --allocation slot-1,alc_2 --keep-failed --deadline 2m --reason " +
			"more --idempotency-key k --no-plan": {"addMembers",
			`{"instanceId":"ins_1","componentKey":"worker","count":3,"allocationIds":["alc_1","alc_2"],"keepFailed":true,"deadlineSeconds":120,"reason":"more","idempotencyKey":"k"}`},
		"members add one --component worker --shape gpu-slice --gpus 2 --sku s --region r --idempotency-key k " +
			"--no-plan": {"addMembers",
			`{"instanceId":"ins_1","componentKey":"worker","count":1,"intent":{"shape":"GPU_SLICE","gpuCount":2,"sku":"s","region":"r"},"idempotencyKey":"k"}`},
		"members drain one/worker/0 --on-deadline force --reason slow --idempotency-key k --no-plan": {"drainMember",
			`{"memberId":"mem_1","onDeadline":"FORCE","reason":"slow","idempotencyKey":"k"}`},
		"members replace mem_1 --allocation slot-1 --force --reason dead --idempotency-key k --no-plan": {
			"replaceMember",
			`{"memberId":"mem_1","allocationId":"alc_1","force":true,"onDeadline":"FAIL","reason":"dead","idempotencyKey":"k"}`},
		"members label mem_1 zone=b --idempotency-key k": {"labelMember",
			`{"memberId":"mem_1","labels":{"zone":"b","rack":"7"},"idempotencyKey":"k"}`},
		"members label mem_1 zone=b new=1 rack- --idempotency-key k": {"labelMember",
			`{"memberId":"mem_1","labels":{"zone":"b","new":"1"},"idempotencyKey":"k"}`},
		"members label mem_1 only=1 --only --idempotency-key k": {"labelMember",
			`{"memberId":"mem_1","labels":{"only":"1"},"idempotencyKey":"k"}`},
		"instances upgrade one --set a.b=1 --idempotency-key k --yes": {"upgradeInstance",
			`{"instanceId":"ins_1","config":{"greeting":"hi","a":{"b":1}},"planHash":"abc123","idempotencyKey":"k"}`},
		"instances rollback one --generation 1 --idempotency-key k --no-plan": {"rollbackInstance",
			`{"instanceId":"ins_1","generation":1,"idempotencyKey":"k"}`},
		"operations retry op_9 --reason again --idempotency-key k": {"retryOperation",
			`{"operationId":"op_9","reason":"again","idempotencyKey":"k"}`},
		"projects quota --max-members none --max-gpus 4 --reason agreed --project prj_1": {"setProjectQuota",
			`{"projectId":"prj_1","maxGpus":4,"reason":"agreed"}`},
		"projects quota --max-volume-gib 500 --reason agreed --project prj_1": {"setProjectQuota",
			`{"projectId":"prj_1","maxVolumeGiB":500,"reason":"agreed"}`},
		"volumes create data --class parallel --size 20 --idempotency-key k": {"createVolume",
			`{"projectId":"prj_1","name":"data","storageClass":"parallel","sizeGiB":20,"idempotencyKey":"k"}`},
		"volumes resize scratch --size 30": {"resizeVolume", `{"volumeId":"vol_2","sizeGiB":30}`},
		"storage-classes update disk --enable --reason mended": {"updateStorageClass",
			`{"storageClassId":"stc_2","disabled":false,"reason":"mended"}`},
		"instances decommission one --force --reason over --idempotency-key k --plan-hash h": {"decommissionInstance",
			`{"instanceId":"ins_1","force":true,"onDeadline":"FAIL","planHash":"h","reason":"over","idempotencyKey":"k"}`},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			got := r.run(t.Context(), "", strings.Fields(line)...)
			require.Zero(t, got.code, got.stderr)
			sent, err := json.Marshal(r.CallsOf(want[0])[0].Input())
			require.NoError(t, err)
			require.JSONEq(t, want[1], string(sent))
		})
	}
}

func TestQuotaKeepsTheBoundThatIsNotGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bounded := project()
	bounded["maxMembers"], bounded["maxGpus"] = 9, 3
	r.Handle("viewer", answer(object{"projects": page(bounded)}))
	require.Zero(t, r.run(t.Context(), "", "projects", "quota", "--max-members", "12", "--reason", "agreed").code)
	sent, err := json.Marshal(r.CallsOf("setProjectQuota")[0].Input())
	require.NoError(t, err)
	require.JSONEq(t, `{"projectId":"prj_1","maxMembers":12,"maxGpus":3,"reason":"agreed"}`, string(sent))
}

func TestWaitShowsTheBlockerOfAnOperationThatStandsStill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	asked := make(chan struct{}, 1)
	r.Handle("operation", func(clienttest.Call) (any, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		return stuckOperation(), nil
	})
	r.HandleStream("operationProgress", func(call clienttest.Call, emit func(any) error) error {
		_ = emit(operation("MEMBER_DRAIN", "RUNNING", 40))
		for range 3 { // the third time, what the first time showed has been written
			select {
			case <-asked:
			case <-call.Context.Done():
				return nil
			}
		}
		return emit(operation("MEMBER_DRAIN", "SUCCEEDED", 100))
	})
	got := r.run(t.Context(), "", "operations", "wait", "op_9")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, 1, strings.Count(got.stderr, "waits: 2 jobs still run (WORK_RUNNING, user"),
		"once, though it was read thrice: %s", got.stderr)
	require.Contains(t, got.stderr, "cleared with apps.queue.cancel")
}

func TestCancelWithWaitSucceedsOnlyWhenCanceled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.HandleStream("operationProgress", progressTo("CANCELED"))
	require.Zero(t, r.run(t.Context(), "", "operations", "cancel", "op_1", "--wait").code)
	r.HandleStream("operationProgress", func(_ clienttest.Call, emit func(any) error) error {
		op := operation("MEMBER_DRAIN", "SUCCEEDED", 100)
		op["cancelMessage"] = "too late: the last job has ended"
		return emit(op)
	})
	got := r.run(t.Context(), "", "operations", "cancel", "op_1", "--wait")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "was not canceled, it ended as SUCCEEDED: too late")
}

func TestAMemberIsFoundByItsPlaceAndARemovedOneOnlyIfNoOtherHasIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	placed := func(id, status, created string) object {
		one := member()
		one["id"], one["status"], one["createdAt"] = id, status, created
		return one
	}
	inst := instance()
	inst["members"] = page(placed("mem_1", "REMOVED", "2026-11-20T10:00:00Z"),
		placed("mem_2", "REMOVED", "2026-11-20T11:00:00Z"))
	r.Handle("instance", answer(inst))
	require.Zero(t, r.run(t.Context(), "", "members", "show", "one/worker/0").code)
	inst["members"] = page(placed("mem_1", "FAILED", "2026-11-20T10:00:00Z"),
		placed("mem_2", "REMOVED", "2026-11-20T11:00:00Z"))
	require.Zero(t, r.run(t.Context(), "", "members", "show", "one/worker/0").code)
	calls := r.CallsOf("member")
	require.Equal(t, "mem_2", calls[0].Args["id"])
	require.Equal(t, "mem_1", calls[1].Args["id"])
}
