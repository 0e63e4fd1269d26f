package calls

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestListingKeepsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	jobs := []report.Job{{JobID: "3", State: "RUNNING"}, {JobID: "2", State: "FAILED"}, {JobID: "1", State: "FAILED"}}
	require.Len(t, listing{Limit: 2}.filter(jobs), 2)
	require.Equal(t, []report.Job{jobs[1], jobs[2]}, listing{Limit: 9, States: []string{"failed"}}.filter(jobs))
	require.Equal(t, []report.Job{jobs[0]}, listing{Limit: 9, JobID: "3"}.filter(jobs))
	require.NotNil(t, listing{Limit: 9, JobID: "9"}.filter(jobs), "an empty list, not null")
}

func TestNodesAreReadAndJudged(t *testing.T) {
	t.Parallel()
	workers := []adapter.Member{
		{ID: "mem_a1", ComponentKey: layout.ComponentWorker},
		{ID: "mem_b1", ComponentKey: layout.ComponentWorker, Index: 1},
		{
			ID: "mem_d1", ComponentKey: layout.ComponentWorker, Index: 2,
		}, {ID: "mem_e1", ComponentKey: layout.ComponentWorker, Index: 3},
	}
	found := parseObserved(
		"NodeName=w0 NodeAddr=10.0.0.1  # member mem_a1\n"+
			"NodeName=w5 NodeAddr=10.0.0.1  # member mem_b1\nNodeName=w3 NodeAddr=10.0.0.3\n"+
			"=== slurmctld\nup\n=== slurmdbd\nup\n=== silent\nw3\n=== nodes\n"+
			"w0|idle|2|1000|main*|none\nw5|down*|2|1000+|main*|Not|responding\n"+
			"w9|idle|1|1|main|none\nw3|idle|1|1|main|none\nw0|idle|2|1000|other|none\n",
		workers,
	)
	require.Len(t, found.nodes, 4)
	require.Equal(
		t,
		report.Node{Name: "w0", MemberID: "mem_a1", State: "idle", CPUs: 2, MemoryMiB: 1000, Partition: "main"},
		found.nodes[0],
	)
	require.Equal(t, "mem_b1", found.nodes[1].MemberID, "the record decides, not the number in the name")
	require.Equal(t, "Not|responding", found.nodes[1].Reason)
	require.Empty(t, found.nodes[2].MemberID)
	require.Equal(t, "mem_e1", found.nodes[3].MemberID, "a line of an earlier version is its index's")

	seen := judge(adapter.Member{ID: "mem_c1", ComponentKey: layout.ComponentController}, workers, found)
	require.Equal(t, adapter.Degraded, seen.Health)
	require.Equal(
		t,
		"slurmctld is up, 1 of 4 workers are healthy; "+
			"nodes of Slurm that are not members: w9; members that are not in Slurm: mem_d1",
		seen.Message,
	)
	require.Equal(t, "slurmctld and slurmdbd are up", seen.Members[0].Message)
	require.Equal(t, adapter.Unhealthy, seen.Members[2].Health)
	require.Contains(t, seen.Members[3].Message, "not in Slurm")
	require.Equal(t, []adapter.MemberStatus{"", adapter.MemberFailed, ""},
		[]adapter.MemberStatus{seen.Members[2].Status, seen.Members[3].Status, seen.Members[4].Status},
		"one that Slurm does not know comes back by a recovery alone; slurmd that is down is started again")
	require.Equal(t, adapter.Unhealthy, seen.Members[4].Health)
	require.Contains(t, seen.Members[4].Message, "does not accept connections")
	require.Equal(t, []adapter.RoleObservation{
		{ComponentKey: layout.ComponentController, Health: adapter.Healthy, Summary: "slurmctld and slurmdbd are up"},
		{ComponentKey: layout.ComponentWorker, Health: adapter.Degraded, Summary: "1 down*, 2 idle, 1 not in Slurm"},
	}, seen.Roles)
	found.slurmdbd = ""
	require.Equal(t, adapter.Degraded, judgeController(adapter.Member{}, found).Health)
}

func TestControllerThatDoesNotAnswerLeavesWorkersUnknown(t *testing.T) {
	t.Parallel()
	controller := adapter.Member{ID: "mem_c1", ComponentKey: layout.ComponentController}
	workers := []adapter.Member{{ID: "mem_a1", ComponentKey: layout.ComponentWorker}}
	seen := unanswered(controller, workers, adapter.Unhealthy, "slurmctld does not answer")
	require.Equal(t, adapter.Unhealthy, seen.Members[0].Health)
	require.Equal(t, adapter.HealthUnknown, seen.Members[1].Health)
}

