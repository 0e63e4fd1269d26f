package slurm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/mend"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

// bench is a cluster under test with what the platform knows of it.
type bench struct {
	t       *testing.T
	p       *adaptertest.Platform
	base    string
	current adapter.Dispatch
	address string
	dir     string // the adapter's
	counter int
}

func newBench(t *testing.T, instance string, workers int, config ...string) *bench {
	t.Helper()
	b := prepareBench(t, instance, workers)
	for _, text := range config {
		b.current.Instance.Config = json.RawMessage(text)
	}
	b.succeeds(b.p.Run(b.base, b.current, patience))
	return b
}

// prepareBench returns a cluster that is still to be created.
func prepareBench(t *testing.T, instance string, workers int) *bench {
	t.Helper()
	adaptertest.Require(t, "slurmctld", "slurmd", "munged", "srun", "mariadbd", "slurmdbd")
	b := &bench{t: t, address: adaptertest.Address(t), p: adaptertest.New(t, "slurm-reference",
		adaptertest.Namespaces())}
	b.dir = t.TempDir()
	app, err := App(readManifest(t), b.dir, mend.New())
	require.NoError(t, err)
	b.base = b.p.Start(app)
	b.current = clusterDispatch(b.p, instance, b.address, workers)
	return b
}

// member returns one more worker, on a node of its own.
func (b *bench) member(index int) adapter.Member {
	node := b.p.Node(b.address)
	node.ID, node.Name = "nod_"+layout.WorkerName(index), "node-"+layout.WorkerName(index)
	return adapter.Member{
		ID: "mem_" + layout.WorkerName(index) + b.current.Instance.ID, ComponentKey: layout.ComponentWorker,
		Index: index, Status: "pending", Node: node,
	}
}

// dispatch returns the next operation on the cluster as it is.
func (b *bench) dispatch(kind adapter.Kind, change any, targets ...string) adapter.Dispatch {
	b.counter++
	d := b.current
	d.OperationID, d.Kind, d.Targets = fmt.Sprintf("op_%d_%s", b.counter, b.current.Instance.ID), kind, targets
	d.Deadline = time.Now().Add(2 * patience)
	if change != nil {
		raw, err := json.Marshal(change)
		require.NoError(b.t, err)
		d.Change = raw
	}
	return d
}

func (b *bench) succeeds(status adapter.Status) adapter.Status {
	b.t.Helper()
	require.Equal(b.t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	return status
}

func (b *bench) run(kind adapter.Kind, change any, targets ...string) adapter.Status {
	b.t.Helper()
	return b.succeeds(b.p.Run(b.base, b.dispatch(kind, change, targets...), patience))
}

// begin dispatches without waiting for the end.
func (b *bench) begin(d adapter.Dispatch) {
	b.t.Helper()
	code, raw := b.p.Call(b.base, http.MethodPut, adapter.OperationPath(d.OperationID), d, nil)
	require.Equal(b.t, http.StatusAccepted, code, "%s", raw)
}

func (b *bench) status(d adapter.Dispatch) (status adapter.Status) {
	b.t.Helper()
	b.p.Call(b.base, http.MethodGet, adapter.OperationPath(d.OperationID), nil, &status)
	return status
}

func (b *bench) awaits(d adapter.Dispatch, what string, seen func(adapter.Status) bool) (status adapter.Status) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { status = b.status(d); return seen(status) }, patience,
		50*time.Millisecond, what)
	return status
}

func (b *bench) submit(script string, extra map[string]any) string {
	b.t.Helper()
	b.counter++
	input := map[string]any{"script": script}
	for key, value := range extra {
		input[key] = value
	}
	var submitted struct{ JobID string }
	b.p.Action(b.base, "queue.submit", b.current, "submit-"+time.Now().String(), input, &submitted)
	return submitted.JobID
}

func (b *bench) job(id, state string) report.Job {
	b.t.Helper()
	return awaitJob(b.t, b.p, b.base, b.current, id, state).Jobs[0]
}

func (b *bench) plan(d adapter.Dispatch) (answer adapter.PlanAnswer) {
	b.t.Helper()
	code, raw := b.p.Call(b.base, http.MethodPost, "/v1/plans", adapter.PlanRequest{
		Kind: d.Kind, Instance: d.Instance, Members: d.Members, Targets: d.Targets,
		Change: d.Change, Force: d.Force, Platform: b.p.Access(),
	}, &answer)
	require.Equal(b.t, http.StatusOK, code, "%s", raw)
	return answer
}

func (b *bench) observe() (seen adapter.Observation) {
	b.t.Helper()
	code, raw := b.p.Call(b.base, http.MethodGet, adapter.InstancePath(b.current.Instance.ID), nil, &seen)
	require.Equal(b.t, http.StatusOK, code, "%s", raw)
	return seen
}

// usage reads the cluster's usage to its end, by dimension and session.
func (b *bench) usage() map[string][]adapter.UsageRecord {
	b.t.Helper()
	found, cursor := make(map[string][]adapter.UsageRecord), ""
	for {
		var page adapter.UsagePage
		code, raw := b.p.Call(b.base, http.MethodGet, adapter.UsagePath(b.current.Instance.ID, cursor), nil, &page)
		require.Equal(b.t, http.StatusOK, code, "%s", raw)
		if len(page.Records) == 0 {
			return found
		}
		for _, one := range page.Records {
			found[one.Dimension+" "+one.Session] = append(found[one.Dimension+" "+one.Session], one)
		}
		cursor = page.Cursor
	}
}

// on runs a command in a member's sandbox, beside what the adapter does.
func (b *bench) on(member, script string) string {
	b.t.Helper()
	spec, err := json.Marshal(daemons.Shell(script))
	require.NoError(b.t, err)
	b.counter++
	result, err := adapter.NewClient(b.p.Access(), "test", nil).Run(context.Background(), member,
		adapter.TaskSpec{IdempotencyKey: "test-" + time.Now().String(), Kind: adapter.TaskRun, Spec: spec})
	require.NoError(b.t, err)
	require.Equal(b.t, adapter.TaskSucceeded, result.State, "%s %s", result.Message, result.Stderr)
	return result.Stdout
}

// add grows the cluster by workers with these indexes.
func (b *bench) add(indexes ...int) []string {
	b.t.Helper()
	var ids []string
	for _, index := range indexes {
		member := b.member(index)
		b.current.Members = append(b.current.Members[:len(b.current.Members):len(b.current.Members)], member)
		ids = append(ids, member.ID)
	}
	change := adapter.AddChange{Components: []adapter.ComponentCount{{Key: layout.ComponentWorker,
		Count: len(indexes)}}}
	status := b.run(adapter.MembersAdd, change, ids...)
	for _, one := range status.Members {
		require.Equal(b.t, adapter.MemberActive, one.Status)
	}
	return ids
}

func (b *bench) forget(id string) {
	var kept []adapter.Member
	for _, member := range b.current.Members {
		if member.ID != id {
			kept = append(kept, member)
		}
	}
	b.current.Members = kept
}

func statuses(status adapter.Status) map[string]adapter.MemberStatus {
	list := make(map[string]adapter.MemberStatus)
	for _, one := range status.Members {
		list[one.ID] = one.Status
	}
	return list
}
