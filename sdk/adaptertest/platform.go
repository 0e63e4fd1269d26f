package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// Token is the bearer token that the public API accepts.
const Token = "adaptertest-token"

// Platform is the platform's end of the contract: the conformance suite's stand-in over the sandboxes of this
// package, with a token that is for every member and operation.
type Platform struct {
	// URL is the platform's URL: issuer, key set and public API.
	URL string
	// Name is the audience of its requests: the adapter's registered name.
	Name string
	// Artifacts are what members fetch; the test puts them there.
	Artifacts *sandbox.Artifacts

	t     testing.TB
	nodes *Nodes
	grant *standin.Grant
	stand *standin.Platform
}

// New starts a platform for an adapter of this name; it stops with the test, and with it whatever
// its members still run.
func New(t testing.TB, name string, options ...Option) *Platform {
	t.Helper()
	nodes := NewNodes(t, options...)
	stand, err := standin.Start("127.0.0.1:0", nodes)
	require.NoError(t, err)
	t.Cleanup(stand.Stop)
	return &Platform{
		URL: stand.URL, Name: name, Artifacts: nodes.Artifacts,
		t: t, nodes: nodes, grant: stand.Open(Token), stand: stand,
	}
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
		ID: "nod_1", Name: "node-1", Address: address, AllocationID: "alc_1", Shape: "baremetal", CPUs: 2,
		MemoryMiB:  2048,
		SealingKey: p.nodes.SealingKey(),
	}
}

// Answers serves one more field of the public API, such as "issueSshHostCertificate": with receives the input as JSON
// and returns an object.
func (p *Platform) Answers(field string, with func(input json.RawMessage) (map[string]any, error)) {
	p.stand.Answers(field, with)
}

// Access returns the part of a dispatch or action that gives access to the public API.
func (p *Platform) Access() adapter.Platform { return p.grant.Access() }

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
	token, err := p.stand.Sign(p.Name, method, req.URL.RequestURI(), sent)
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
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
	return p.Await(base, d.OperationID, patience, "at its end", func(s adapter.Status) bool {
		return s.State.Terminal()
	})
}

// Action runs an action, which must succeed, and decodes its output.
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

// Dispatch sends a dispatch, with access where it has none, and requires that it is accepted.
func (p *Platform) Dispatch(base string, d adapter.Dispatch) (status adapter.Status) {
	p.t.Helper()
	if d.Platform.Token == "" {
		d.Platform = p.Access()
	}
	code, raw := p.Call(base, http.MethodPut, adapter.OperationPath(d.OperationID), d, &status)
	require.Contains(p.t, []int{http.StatusOK, http.StatusAccepted}, code, "body: %s", raw)
	return status
}

// Await follows the change feed until is accepts the operation's status, and returns the status.
func (p *Platform) Await(
	base, id string, patience time.Duration, what string, is func(adapter.Status) bool,
) (status adapter.Status) {
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
func (p *Platform) Away(members ...string) { p.nodes.runner.away(members) }

// Back ends Away.
func (p *Platform) Back(members ...string) { p.nodes.runner.back(members) }

// KillProcess kills a supervised process of a member with SIGKILL, as a fault from outside.
func (p *Platform) KillProcess(member, name string) {
	p.t.Helper()
	m, err := p.nodes.runner.member(member)
	require.NoError(p.t, err)
	require.NoError(p.t, m.kill(name))
}

// Root returns the directory of a member without namespaces on this machine.
func (p *Platform) Root(member string) string {
	return filepath.Join(p.nodes.runner.dir, member, "root")
}

// Destroy deletes a member's whole sandbox behind the adapter's back.
func (p *Platform) Destroy(member string) {
	p.t.Helper()
	require.NoError(p.t, p.nodes.runner.teardown(member))
}

// Reports returns the reports that the adapter has pushed.
func (p *Platform) Reports() []map[string]any {
	p.t.Helper()
	list := []map[string]any{}
	for _, raw := range p.stand.Reports() {
		var report map[string]any
		require.NoError(p.t, json.Unmarshal(raw, &report))
		list = append(list, report)
	}
	return list
}
