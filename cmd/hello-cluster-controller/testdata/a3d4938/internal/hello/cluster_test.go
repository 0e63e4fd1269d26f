package hello

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

const patience = 60 * time.Second

// cluster is an instance as the platform would hold it: its members, and the operations on them.
type cluster struct {
	t       *testing.T
	p       *adaptertest.Platform
	base    string
	count   int
	members []adapter.Member
	version string
	config  string
}

func newCluster(t *testing.T, peers int) *cluster {
	t.Helper()
	p := adaptertest.New(t, "hello-cluster")
	app, err := App(readManifest(t))
	require.NoError(t, err)
	c := &cluster{t: t, p: p, base: p.Start(app), version: "1.1.0", config: `{"greeting":"Welcome"}`}
	c.grow(peers)
	require.Equal(t, adapter.StateSucceeded, c.run(c.op(adapter.InstanceCreate)).State)
	return c
}

// grow adds members to the list and returns the new ids.
func (c *cluster) grow(n int) []string {
	var ids []string
	for range n {
		at := len(c.members)
		if at > 0 {
			at = c.members[at-1].Index + 1
		}
		id := fmt.Sprintf("mem_%d", at)
		c.members = append(c.members, adapter.Member{ID: id, ComponentKey: component, Index: at, Status: "pending", Node: c.p.Node("127.0.0.1")})
		ids = append(ids, id)
	}
	return ids
}

// op is a dispatch of this kind on these members, with an id of its own.
func (c *cluster) op(kind adapter.Kind, targets ...string) adapter.Dispatch {
	c.count++
	return adapter.Dispatch{
		OperationID: fmt.Sprintf("op_%d", c.count), Kind: kind, Attempt: 1, Deadline: time.Now().Add(patience), CorrelationID: "cor-1",
		Instance: adapter.Instance{
			ID: "ins_1", Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "hello-cluster", Version: c.version,
			Config: json.RawMessage(c.config), Components: []adapter.ComponentCount{{Key: component, Count: max(1, len(c.members))}},
		},
		Members: slices.Clone(c.members), Targets: targets, Platform: c.p.Access(),
	}
}

func (c *cluster) run(d adapter.Dispatch) adapter.Status {
	c.t.Helper()
	return c.p.Run(c.base, d, patience)
}

// succeed runs a dispatch to its good end.
func (c *cluster) succeed(d adapter.Dispatch) adapter.Status {
	c.t.Helper()
	status := c.run(d)
	require.Equal(c.t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	return status
}

func (c *cluster) await(d adapter.Dispatch, what string, is func(adapter.Status) bool) adapter.Status {
	c.t.Helper()
	return c.p.Await(c.base, d.OperationID, patience, what, is)
}

func (c *cluster) cancel(d adapter.Dispatch) adapter.CancelResult {
	c.t.Helper()
	var result adapter.CancelResult
	code, raw := c.p.Call(c.base, http.MethodPost, adapter.CancelPath(d.OperationID), adapter.CancelRequest{Attempt: d.Attempt}, &result)
	require.Equal(c.t, http.StatusOK, code, "body: %s", raw)
	return result
}

func (c *cluster) plan(d adapter.Dispatch) adapter.PlanAnswer {
	c.t.Helper()
	var answer adapter.PlanAnswer
	code, raw := c.p.Call(c.base, http.MethodPost, adapter.PlansPath, adapter.PlanRequest{
		Kind: d.Kind, Instance: d.Instance, Members: d.Members, Targets: d.Targets, Change: d.Change, Force: d.Force,
		CorrelationID: "cor-1", Platform: d.Platform,
	}, &answer)
	require.Equal(c.t, http.StatusOK, code, "body: %s", raw)
	return answer
}

// work starts work of so many seconds on a member, and returns its id.
func (c *cluster) work(member string, seconds int) string {
	c.t.Helper()
	var started struct{ ID, MemberID string }
	c.count++
	c.p.Action(c.base, "work.start", c.op(adapter.MemberCordon), fmt.Sprint("work-", c.count), map[string]any{"member": member, "seconds": seconds, "name": "count sheep"}, &started)
	require.Equal(c.t, member, started.MemberID)
	return started.ID
}

// refuses requires that a member takes no new work.
func (c *cluster) refuses(member string) {
	c.t.Helper()
	c.count++
	code, raw := c.p.TryAction(c.base, "work.start", c.op(adapter.MemberCordon), fmt.Sprint("work-", c.count), map[string]any{"member": member, "seconds": 1})
	require.Equal(c.t, http.StatusUnprocessableEntity, code, "body: %s", raw)
	require.Contains(c.t, string(raw), "NO_PEER_AVAILABLE")
}

// working lists the ids of the work that runs.
func (c *cluster) working() []string {
	c.t.Helper()
	var list struct{ Work []struct{ ID string } }
	c.count++
	c.p.Action(c.base, "work.list", c.op(adapter.MemberCordon), fmt.Sprint("list-", c.count), map[string]any{}, &list)
	ids := []string{}
	for _, piece := range list.Work {
		ids = append(ids, piece.ID)
	}
	return ids
}

// roll is which members a member knows, by the files on its node.
func (c *cluster) roll(member string) []string {
	c.t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.p.Root(member), "srv/hello/peers"))
	require.NoError(c.t, err)
	known := []string{}
	for _, entry := range entries {
		known = append(known, entry.Name())
	}
	return known
}

// runs is the version that a member's process runs, by the file that it wrote.
func (c *cluster) runs(member string) string {
	raw, err := os.ReadFile(filepath.Join(c.p.Root(member), "srv/hello/running"))
	require.NoError(c.t, err)
	return string(raw)
}

func (c *cluster) observe() adapter.Observation {
	c.t.Helper()
	var seen adapter.Observation
	code, raw := c.p.Call(c.base, http.MethodGet, adapter.InstancePath("ins_1"), nil, &seen)
	require.Equal(c.t, http.StatusOK, code, "body: %s", raw)
	return seen
}

func stateOf(status adapter.Status, member string) adapter.MemberUpdate {
	for _, update := range status.Members {
		if update.ID == member {
			return update
		}
	}
	return adapter.MemberUpdate{}
}

func raw(t *testing.T, value any) json.RawMessage {
	t.Helper()
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return out
}

func evidence[T any](t *testing.T, status adapter.Status, key string) (out T) {
	t.Helper()
	require.Contains(t, status.Evidence, key)
	require.NoError(t, json.Unmarshal(status.Evidence[key], &out))
	return out
}
