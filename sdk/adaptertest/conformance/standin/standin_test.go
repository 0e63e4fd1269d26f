package standin_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

func start(t *testing.T) (*standin.Platform, *standin.Grant) {
	t.Helper()
	nodes, err := sandbox.New(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	p, err := standin.Start("127.0.0.1:0", nodes)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	grant, err := p.Grant("ins_1", "op_1", []adapter.Member{{ID: "mem_1"}})
	require.NoError(t, err)
	return p, grant
}

// ask sends a document and returns the answer's data and the first error's code.
func ask(t *testing.T, p *standin.Platform, token, query string, variables map[string]any) (map[string]any, string) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/graphql", bytes.NewReader(raw))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer struct {
		Data   map[string]any
		Errors []struct{ Extensions struct{ Code string } }
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	if len(answer.Errors) > 0 {
		return answer.Data, answer.Errors[0].Extensions.Code
	}
	return answer.Data, ""
}

const runTask = `mutation Run($input: RunNodeTaskInput!) { made: runNodeTask(input: $input) { ...Part } }
fragment Part on NodeTask { id now: state ... on NodeTask { kind } }`

func file(member, key, content string) map[string]any {
	return map[string]any{"input": map[string]any{
		"memberId": member, "kind": "WRITE_FILE", "spec": map[string]any{"path": "/f", "content": content},
		"idempotencyKey": key,
	}}
}

func await(t *testing.T, p *standin.Platform, token, id string) string {
	t.Helper()
	data, code := ask(
		t,
		p,
		token,
		`query($id: ID!) { nodeTask(id: $id, waitSeconds: 20) { state } }`,
		map[string]any{"id": id},
	)
	require.Empty(t, code)
	task, _ := data["nodeTask"].(map[string]any)
	state, _ := task["state"].(string)
	return state
}

func made(t *testing.T, data map[string]any) string {
	t.Helper()
	task, ok := data["made"].(map[string]any)
	require.True(t, ok)
	require.Equal(t, "WRITE_FILE", task["kind"])
	require.Contains(t, task, "now")
	id, _ := task["id"].(string)
	return id
}

func TestATaskIsDoneOnceForItsKeyHoweverTheDocumentIsWritten(t *testing.T) {
	t.Parallel()
	p, grant := start(t)
	first, code := ask(t, p, grant.Token(), runTask, file("mem_1", "k", "x"))
	require.Empty(t, code)
	require.Equal(t, "SUCCEEDED", await(t, p, grant.Token(), made(t, first)))
	inline := `mutation { made: ` +
		`runNodeTask(input: {memberId: "mem_1", kind: WRITE_FILE, spec: {content: "x", path: "/f"}, ` +
		`idempotencyKey: "k"}) { id now: state kind } }`
	second, code := ask(t, p, grant.Token(), inline, nil)
	require.Empty(t, code)
	require.Equal(t, made(t, first), made(t, second))
	_, code = ask(t, p, grant.Token(), runTask, file("mem_1", "k", "other"))
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", code)
	require.Len(t, p.Ledger("ins_1"), 1)
}

func TestATokenIsForItsOwnMembersAndUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	p, grant := start(t)
	_, code := ask(t, p, grant.Token(), runTask, file("mem_2", "k", "x"))
	require.Equal(t, "NOT_FOUND", code)
	_, code = ask(t, p, grant.Token(), `{ instances { id } }`, nil)
	require.Equal(t, "INVALID_ARGUMENT", code)
	_, code = ask(
		t,
		p,
		grant.Token(),
		`mutation($i: ReportOperationInput!) { reportOperation(input: $i) { id } }`,
		map[string]any{"i": map[string]any{"operationId": "op_2"}},
	)
	require.Equal(t, "NOT_FOUND", code)
	renewed, code := ask(t, p, grant.Token(), `mutation { renewOperationToken { token } }`, nil)
	require.Empty(t, code)
	require.Contains(t, p.Tokens(), renewed["renewOperationToken"].(map[string]any)["token"])
	grant.Revoke()
	_, code = ask(t, p, grant.Token(), runTask, file("mem_1", "k", "x"))
	require.Equal(t, "UNAUTHENTICATED", code)
	require.Empty(t, p.Ledger("ins_1"), "nothing was begun by what was refused")
}

func TestRulesHoldFailAndLetPass(t *testing.T) {
	t.Parallel()
	p, grant := start(t)
	hold := p.Add(&standin.Rule{Instance: "ins_1", Fate: standin.Hold, Skip: 1})
	first, _ := ask(t, p, grant.Token(), runTask, file("mem_1", "a", "x"))
	require.Equal(t, "SUCCEEDED", await(t, p, grant.Token(), made(t, first)), "the first is let pass")
	second, _ := ask(t, p, grant.Token(), runTask, file("mem_1", "b", "x"))
	third, _ := ask(t, p, grant.Token(), runTask, file("mem_1", "c", "x"))
	<-hold.Caught()
	require.Equal(t, 2, hold.Count())
	_, code := ask(
		t,
		p,
		grant.Token(),
		`mutation($id: ID!) { cancelNodeTask(taskId: $id) { id } }`,
		map[string]any{"id": made(t, third)},
	)
	require.Empty(t, code)
	require.Equal(t, "CANCELED", await(t, p, grant.Token(), made(t, third)))
	hold.Lift()
	hold.Lift()
	require.Equal(t, "SUCCEEDED", await(t, p, grant.Token(), made(t, second)))
	p.Add(&standin.Rule{Instance: "ins_1", Member: "mem_1", Fate: standin.Fail})
	fourth, _ := ask(t, p, grant.Token(), runTask, file("mem_1", "d", "x"))
	require.Equal(t, "FAILED", await(t, p, grant.Token(), made(t, fourth)))
	begun := 0
	for _, entry := range p.Ledger("ins_1") {
		if entry.Begun {
			begun++
		}
	}
	require.Equal(t, 2, begun, "neither the canceled nor the failed one was carried out")
}

func TestStopEndsWhatIsHeld(t *testing.T) {
	t.Parallel()
	p, grant := start(t)
	p.Add(&standin.Rule{Instance: "ins_1", Fate: standin.Hold})
	_, code := ask(t, p, grant.Token(), runTask, file("mem_1", "a", "x"))
	require.Empty(t, code)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Stop()
		p.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		require.Fail(t, "stop did not end")
	}
}

func TestAnOpenTokenIsForEveryMemberAndOperation(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	open := p.Open("of-the-test")
	require.Equal(t, "of-the-test", open.Access().Token)
	for _, member := range []string{"mem_7", "mem_8"} {
		data, code := ask(t, p, "of-the-test", runTask, file(member, "k", "x"))
		require.Empty(t, code)
		require.Equal(t, "SUCCEEDED", await(t, p, "of-the-test", made(t, data)))
	}
	reported, code := ask(t, p, "of-the-test",
		`mutation($i: ReportOperationInput!) { reportOperation(input: $i) { id } }`,
		map[string]any{"i": map[string]any{"operationId": "op_9"}})
	require.Empty(t, code)
	require.Equal(t, map[string]any{"id": "op_9"}, reported["reportOperation"])
	renewed, code := ask(t, p, "of-the-test", `mutation { renewOperationToken { token } }`, nil)
	require.Empty(t, code)
	require.Equal(t, map[string]any{"token": "of-the-test"}, renewed["renewOperationToken"])
}
