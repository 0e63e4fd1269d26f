package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

// dispatch is what the platform sends, for an instance of two beaters.
func dispatch(p *adaptertest.Platform, id string, kind adapter.Kind) adapter.Dispatch {
	d := adapter.Dispatch{
		OperationID: id, Kind: kind, Attempt: 1, Deadline: time.Now().Add(time.Minute), CorrelationID: "cor-1",
		Instance: adapter.Instance{
			ID: "ins_1", Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "pulse", Version: "1.0.0",
			Config:     json.RawMessage(`{"intervalSeconds":1}`),
			Components: []adapter.ComponentCount{{Key: component, Count: 2}},
		},
		Platform: p.Access(),
	}
	for i, member := range []string{"mem_a", "mem_b"} {
		d.Members = append(d.Members, adapter.Member{ID: member, ComponentKey: component, Index: i, Status: "pending",
			Node: p.Node("127.0.0.1")})
	}
	return d
}

func TestPulseBeatsFromLaunchToTeardown(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "pulse")
	app, err := pulse()
	require.NoError(t, err)
	base := p.Start(app)
	created := p.Run(base, dispatch(p, "op_1", adapter.InstanceCreate), time.Minute)
	require.Equal(t, adapter.StateSucceeded, created.State, "%+v", created.Error)

	var pulses struct{ Members []struct{ Beats []string } }
	p.Action(base, "pulse.read", dispatch(p, "op_1", adapter.InstanceCreate), "key-1",
		map[string]any{"limit": 3}, &pulses)
	require.Len(t, pulses.Members, 2)
	require.NotEmpty(t, pulses.Members[0].Beats)

	var seen adapter.Observation
	code, body := p.Call(base, http.MethodGet, adapter.InstancePath("ins_1"), nil, &seen)
	require.Equal(t, http.StatusOK, code, string(body))
	require.Equal(t, adapter.Healthy, seen.Health, seen.Message)

	ended := p.Run(base, dispatch(p, "op_2", adapter.InstanceDecommission), time.Minute)
	require.Equal(t, adapter.StateSucceeded, ended.State, "%+v", ended.Error)
	require.Contains(t, ended.Evidence, "residue")
}

func TestARepeatedDispatchIsTheSameOperationAndAnotherBodyIsRefused(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "pulse")
	app, err := pulse()
	require.NoError(t, err)
	base := p.Start(app)
	d := dispatch(p, "op_1", adapter.InstanceDecommission)
	p.Run(base, d, time.Minute)
	var again adapter.Status
	code, _ := p.Call(base, http.MethodPut, adapter.OperationPath("op_1"), d, &again)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, adapter.StateSucceeded, again.State)
	d.Members = d.Members[:1]
	code, _ = p.Call(base, http.MethodPut, adapter.OperationPath("op_1"), d, nil)
	require.Equal(t, http.StatusConflict, code)
}

func TestAForeignComponentIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "pulse")
	app, err := pulse()
	require.NoError(t, err)
	d := dispatch(p, "op_1", adapter.InstanceCreate)
	d.Members[1].ComponentKey = "queen"
	code, body := p.Call(p.Start(app), http.MethodPut, adapter.OperationPath("op_1"), d, nil)
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, string(body), "members[1].componentKey")
}

// The guide shows this program piece by piece: every piece it shows must be a piece of the program.
func TestTheGuideShowsThisProgram(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/write-an-adapter.md")
	require.NoError(t, err)
	sources := ""
	for _, name := range []string{"main.go", "main_test.go", "manifest.json"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		sources += string(text)
	}
	var pieces int
	for _, language := range []string{"```go\n", "```json\n"} {
		for i, part := range strings.Split(string(guide), language) {
			if i == 0 {
				continue
			}
			piece, _, closed := strings.Cut(part, "```")
			require.True(t, closed)
			require.Contains(t, sources, piece)
			pieces++
		}
	}
	require.GreaterOrEqual(t, pieces, 8)
}
