package adapter

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

const patience = 10 * time.Second

// lab is the platform's end of the contract for tests: its keys, its public API as far as an
// adapter uses it, and a signed HTTP client for the adapter under test.
type lab struct {
	t      *testing.T
	server *httptest.Server
	signer *Signer
	key    ed25519.PrivateKey
	name   string

	mu      sync.Mutex
	tasks   map[string]*labTask // by member and idempotency key
	order   []string
	reports []map[string]any
	carried []string // the W3C trace contexts that calls came with
	renewed int
	down    bool
	held    map[string]bool // steps that do not end until released
	keys    []jose.JSONWebKey
}

type labTask struct {
	ID    string
	Spec  string
	Kind  string
	State string
	asked int
}

func newLab(t *testing.T) *lab {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	l := &lab{
		t: t, key: private, name: "test-adapter", tasks: map[string]*labTask{}, held: map[string]bool{},
		keys: []jose.JSONWebKey{{Key: public, KeyID: "k1", Algorithm: "EdDSA", Use: "sig"}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/jwks.json", l.jwks)
	mux.HandleFunc("POST /graphql", l.graphql)
	l.server = httptest.NewServer(mux)
	t.Cleanup(l.server.Close)
	l.signer, err = NewSigner(l.server.URL, "k1", private)
	require.NoError(t, err)
	return l
}

func (l *lab) jwks(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: l.keys})
}

func (l *lab) graphql(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Query     string
		Variables struct {
			Input map[string]any
			ID    string
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carried = append(l.carried, r.Header.Get(HeaderTraceparent))
	if l.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer tok") {
		_, _ = io.WriteString(w, `{"errors":[{"message":"no","extensions":{"code":"UNAUTHENTICATED"}}]}`)
		return
	}
	input := body.Variables.Input
	switch {
	case strings.Contains(body.Query, "runNodeTask"):
		l.runTask(w, input)
	case strings.Contains(body.Query, "nodeTask("):
		for _, task := range l.tasks {
			if task.ID == body.Variables.ID {
				l.answerTask(w, "nodeTask", task)
				return
			}
		}
	case strings.Contains(body.Query, "reportOperation"):
		l.reports = append(l.reports, input)
		_, _ = io.WriteString(w, `{"data":{"reportOperation":{"id":"op_1"}}}`)
	case strings.Contains(body.Query, "renewOperationToken"):
		l.renewed++
		_, _ = io.WriteString(w,
			`{"data":{"renewOperationToken":{"token":"tok-new","expiresAt":"2100-01-01T00:00:00Z"}}}`)
	default:
		_, _ = io.WriteString(w, `{"data":{}}`)
	}
}

func (l *lab) runTask(w http.ResponseWriter, input map[string]any) {
	key := input["memberId"].(string) + " " + input["idempotencyKey"].(string)
	spec, _ := json.Marshal(input["spec"])
	task, ok := l.tasks[key]
	if ok && task.Spec != string(spec) {
		_, _ = io.WriteString(w,
			`{"errors":[{"message":"other input","extensions":{"code":"IDEMPOTENCY_KEY_REUSED"}}]}`)
		return
	}
	if !ok {
		task = &labTask{ID: "tsk_" + fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:40], Spec: string(spec),
			Kind: input["kind"].(string), State: "RUNNING"}
		l.tasks[key] = task
		l.order = append(l.order, key)
	}
	task.asked++
	l.answerTask(w, "runNodeTask", task)
}

// answerTask answers with the task; it has succeeded unless its step is held or fails by name.
func (l *lab) answerTask(w http.ResponseWriter, field string, task *labTask) {
	task.State = "SUCCEEDED"
	for step := range l.held {
		if strings.Contains(task.Spec, step) {
			task.State = "RUNNING"
		}
	}
	if strings.Contains(task.Spec, "must-fail") {
		task.State = "FAILED"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{field: map[string]any{
		"id": task.ID, "state": task.State, "message": "said so",
		"result": map[string]any{"exitCode": 0, "stdout": "out of " + task.Spec, "stderr": ""},
	}}})
}

