package contract_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/contract"
)

// calls reach adapters as the program's do, on loopback.
func calls(t *testing.T) *contract.Calls {
	t.Helper()
	ring, err := token.NewKeyring("https://platform.test")
	require.NoError(t, err)
	return contract.New(adapterclient.New(ring, dial.Loopback()), ring, "https://platform.test/graphql")
}

func callOf(url string) contract.Plan {
	node, allocation := ids.New(ids.Node), ids.New(ids.Allocation)
	member := &db.Member{ID: ids.New(ids.Member), ComponentKey: "worker", Status: lifecycle.MemberActive, NodeID: &node,
		AllocationID: &allocation}
	return contract.Plan{
		Subject: contract.Subject{
			Adapter: &db.Adapter{Name: "hello", URL: url}, CorrelationID: "cor-1",
			Instance: &db.Instance{ID: ids.New(ids.Instance), Name: "demo", AppSlug: "hello", AppVersion: "1.0.0",
				Roles: json.RawMessage(`[{"componentKey": "worker", "desired": 2}]`)},
			Members:     []*db.Member{member},
			Nodes:       map[ids.ID]*db.ComputeNode{node: {ID: node, Name: "n1", Address: "192.0.2.1"}},
			Allocations: map[ids.ID]*db.Allocation{allocation: {ID: allocation, Shape: lifecycle.ShapeBaremetal}},
		},
		Kind: lifecycle.MemberRemove, Force: true, Targets: []ids.ID{member.ID}, Change: json.RawMessage(`{}`),
	}
}

func TestAPlanIsAskedInTheWordsOfTheContract(t *testing.T) {
	t.Parallel()
	var asked adapter.PlanRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != adapter.PlansPath || r.Header.Get("Authorization") == "" ||
			json.NewDecoder(r.Body).Decode(&asked) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true, WorkTotal: 1,
			WorkLost: []adapter.Work{{Kind: "job", ID: "7"}}})
	}))
	defer server.Close()
	call := callOf(server.URL)
	said, err := calls(t).Plan(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, []any{adapter.VerdictSafe, true, 1, "7"},
		[]any{said.Verdict, said.Reversible, said.WorkTotal, said.WorkLost[0].ID})
	require.Equal(t, []any{adapter.MemberRemove, true, "cor-1", []string{string(call.Targets[0])}},
		[]any{asked.Kind, asked.Force, asked.CorrelationID, asked.Targets})
	require.Equal(t, []adapter.ComponentCount{{Key: "worker", Count: 2}}, asked.Instance.Components)
	require.Equal(t, []string{"active", "n1"}, []string{asked.Members[0].Status, asked.Members[0].Node.Name})
	require.Equal(t, "https://platform.test/graphql", asked.Platform.GraphQLURL)
	require.NotEmpty(t, asked.Platform.Token)
}

func TestWhoDoesNotAnswerHasAnUnknownVerdictWithItsReason(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	answering := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	refusing, err := calls(t).Plan(t.Context(), callOf(answering(http.StatusUnprocessableEntity,
		`{"code":"NO","message":"not this"}`)))
	require.NoError(t, err)
	require.Equal(t, []any{adapter.VerdictUnsafe, "ADAPTER_REJECTED"},
		[]any{refusing.Verdict, refusing.Reasons[0].Code}, "a refusal is a verdict")
	for name, c := range map[string]struct{ url, code string }{
		"not reachable": {gone.URL, "ADAPTER_UNAVAILABLE"},
		"of an earlier contract": {answering(http.StatusNotFound, `{"code":"NOT_FOUND","message":"no such path"}`),
			adapter.CodePlansUnsupported},
		"not implemented": {answering(http.StatusNotImplemented, `{"code":"X","message":"no plans"}`),
			adapter.CodePlansUnsupported},
		"outside of the contract": {answering(http.StatusOK, `{"verdict":"unsafe","reasons":[]}`), "ADAPTER_INVALID"},
		"overloaded": {answering(http.StatusServiceUnavailable, `{"code":"BUSY","message":"later"}`),
			"ADAPTER_UNAVAILABLE"},
		"beyond the dial policy": {"http://192.0.2.1:9", "DIAL_REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, err := calls(t).Plan(t.Context(), callOf(c.url))
			require.NoError(t, err)
			require.Equal(t, []any{adapter.VerdictUnknown, c.code}, []any{said.Verdict, said.Reasons[0].Code})
			require.NotEmpty(t, said.Reasons[0].Message)
			require.Zero(t, said.WorkTotal)
		})
	}
}
