package slurm

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/mend"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

// patience bounds each wait. It is long for a machine with ten times as much to do as it has processors.
const patience = 5 * time.Minute

func readManifest(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile("../../manifest.json")
	require.NoError(t, err)
	return raw
}

// clusterDispatch returns the dispatch that creates a cluster of one controller and some workers,
// all on this machine.
func clusterDispatch(p *adaptertest.Platform, instance, address string, workers int) adapter.Dispatch {
	d := adapter.Dispatch{
		OperationID: "op_create_" + instance, Kind: adapter.InstanceCreate, Attempt: 1,
		Deadline: time.Now().Add(2 * patience), CorrelationID: "cor-1",
		Instance: adapter.Instance{
			ID: instance, Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "slurm", Version: "1.6.0",
			Config: json.RawMessage(`{"partitionName":"batch"}`),
		},
		Members: []adapter.Member{
			{ID: "mem_c" + instance, ComponentKey: layout.ComponentController, Status: "pending",
				Node: p.Node(address)},
		},
		Platform: p.Access(),
	}
	for i := range workers {
		d.Members = append(
			d.Members,
			adapter.Member{
				ID: "mem_" + layout.WorkerName(i) + instance, ComponentKey: layout.ComponentWorker, Index: i,
				Status: "pending", Node: p.Node(address),
			},
		)
	}
	return d
}

// TestRealClusterLivesFromLaunchToTeardown runs Debian's Slurm: a controller and two workers that
// share one node, beside a second cluster on the same node.
func TestRealClusterLivesFromLaunchToTeardown(t *testing.T) {
	t.Parallel()
	adaptertest.Require(t, "slurmctld", "slurmd", "munged", "srun")
	address := adaptertest.Address(t)
	p := adaptertest.New(t, "slurm-reference", adaptertest.Namespaces())
	app, err := App(readManifest(t), t.TempDir(), mend.New())
	require.NoError(t, err)
	base := p.Start(app)

	d := clusterDispatch(p, "ins_one", address, 2)
	other := clusterDispatch(p, "ins_two", address, 1)
	status := p.Run(base, d, patience)
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.JSONEq(t, `{"answered":["w0","w1"]}`, string(status.Evidence["firstJob"]))
	status = p.Run(base, other, patience)
	require.Equal(t, adapter.StateSucceeded, status.State, "a second cluster on the node: %+v", status.Error)

	var nodes struct{ Nodes []report.Node }
	p.Action(base, "node.list", d, "nodes", map[string]any{}, &nodes)
	require.Len(t, nodes.Nodes, 2, "only workers that registered are seen")
	require.Equal(t, "mem_w1ins_one", nodes.Nodes[1].MemberID)
	require.Equal(t, "batch", nodes.Nodes[0].Partition)
	require.Equal(t, 1, nodes.Nodes[0].CPUs, "two workers share the two CPUs of their node")
	require.Zero(t, *nodes.Nodes[0].GPUs)

	var seen adapter.Observation
	code, _ := p.Call(base, http.MethodGet, adapter.InstancePath("ins_one"), nil, &seen)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, adapter.Healthy, seen.Health, "%+v", seen)

	t.Run("jobs", func(t *testing.T) { exerciseQueue(t, p, base, d) })

	for i, one := range []adapter.Dispatch{d, other} {
		one.OperationID, one.Kind = "op_end_"+one.Instance.ID, adapter.InstanceDecommission
		status = p.Run(base, one, patience)
		require.Equal(t, adapter.StateSucceeded, status.State, "cluster %d: %+v", i, status.Error)
		for _, member := range status.Members {
			require.Equal(t, adapter.MemberRemoved, member.Status)
		}
	}
}

