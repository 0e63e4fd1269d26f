package adapterclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// oldAdapter is an adapter as an outsider built it against version 1.0 of the contract: with types
// of its own, by the document of 1.0 alone. It knows nothing of what 1.1 added.
type oldAdapter struct {
	t      *testing.T
	router routers.Router

	mu  sync.Mutex
	ops map[string]*oldOperation
}

// oldSpec is what version 1.0 calls the specification, as far as this adapter reads it.
type oldSpec struct {
	OperationID string `json:"operationId"`
	Kind        string `json:"kind"`
	Instance    struct {
		ID string `json:"id"`
	} `json:"instance"`
	Members []struct {
		ID   string `json:"id"`
		Node struct {
			ID string `json:"id"`
		} `json:"node"`
	} `json:"members"`
	Targets []string `json:"targets"`
}

type oldOperation struct {
	spec    string
	attempt int
}

func newOldAdapter(t *testing.T) *oldAdapter {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromFile("../../docs/adapter-contract/v1.0/openapi.yaml")
	require.NoError(t, err)
	document.Servers = nil
	router, err := gorillamux.NewRouter(document)
	require.NoError(t, err)
	return &oldAdapter{t: t, router: router, ops: map[string]*oldOperation{}}
}

// ServeHTTP answers, and holds request and answer against the document of 1.0.
func (o *oldAdapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, params, err := o.router.FindRoute(r)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		o.t.Errorf("read the request: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	input := &openapi3filter.RequestValidationInput{
		Request: r, Route: route, PathParams: params,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
			IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
		o.t.Errorf("the request is outside of 1.0: %v", err)
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	o.answer(answer, r, body)
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.Code, Header: answer.Header(),
		Body: io.NopCloser(bytes.NewReader(answer.Body.Bytes())), Options: input.Options,
	}
	if err := openapi3filter.ValidateResponse(context.Background(), output); err != nil {
		o.t.Errorf("the answer is outside of 1.0: %v", err)
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (o *oldAdapter) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	switch {
	case r.URL.Path == "/v1/adapter":
		_, _ = fmt.Fprint(w, `{"contractVersions":["1.0"],"name":"demo","build":"old","apps":[]}`)
	case r.Method == http.MethodPut:
		o.dispatch(w, body)
	case strings.HasSuffix(r.URL.Path, "/cancel"):
		_, _ = fmt.Fprint(w, `{"outcome":"too_late","message":"it has ended"}`)
	case r.URL.Path == "/v1/operations":
		_, _ = fmt.Fprintf(w, `{"epoch":"e","cursor":"e:1","operations":[%s]}`, o.status("op_1"))
	case strings.HasPrefix(r.URL.Path, "/v1/operations/"):
		_, _ = fmt.Fprint(w, o.status("op_1"))
	case strings.Contains(r.URL.Path, "/actions/"):
		_, _ = fmt.Fprint(w, `{"output":{"heard":"hi"}}`)
	default:
		_, _ = fmt.Fprint(w,
			`{"instanceId":"ins_1","health":"healthy","message":"well","members":[],"observedAt":"2026-01-01T00:00:00Z"}`)
	}
}

func (o *oldAdapter) dispatch(w http.ResponseWriter, body []byte) {
	var spec oldSpec
	var fence struct{ Attempt int }
	if json.Unmarshal(body, &spec) != nil || json.Unmarshal(body, &fence) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	same, _ := json.Marshal(spec)
	o.mu.Lock()
	op, known := o.ops[spec.OperationID]
	if !known {
		op = &oldOperation{spec: string(same)}
		o.ops[spec.OperationID] = op
	}
	mismatch := op.spec != string(same)
	op.attempt = max(op.attempt, fence.Attempt)
	o.mu.Unlock()
	if mismatch {
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprint(w, `{"code":"BODY_MISMATCH","message":"another specification"}`)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprint(w, o.status(spec.OperationID))
}

func (o *oldAdapter) status(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprintf(
		`{"operationId":%q,"attempt":%d,"state":"running","phase":"","percent":1,"message":"","members":[]}`, id,
		o.ops[id].attempt)
}

func TestAdapterOfVersion10KeepsWorking(t *testing.T) {
	t.Parallel()
	client, target := serve(t, newOldAdapter(t).ServeHTTP)
	said, err := client.Describe(t.Context(), target)
	require.NoError(t, err)
	require.Equal(t, []string{"1.0"}, said.ContractVersions)

	d := adapter.Dispatch{
		OperationID: "op_1", Kind: adapter.MemberDrain, Attempt: 1, Deadline: time.Now().Add(time.Minute),
		CorrelationID: "c",
		Instance:      adapter.Instance{ID: "ins_1", App: "demo", Components: []adapter.ComponentCount{}},
		Members: []adapter.Member{{
			ID: "mem_1", ComponentKey: "peer", Cordoned: true, Labels: map[string]string{"zone": "a"},
			Node: adapter.Node{ID: "nod_1", Reachable: new(bool)},
		}},
		Targets: []string{"mem_1"}, Platform: adapter.Platform{GraphQLURL: "http://p/graphql", Token: "tok",
			TokenExpiresAt: time.Now()},
	}
	_, done, err := client.Dispatch(t.Context(), target, d)
	require.NoError(t, err)
	require.False(t, done)
	d.Attempt, d.Force, d.Members[0].Cordoned, d.Members[0].Labels = 2, true, false, nil
	status, _, err := client.Dispatch(t.Context(), target, d)
	require.NoError(t, err, "what 1.1 added is no part of the specification of 1.0")
	require.Equal(t, 2, status.Attempt)

	_, err = client.Status(t.Context(), target, "op_1", adapterclient.Trace{})
	require.NoError(t, err)
	page, err := client.Changes(t.Context(), target, "", 0)
	require.NoError(t, err)
	require.Len(t, page.Operations, 1)
	canceled, err := client.Cancel(t.Context(), target, "op_1", 2, adapterclient.Trace{})
	require.NoError(t, err)
	require.Equal(t, adapter.CancelTooLate, canceled.Outcome)
	seen, err := client.Observe(t.Context(), target, "ins_1", "tok", adapterclient.Trace{})
	require.NoError(t, err)
	require.Equal(t, adapter.Healthy, seen.Health)
	_, err = client.Act(t.Context(), target, "say", adapter.ActionRequest{
		Input: json.RawMessage(`{}`), IdempotencyKey: "k", Instance: d.Instance, Members: d.Members,
		Platform: d.Platform,
	}, adapterclient.Trace{})
	require.NoError(t, err)

	_, err = client.Plan(t.Context(), target, adapter.PlanRequest{Kind: d.Kind, Instance: d.Instance,
		Members: d.Members, Platform: d.Platform}, adapterclient.Trace{})
	require.Equal(t, adapterclient.Unsupported, kindOf(t, err))
}

func TestPlansAreHeldAgainstTheContract(t *testing.T) {
	t.Parallel()
	work := `{"kind":"job","id":"1","name":"","owner":"","since":"2026-01-01T00:00:00Z","message":""}`
	for name, one := range map[string]struct {
		code int
		body string
		want adapterclient.Kind
	}{
		"no such route":           {404, ``, adapterclient.Unsupported},
		"no such method":          {405, ``, adapterclient.Unsupported},
		"not implemented":         {501, ``, adapterclient.Unsupported},
		"refused":                 {422, `{"code":"UNSAFE","message":"no"}`, adapterclient.Rejected},
		"broken":                  {503, ``, adapterclient.Unavailable},
		"no verdict":              {200, `{}`, adapterclient.Invalid},
		"a verdict of its own":    {200, `{"verdict":"perhaps"}`, adapterclient.Invalid},
		"unsafe without a reason": {200, `{"verdict":"unsafe","reasons":[]}`, adapterclient.Invalid},
		"more work than counted": {200, `{"verdict":"safe","workLost":[` + work + `],"workTotal":0}`,
			adapterclient.Invalid},
		"more work than may be sent": {200, `{"verdict":"safe","workTotal":101,"workLost":[` + strings.Repeat(work+",",
			adapter.MaxWork) + work + `]}`, adapterclient.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(one.code)
				_, _ = fmt.Fprint(w, one.body)
			})
			_, err := client.Plan(t.Context(), target, adapter.PlanRequest{Kind: adapter.MemberDrain},
				adapterclient.Trace{})
			require.Equal(t, one.want, kindOf(t, err))
		})
	}
	client, target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != adapter.PlansPath ||
			r.Header.Get(adapter.HeaderCorrelation) != "cor" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = fmt.Fprint(w, `{"verdict":"safe","reversible":true,"reasons":[],"workLost":[`+work+
			`],"workTotal":7,"message":"go on"}`)
	})
	plan, err := client.Plan(t.Context(), target, adapter.PlanRequest{Kind: adapter.MemberDrain},
		adapterclient.Trace{CorrelationID: "cor"})
	require.NoError(t, err)
	require.Equal(t, 7, plan.WorkTotal)
	require.True(t, plan.Reversible)
}
