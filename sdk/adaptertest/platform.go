package adaptertest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// Token is the bearer token the public API takes.
const Token = "adaptertest-token"

// Platform is the platform's end of the contract.
type Platform struct {
	// URL is the platform's URL: issuer, key set and public API.
	URL string
	// Name is the audience of its requests: the adapter's registered name.
	Name string
	// Artifacts are what members fetch; the test puts them there.
	Artifacts *sandbox.Artifacts

	t      testing.TB
	signer *adapter.Signer
	runner *runner

	mu      sync.Mutex
	tasks   map[string]*task
	reports []map[string]any
}

// task is one node task, kept by id and by member and key.
type task struct {
	id, spec string
	cancel   context.CancelFunc
	done     chan struct{}
	result   map[string]any
}

// New starts a platform for an adapter of this name; it stops with the test, and with it whatever
// its members still run.
func New(t testing.TB, name string, options ...Option) *Platform {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	sealPublic, sealPrivate, err := box.GenerateKey(rand.Reader)
	require.NoError(t, err)
	p := &Platform{Name: name, t: t, tasks: map[string]*task{}}
	p.runner = newRunner(t, sealPublic, sealPrivate)
	for _, option := range options {
		option(p.runner)
	}
	p.Artifacts = p.runner.artifacts
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k1", Algorithm: "EdDSA", Use: "sig"}}})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys) })
	mux.HandleFunc("POST /graphql", p.graphql)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	p.signer, err = adapter.NewSigner(server.URL, "k1", private)
	require.NoError(t, err)
	return p
}

// Start runs an app behind a kit of its own and returns its URL.
func (p *Platform) Start(app adapter.App) string {
	p.t.Helper()
	kit, err := adapter.New(adapter.Config{
		Name: p.Name, Build: "test", Apps: []adapter.App{app}, StateDir: p.t.TempDir(),
		Issuer: p.URL, Keys: adapter.NewKeySet(p.URL+"/.well-known/jwks.json", nil),
	})
	require.NoError(p.t, err)
	require.NoError(p.t, kit.Start(context.Background()))
	server := httptest.NewServer(kit.Handler())
	p.t.Cleanup(func() {
		kit.Stop()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// Node returns this machine as a node.
func (p *Platform) Node(address string) adapter.Node {
	return adapter.Node{
		ID: "nod_1", Name: "node-1", Address: address, AllocationID: "alc_1", Shape: "baremetal", CPUs: 2, MemoryMiB: 2048,
		SealingKey: base64.StdEncoding.EncodeToString(p.runner.public[:]),
	}
}

// Access is what a dispatch or action carries to reach the public API.
func (p *Platform) Access() adapter.Platform {
	return adapter.Platform{GraphQLURL: p.URL + "/graphql", Token: Token, TokenExpiresAt: time.Now().Add(time.Hour)}
}

// Call sends a signed request to the adapter at base and decodes the answer into out, which may be nil.
func (p *Platform) Call(base, method, target string, body, out any) (status int, raw []byte) {
	p.t.Helper()
	var sent []byte
	if body != nil {
		var err error
		sent, err = json.Marshal(body)
		require.NoError(p.t, err)
	}
	req, err := http.NewRequest(method, base+target, bytes.NewReader(sent))
	require.NoError(p.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(adapter.HeaderPlatformToken, Token)
	require.NoError(p.t, p.signer.SignRequest(req, p.Name, sent))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	raw, err = io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	if out != nil && resp.StatusCode < 300 {
		require.NoError(p.t, json.Unmarshal(raw, out), "body: %s", raw)
	}
	return resp.StatusCode, raw
}

// Run dispatches an operation and waits for its end, following the change feed.
func (p *Platform) Run(base string, d adapter.Dispatch, patience time.Duration) adapter.Status {
	p.t.Helper()
	p.Dispatch(base, d)
	return p.Await(base, d.OperationID, patience, "at its end", func(s adapter.Status) bool { return s.State.Terminal() })
}

// Action runs an action and decodes its output; it requires success.
func (p *Platform) Action(base, name string, d adapter.Dispatch, key string, input, output any) {
	p.t.Helper()
	code, raw := p.TryAction(base, name, d, key, input)
	require.Equal(p.t, http.StatusOK, code, "action %s: %s", name, raw)
	var result adapter.ActionResult
	require.NoError(p.t, json.Unmarshal(raw, &result))
	require.NoError(p.t, json.Unmarshal(result.Output, output))
}

// TryAction runs an action and returns the answer as it is.
func (p *Platform) TryAction(base, name string, d adapter.Dispatch, key string, input any) (int, []byte) {
	p.t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(p.t, err)
	return p.Call(base, http.MethodPost, adapter.ActionPath(d.Instance.ID, name), adapter.ActionRequest{
		Input: raw, IdempotencyKey: key, Requester: adapter.Requester{ID: "usr_1", Kind: "user"},
		Instance: d.Instance, Members: d.Members, Platform: p.Access(),
	}, nil)
}

// Dispatch sends a dispatch, with access where it brings none, and requires that it is taken.
func (p *Platform) Dispatch(base string, d adapter.Dispatch) (status adapter.Status) {
	p.t.Helper()
	if d.Platform.Token == "" {
		d.Platform = p.Access()
	}
	code, raw := p.Call(base, http.MethodPut, adapter.OperationPath(d.OperationID), d, &status)
	require.Contains(p.t, []int{http.StatusOK, http.StatusAccepted}, code, "body: %s", raw)
	return status
}

// Await follows the change feed until the operation's status is as asked, and returns it.
func (p *Platform) Await(base, id string, patience time.Duration, what string, is func(adapter.Status) bool) (status adapter.Status) {
	p.t.Helper()
	end, cursor := time.Now().Add(patience), ""
	for {
		status = adapter.Status{}
		p.Call(base, http.MethodGet, adapter.OperationPath(id), nil, &status)
		if is(status) {
			return status
		}
		require.False(p.t, time.Now().After(end), "operation %s was not %s in %s: %+v", id, what, patience, status)
		var page adapter.OperationsPage
		p.Call(base, http.MethodGet, adapter.ChangesPath(cursor, time.Second), nil, &page)
		cursor = page.Cursor
	}
}

// Away cuts members off from the platform, as a node that is lost: their tasks neither begin nor
// report until they are Back.
func (p *Platform) Away(members ...string) { p.runner.away(members) }

// Back ends what Away began.
func (p *Platform) Back(members ...string) { p.runner.back(members) }

// KillProcess kills a supervised process of a member with SIGKILL, as a fault from outside.
func (p *Platform) KillProcess(member, name string) {
	p.t.Helper()
	m, err := p.runner.member(member)
	require.NoError(p.t, err)
	require.NoError(p.t, m.kill(name))
}

// Root is where a member without namespaces has its files on this machine.
func (p *Platform) Root(member string) string {
	return filepath.Join(p.runner.dir, member, "root")
}

// Destroy takes a member's whole sandbox away behind the adapter's back.
func (p *Platform) Destroy(member string) {
	p.t.Helper()
	require.NoError(p.t, p.runner.teardown(member))
}

// Reports returns what the adapter has pushed.
func (p *Platform) Reports() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]map[string]any{}, p.reports...)
}

func (p *Platform) graphql(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Query     string
		Variables struct {
			Input       json.RawMessage
			ID          string
			TaskID      string
			WaitSeconds int
		}
	}
	err := json.NewDecoder(io.LimitReader(r.Body, adapter.MaxBody)).Decode(&body)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		refuse(w, "UNAUTHENTICATED", "the token is not known")
	case err != nil:
		refuse(w, "INVALID_ARGUMENT", "the body is not JSON")
	case strings.Contains(body.Query, "runNodeTask"):
		p.runTask(w, body.Variables.Input)
	case strings.Contains(body.Query, "cancelNodeTask"):
		p.cancelTask(w, body.Variables.TaskID)
	case strings.Contains(body.Query, "renewOperationToken"):
		respond(w, "renewOperationToken", map[string]any{"token": Token, "expiresAt": time.Now().Add(time.Hour)})
	case strings.Contains(body.Query, "nodeTask("):
		p.awaitTask(r.Context(), w, body.Variables.ID, time.Duration(body.Variables.WaitSeconds)*time.Second)
	case strings.Contains(body.Query, "reportOperation"):
		p.report(w, body.Variables.Input)
	default:
		refuse(w, "INVALID_ARGUMENT", "this platform does not know the document")
	}
}