func TestWorkersWithTheFewestJobsLeaveASmallerCluster(t *testing.T) {
	t.Parallel()
	var workers []adapter.Member
	members := map[string]string{}
	for i, id := range []string{"mem_a", "mem_b", "mem_c", "mem_d"} {
		workers = append(workers, adapter.Member{ID: id, ComponentKey: layout.ComponentWorker, Index: i,
			Status: "active"})
		members[layout.WorkerName(i)] = id
	}
	workers[1].Status = "failed"
	busy := load{members: members, jobs: []report.Job{{JobID: "1", NodeList: layout.WorkerName(3)},
		{JobID: "2", NodeList: layout.WorkerName(1)}}}
	var left []string
	for _, one := range leastLoaded(workers, busy, 3) {
		left = append(left, one.ID)
	}
	require.Equal(t, []string{"mem_b", "mem_c", "mem_a"}, left,
		"the failed one, then those without a job from the highest index on")
}

func TestSubmissionBecomesArgumentsOnly(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"sbatch", "--parsable", "--chdir=/var/lib/slurm/jobs", "--output=/var/lib/slurm/jobs/%j.out",
		"--open-mode=append",
		"--comment=platform:usr_1", "--error=/var/lib/slurm/jobs/%j.err", "--array=0-3%2", "--dependency=afterok:7",
		"--job-name=a", "--partition=p", "--nodes=2", "--ntasks=4", "--cpus-per-task=1", "--gres=gpu:2",
		"--time=5", "--hold",
	}, submission{Script: "#!/bin/sh", Name: "a", Partition: "p", Nodes: 2, Tasks: 4, CPUsPerTask: 1, LimitMinutes: 5,
		GPUs: 2, Array: "0-3%2", Dependency: "afterok:7", Held: true, SeparateErrors: true}.command("ins_1",
		"usr_1", nil))
	require.Equal(
		t, "Invalid partition name specified",
		complaint(adapter.TaskResult{Stderr: "sbatch: error: Invalid partition name specified\n"}),
	)
	require.Equal(t, "exit code 1", complaint(adapter.TaskResult{Message: "exit code 1"}))
}

// TestInstancesOfEarlierVersionsAreAskedByTheCommandsThatTheirManifestNames has the commands of 1.4 and 1.5 as those
// manifests have them: once an operator has narrowed the adapter's calls, no other command is run.
func TestInstancesOfEarlierVersionsAreAskedByTheCommandsThatTheirManifestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "JobID:12,UserName:20,Partition:41,State:20,Reason:30,exit_code:12,NumNodes:8,NodeList:60,"+
		"SubmitTime:20,StartTime:20,EndTime:20,JobArrayID:30,Comment:50,tres-alloc:70,tres-per-node:25,"+
		"tres-per-job:25,Dependency:60,Name:64", listCommand(detailed, "").Command[4])
	of, sum := written{id: "{id}", job: "{job}", own: "{own}", native: "{native}"}, sha256.New()
	for _, one := range []adapter.RunCommand{outputCommand("{job}", "{bytes}"),
		partCommand("{job}", outputSuffix, "{from}", "{bytes}", "{wait}"),
		partCommand("{job}", errorsSuffix, "{from}", "{bytes}", "{wait}"), personOutputCommand(of, "{bytes}"),
		personPartCommand(of, outputSuffix, "{from}", "{bytes}", "{wait}"),
		personPartCommand(of, errorsSuffix, "{from}", "{bytes}", "{wait}")} {
		_, _ = fmt.Fprintf(sum, "%s|%s\n", strings.Join(one.Command, " "), one.User)
	}
	require.Equal(t, "1bf7ad9ba9b24dad410ff6b602dc929ca443b2ef7753840b8f584fb8185b485c",
		hex.EncodeToString(sum.Sum(nil)), "the commands of 1.5.0 that read output")
	for version, want := range map[string]detail{
		"1.3.9": plain, "1.4.0": detailed, "1.5.9": peopled, "1.6.0": telling, "1.12.0": telling, "2.0.0": telling,
		"one": plain,
	} {
		call := &adapter.Call{Instance: adapter.Instance{Version: version}}
		require.Equal(t, want, detailOf(call), version)
	}
}
