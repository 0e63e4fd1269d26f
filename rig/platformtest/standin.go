package platformtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/contract"
)

// StandIn is an adapter behind an HTTP server of its own: it answers as the test sets it, and keeps what it received.
// Fields are set and read between calls.
type StandIn struct {
	// URL is its address, and Calls reach it over the adapter contract, as the platform's do.
	URL   string
	Calls *contract.Calls
	// Plan is its answer to every plan.
	Plan adapter.PlanAnswer
	// Forced is its answer to plans by force; nil for that of all plans.
	Forced *adapter.PlanAnswer
	// Plans are the requests.
	Plans []adapter.PlanRequest
	// Act answers an action with a status and a body; at first the empty object. Actions are the requests.
	Act     func() (status int, body string)
	Actions []Action

	mu sync.Mutex
}

// Action is an action that a StandIn received.
type Action struct {
	adapter.ActionRequest
	Name, CorrelationID string
}

// Outputs answers every action with the output, a JSON text.
func Outputs(output string) func() (int, string) {
	return func() (int, string) { return http.StatusOK, `{"output":` + output + `}` }
}

// StandIn starts an adapter for the test. Its plans are safe until the test sets another answer.
func (k *Kit) StandIn() *StandIn {
	s := &StandIn{Calls: k.Calls(), Plan: adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true},
		Act: Outputs(`{}`)}
	server := httptest.NewServer(s)
	k.t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Calls reach adapters on loopback.
func (k *Kit) Calls() *contract.Calls {
	client := adapterclient.New(k.Ring, dial.Loopback())
	k.t.Cleanup(client.Close)
	return contract.New(client, k.Ring, Issuer+"/graphql")
}

// ServeHTTP answers plans and actions of signed requests.
func (s *StandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, body := http.StatusNotFound, `{"code":"NOT_FOUND","message":"no such path"}`
	switch name, action := strings.CutPrefix(r.URL.Path, "/v1/instances/"); {
	case r.Header.Get("Authorization") == "":
		status = http.StatusUnauthorized
	case r.URL.Path == adapter.PlansPath:
		status, body = s.plan(r)
	case action:
		status, body = s.act(r, name)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func (s *StandIn) plan(r *http.Request) (int, string) {
	var request adapter.PlanRequest
	if json.NewDecoder(r.Body).Decode(&request) != nil {
		return http.StatusBadRequest, `{}`
	}
	s.Plans = append(s.Plans, request)
	answer := s.Plan
	if request.Force && s.Forced != nil {
		answer = *s.Forced
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return http.StatusInternalServerError, `{}`
	}
	return http.StatusOK, string(encoded)
}

// act answers an action; name is "<instance>/actions/<action>".
func (s *StandIn) act(r *http.Request, name string) (int, string) {
	received := Action{Name: name[strings.LastIndex(name, "/")+1:],
		CorrelationID: r.Header.Get(adapter.HeaderCorrelation)}
	if json.NewDecoder(r.Body).Decode(&received.ActionRequest) != nil {
		return http.StatusBadRequest, `{}`
	}
	s.Actions = append(s.Actions, received)
	return s.Act()
}
