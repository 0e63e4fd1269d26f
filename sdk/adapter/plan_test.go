package adapter

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

// planOf is a valid plan request of this kind.
func (l *lab) planOf(kind Kind, targets ...string) PlanRequest {
	d := l.dispatchOf("op_1", kind)
	return PlanRequest{Kind: kind, Instance: d.Instance, Members: d.Members, Targets: targets, CorrelationID: "cor-1",
		Platform: d.Platform}
}

func (l *lab) plan(base string, request PlanRequest) PlanAnswer {
	l.t.Helper()
	code, body := l.call(base, http.MethodPost, PlansPath, request)
	require.Equal(l.t, http.StatusOK, code, "body: %s", body)
	var answer PlanAnswer
	require.NoError(l.t, json.Unmarshal(body, &answer))
	return answer
}

func TestPlanSaysWhatWouldBeLostAndLeavesNoOperation(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	for range 2 {
		answer := l.plan(base, l.planOf(MemberDrain, "mem_a"))
		require.Equal(t, VerdictSafe, answer.Verdict)
		require.True(t, answer.Reversible)
		require.Len(t, answer.WorkLost, MaxWork)
		require.Equal(t, MaxWork+1, answer.WorkTotal, "the total counts what the list leaves out")
		require.Len(t, answer.WorkLost[0].Name, contract.MaxWorkText)
	}
	require.Equal(t, []string{"look", "look"}, l.steps(), "every plan looks anew")
	require.Empty(t, l.changes(base, "", 0).Operations)
}

func TestPlanOfWhatWouldBeRefusedIsUnsafeForThatReason(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	config, version, kind := l.planOf(MemberDrain), l.planOf(MemberDrain), l.planOf(MemberReplace, "mem_a")
	config.Instance.Config = json.RawMessage(`{"name":7}`)
	version.Instance.Version = "0.0.1"
	for want, request := range map[PlanReason]PlanRequest{
		{Code: CodeConfigInvalid, Path: "instance.config.name"}: config,
		{Code: "UNSAFE_VERSION", Path: "instance.version"}:      version,
		{Code: CodeUnsupported, Path: "kind"}:                   kind,
		{Code: "LAST_ONE", Path: "targets[0]"}:                  l.planOf(MemberRemove, "mem_a"),
	} {
		answer := l.plan(base, request)
		require.Equal(t, VerdictUnsafe, answer.Verdict)
		require.Len(t, answer.Reasons, 1)
		require.NotEmpty(t, answer.Reasons[0].Message)
		answer.Reasons[0].Message = ""
		require.Equal(t, want, answer.Reasons[0])
	}
}

func TestMalformedPlansAreRefusedByTheirField(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	for path, change := range map[string]func(*PlanRequest){
		"kind":           func(p *PlanRequest) { p.Kind = "instance.paint" },
		"targets[0]":     func(p *PlanRequest) { p.Targets = []string{"mem_z"} },
		"instance.id":    func(p *PlanRequest) { p.Instance.ID = "" },
		"platform.token": func(p *PlanRequest) { p.Platform.Token = "" },
	} {
		request := l.planOf(MemberDrain)
		change(&request)
		code, body := l.call(base, http.MethodPost, PlansPath, request)
		require.Equal(t, http.StatusBadRequest, code)
		require.Equal(t, path, errorOf(t, body).Path)
	}
	require.Empty(t, l.steps())
}

func TestAdapterThatDoesNotPlanSaysSo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	app := demoApp()
	app.Plan = nil
	base, _ := startKit(t, l, l.config(t.TempDir(), app))
	code, body := l.call(base, http.MethodPost, PlansPath, l.planOf(MemberDrain, "mem_a"))
	require.Equal(t, http.StatusNotFound, code)
	require.Equal(t, CodePlansUnsupported, errorOf(t, body).Code)
}

func TestPlanOutsideOfTheContractIsAnInternalError(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, said := range []PlanAnswer{{}, {Verdict: "perhaps"}, {Verdict: VerdictUnknown}} {
		app := demoApp()
		app.Plan = func(context.Context, *PlanCall) (PlanAnswer, error) { return said, nil }
		base, _ := startKit(t, l, l.config(t.TempDir(), app))
		code, body := l.call(base, http.MethodPost, PlansPath, l.planOf(MemberDrain, "mem_a"))
		require.Equal(t, http.StatusInternalServerError, code)
		require.Equal(t, CodeInternal, errorOf(t, body).Code)
	}
}

func TestWhatMovesIsNoPartOfTheSpecification(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	d := l.dispatchOf("op_1", InstanceCreate)
	want, err := d.SpecHash()
	require.NoError(t, err)
	d.Force, d.Attempt = true, 7
	d.Instance.RuntimeProfile = json.RawMessage(`{"a":1}`)
	d.Instance.Artifacts = []Artifact{{Name: "image", Digest: "sha256:" + strings.Repeat("a", 64), MediaType: "m"}}
	d.Members[0].Cordoned, d.Members[0].Labels, d.Members[0].Node.Reachable = true,
		map[string]string{"a": "b"}, new(bool)
	got, err := d.SpecHash()
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.False(t, d.Members[0].Node.IsReachable())
	require.True(t, d.Members[1].Node.IsReachable(), "absent is reachable")
}