func (p *Platform) report(w http.ResponseWriter, raw json.RawMessage) {
	var input map[string]any
	if json.Unmarshal(raw, &input) != nil {
		refuse(w, "INVALID_ARGUMENT", "input is not an object")
		return
	}
	p.mu.Lock()
	p.reports = append(p.reports, input)
	p.mu.Unlock()
	respond(w, "reportOperation", map[string]any{"id": input["operationId"]})
}

func (p *Platform) runTask(w http.ResponseWriter, raw json.RawMessage) {
	var input taskInput
	if err := json.Unmarshal(raw, &input); err != nil || input.MemberID == "" || input.IdempotencyKey == "" {
		refuse(w, "INVALID_ARGUMENT", "input is not of the expected shape")
		return
	}
	held := p.place(input)
	if held.spec != specOf(input) {
		refuse(w, "IDEMPOTENCY_KEY_REUSED", "the key was used for another task")
		return
	}
	respond(w, "runNodeTask", map[string]any{"id": held.id, "state": adapter.TaskRunning, "message": ""})
}

func specOf(input taskInput) string { return string(input.Kind) + string(input.Spec) }

// place finds the task of a key, or begins it.
func (p *Platform) place(input taskInput) *task {
	key := input.MemberID + " " + input.IdempotencyKey
	p.mu.Lock()
	defer p.mu.Unlock()
	if held, known := p.tasks[key]; known {
		return held
	}
	ctx, cancel := context.WithCancel(context.Background())
	held := &task{id: fmt.Sprintf("tsk_%d", len(p.tasks)), spec: specOf(input), cancel: cancel, done: make(chan struct{})}
	p.tasks[key], p.tasks[held.id] = held, held
	go func() {
		defer close(held.done)
		defer cancel()
		held.result = p.runner.run(ctx, input)
		held.result["id"] = held.id
	}()
	return held
}

func (p *Platform) cancelTask(w http.ResponseWriter, id string) {
	p.mu.Lock()
	held, known := p.tasks[id]
	p.mu.Unlock()
	if !known {
		refuse(w, "NOT_FOUND", "no such task")
		return
	}
	held.cancel()
	respond(w, "cancelNodeTask", map[string]any{"id": id, "state": adapter.TaskRunning, "message": ""})
}

func (p *Platform) awaitTask(ctx context.Context, w http.ResponseWriter, id string, wait time.Duration) {
	p.mu.Lock()
	held, known := p.tasks[id]
	p.mu.Unlock()
	if !known {
		refuse(w, "NOT_FOUND", "no such task")
		return
	}
	select {
	case <-held.done:
		respond(w, "nodeTask", held.result)
	case <-time.After(wait):
		respond(w, "nodeTask", map[string]any{"id": id, "state": adapter.TaskRunning, "message": ""})
	case <-ctx.Done():
	}
}

func respond(w http.ResponseWriter, field string, value any) {
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{field: value}})
}

func refuse(w http.ResponseWriter, code, message string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"message": message, "extensions": map[string]any{"code": code}}}})
}