func (l *lab) hold(step string)    { l.mu.Lock(); l.held[step] = true; l.mu.Unlock() }
func (l *lab) release(step string) { l.mu.Lock(); delete(l.held, step); l.mu.Unlock() }
func (l *lab) setDown(down bool)   { l.mu.Lock(); l.down = down; l.mu.Unlock() }

// steps lists the tasks created so far, by the last part of their keys.
func (l *lab) steps() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var steps []string
	for _, key := range l.order {
		steps = append(steps, key[strings.LastIndexByte(key, '.')+1:])
	}
	return steps
}

// call sends a signed request and returns status and body.
func (l *lab) call(base, method, target string, body any, headers ...string) (int, []byte) {
	l.t.Helper()
	var raw []byte
	if body != nil {
		var err error
		raw, err = json.Marshal(body)
		require.NoError(l.t, err)
	}
	return l.send(base, method, target, raw, headers...)
}

func (l *lab) send(base, method, target string, raw []byte, headers ...string) (int, []byte) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, base+target, bytes.NewReader(raw))
	require.NoError(l.t, err)
	req.Header.Set("Content-Type", "application/json")
	require.NoError(l.t, l.signer.SignRequest(req, l.name, raw))
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(l.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(l.t, err)
	checkExchange(l.t, req, raw, resp, answer)
	return resp.StatusCode, answer
}

func (l *lab) config(dir string, apps ...App) Config {
	return Config{
		Name: l.name, Build: "test", Apps: apps, StateDir: dir,
		Issuer: l.server.URL, Keys: NewKeySet(l.server.URL+"/.well-known/jwks.json", nil),
	}
}

// dispatchOf is a valid dispatch of this kind.
func (l *lab) dispatchOf(id string, kind Kind) Dispatch {
	return Dispatch{
		OperationID: id, Kind: kind, Attempt: 1, Deadline: time.Now().Add(time.Minute), CorrelationID: "cor-1",
		Instance: Instance{
			ID: "ins_1", Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "demo", Version: "1.0.0",
			Config: json.RawMessage(`{"name":"a"}`), Components: []ComponentCount{{Key: "peer", Count: 2}},
		},
		Members: []Member{
			{ID: "mem_a", ComponentKey: "peer", Index: 0, Status: "pending",
				Node: Node{ID: "nod_1", Name: "n1", Address: "10.0.0.1", Shape: "baremetal"}},
			{ID: "mem_b", ComponentKey: "peer", Index: 1, Status: "pending",
				Node: Node{ID: "nod_1", Name: "n1", Address: "10.0.0.1", Shape: "baremetal"}},
		},
		Platform: Platform{GraphQLURL: l.server.URL + "/graphql", Token: "tok-1",
			TokenExpiresAt: time.Now().Add(time.Hour)},
	}
}

// eventually reads the operation's status until it satisfies the condition.
func (l *lab) eventually(base, id string, what string, is func(Status) bool) Status {
	l.t.Helper()
	var status Status
	require.Eventually(l.t, func() bool {
		code, body := l.call(base, http.MethodGet, OperationPath(id), nil)
		status = Status{}
		return code == http.StatusOK && json.Unmarshal(body, &status) == nil && is(status)
	}, patience, 10*time.Millisecond, "operation %s never was %s; last %+v", id, what, &status)
	return status
}

func (l *lab) ends(base, id string, state State) Status {
	l.t.Helper()
	return l.eventually(base, id, string(state), func(s Status) bool { return s.State == state })
}

func errorOf(t *testing.T, body []byte) ErrorBody {
	t.Helper()
	var e ErrorBody
	require.NoError(t, json.Unmarshal(body, &e), "body: %s", body)
	require.NotEmpty(t, e.Code)
	require.NotEmpty(t, e.Message)
	return e
}