// exerciseQueue submits, watches, reads and cancels jobs by the app's actions alone.
func exerciseQueue(t *testing.T, p *adaptertest.Platform, base string, d adapter.Dispatch) {
	t.Helper()
	var submitted struct{ JobID string }
	script := "#!/bin/sh\nid -un; echo \"on $SLURMD_NODENAME\"; " +
		"srun -N2 -n2 sh -c 'echo step on $SLURMD_NODENAME'; exit 3\n"
	p.Action(base, "queue.submit", d, "s1", map[string]any{"script": script, "name": "first", "nodes": 2}, &submitted)
	done := awaitJob(t, p, base, d, submitted.JobID, "FAILED")
	require.Equal(t, "first", done.Jobs[0].Name)
	require.Equal(t, layout.JobUser, done.Jobs[0].User)
	require.Equal(t, 3, done.Jobs[0].ExitCode)
	require.Equal(t, "w[0-1]", done.Jobs[0].NodeList)
	for _, line := range []string{"nobody\n", "on w0\n", "step on w0\n", "step on w1\n"} {
		require.Contains(t, done.Output, line)
	}

	var again struct{ JobID string }
	p.Action(base, "queue.submit", d, "s1", map[string]any{"script": script, "name": "first", "nodes": 2}, &again)
	require.Equal(t, submitted.JobID, again.JobID, "a repeated submission must not be a second job")

	var long struct{ JobID string }
	p.Action(base, "queue.submit", d, "s2", map[string]any{"script": "#!/bin/sh\nsleep 600\n"}, &long)
	awaitJob(t, p, base, d, long.JobID, "RUNNING")
	var canceled struct{ Canceled bool }
	p.Action(base, "queue.cancel", d, "c1", map[string]any{"jobId": long.JobID}, &canceled)
	require.True(t, canceled.Canceled)
	awaitJob(t, p, base, d, long.JobID, "CANCELLED")
	p.Action(base, "queue.cancel", d, "c2", map[string]any{"jobId": submitted.JobID}, &canceled)
	require.False(t, canceled.Canceled, "a job that has ended cannot be canceled")

	refusals := map[string]struct {
		action string
		input  map[string]any
		code   string
		path   string
	}{
		"partition": {
			"queue.submit", map[string]any{"script": "#!/bin/sh\n", "partition": "nowhere"}, "SUBMIT_REFUSED", "input",
		},
		"no script": {"queue.submit", map[string]any{"script": "hostname"}, "SCRIPT_INVALID", "input.script"},
		"job":       {"queue.cancel", map[string]any{"jobId": "999999"}, "JOB_NOT_FOUND", "input.jobId"},
		"read":      {"queue.list", map[string]any{"jobId": "999999"}, "JOB_NOT_FOUND", "input.jobId"},
		"option":    {"queue.cancel", map[string]any{"jobId": "--all"}, adapter.CodeInvalid, "input.jobId"},
	}
	for name, c := range refusals {
		code, raw := p.TryAction(base, c.action, d, "r-"+name, c.input)
		var refused adapter.ErrorBody
		require.NoError(t, json.Unmarshal(raw, &refused))
		require.Equal(t, http.StatusUnprocessableEntity, code, "%s: %s", name, raw)
		require.Equal(t, c.code, refused.Code, "%s: %s", name, raw)
		require.Equal(t, c.path, refused.Path, name)
	}
}

type jobList struct {
	Jobs   []report.Job
	Output string
}

func awaitJob(t *testing.T, p *adaptertest.Platform, base string, d adapter.Dispatch, id, state string) jobList {
	t.Helper()
	var list jobList
	tries := 0
	require.Eventually(t, func() bool {
		tries++
		list = jobList{}
		p.Action(base, "queue.list", d, "list-"+id+state+time.Now().String(), map[string]any{"jobId": id}, &list)
		return len(list.Jobs) == 1 && list.Jobs[0].State == state
	}, patience, 100*time.Millisecond, "job %s never was %s", id, state)
	return list
}

// isLostWithoutItsState requires that a cluster whose slurmctld is down may come back while its saved state is there,
// and is reported lost without it.
func isLostWithoutItsState(t *testing.T, b *bench, controller string) {
	t.Helper()
	down := b.observe()
	require.Equal(t, adapter.Unhealthy, down.Health)
	require.Nil(t, down.Lost, "a recovery brings it back")
	b.on(controller, "mv /var/lib/slurm/slurmctld /var/lib/slurm/away; mkdir /var/lib/slurm/slurmctld")
	require.Equal(t, "STATE_GONE", b.observe().Lost.Code, "what would come back is another cluster")
	b.on(controller, "rmdir /var/lib/slurm/slurmctld; mv /var/lib/slurm/away /var/lib/slurm/slurmctld")
}
