package slurm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// queueLine pads values as squeue does.
func queueLine(values ...string) string {
	var line strings.Builder
	for i, value := range values {
		fmt.Fprintf(&line, "%-*s", queueFields[i].width, value)
	}
	return line.String() + "\n"
}

func TestQueueIsReadByWidths(t *testing.T) {
	t.Parallel()
	text := queueLine("7", "nobody", "main", "PENDING", "Resources", "0", "2", "", "2026-11-20T11:00:00", "2026-11-20T12:00:00", "N/A", "a | b  c=d") +
		queueLine("6", "root", "main", "RUNNING", "None", "0", "1", "w0", "2026-11-20T11:00:00", "2026-11-20T11:00:01", "2027-11-20T11:00:01", "x") +
		queueLine("5", "root", "main", "FAILED", "NonZeroExitCode", "768", "1", "w0", "2026-11-20T10:00:00", "2026-11-20T10:00:01", "2026-11-20T10:00:02", "é")
	jobs := parseQueue(text)
	require.Len(t, jobs, 3)
	require.Equal(t, job{JobID: "7", Name: "a | b  c=d", User: "nobody", Partition: "main", State: "PENDING", Reason: "Resources", Nodes: 2, Submitted: "2026-11-20T11:00:00"}, jobs[0])
	require.Empty(t, jobs[1].Ended, "the end of a running job is only its limit")
	require.Equal(t, 3, jobs[2].ExitCode)
	require.Equal(t, "é", jobs[2].Name)
}

const completedLine = `JobId=3 UserId=root(0) GroupId=root(0) Name=a b Tres=x JobState=COMPLETED Partition=main TimeLimit=525600 StartTime=2026-11-20T11:40:24 EndTime=2026-11-20T11:40:25 NodeList=w[0-1] NodeCnt=2 ProcCnt=2 WorkDir=/ ReservationName= Tres=cpu=2,mem=2000M,node=2,billing=2 Account= QOS= WcKey= Cluster=unknown SubmitTime=2026-11-20T11:40:24 EligibleTime=2026-11-20T11:40:24 DerivedExitCode=0:0 ExitCode=0:15 `

func TestCompletionLogIsReadAndMerged(t *testing.T) {
	t.Parallel()
	done := parseCompleted(completedLine + "\nnonsense\n\n")
	require.Equal(t, []job{{
		JobID: "3", Name: "a b Tres=x", User: "root", Partition: "main", State: "COMPLETED", ExitCode: 143, Nodes: 2, NodeList: "w[0-1]",
		Submitted: "2026-11-20T11:40:24", Started: "2026-11-20T11:40:24", Ended: "2026-11-20T11:40:25",
	}}, done)
	merged := mergeJobs([]job{{JobID: "12", State: "RUNNING"}, {JobID: "3", State: "FAILED"}}, append(done, job{JobID: "4"}))
	require.Equal(t, []string{"12", "4", "3"}, []string{merged[0].JobID, merged[1].JobID, merged[2].JobID})
	require.Equal(t, "FAILED", merged[2].State, "what slurmctld still knows wins")
}

func TestListingKeepsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	jobs := []job{{JobID: "3", State: "RUNNING"}, {JobID: "2", State: "FAILED"}, {JobID: "1", State: "FAILED"}}
	require.Len(t, listing{Limit: 2}.filter(jobs), 2)
	require.Equal(t, []job{jobs[1], jobs[2]}, listing{Limit: 9, States: []string{"failed"}}.filter(jobs))
	require.Equal(t, []job{jobs[0]}, listing{Limit: 9, JobID: "3"}.filter(jobs))
	require.NotNil(t, listing{Limit: 9, JobID: "9"}.filter(jobs), "an empty list, not null")
}

func TestFirstNodeOfAList(t *testing.T) {
	t.Parallel()
	for list, first := range map[string]string{"w0": "w0", "w[2-5]": "w2", "w[3,9]": "w3", "w7": "w7", "w1,x[2-3]": "w1", "": "", "w[4]": "w4"} {
		require.Equal(t, first, firstNode(list), list)
	}
	for list, all := range map[string][]string{
		"w0": {"w0"}, "w[2-4]": {"w2", "w3", "w4"}, "w[3,9-10],w12": {"w3", "w9", "w10", "w12"}, "w7,w[1-2]": {"w7", "w1", "w2"}, "": nil,
	} {
		require.Equal(t, all, nodeNames(list), list)
	}
	slot, ok := workerSlot("w12")
	require.True(t, ok)
	require.Equal(t, 12, slot)
	for _, name := range []string{"12", "w", "w-1", "w128", "x1"} {
		_, ok = workerSlot(name)
		require.False(t, ok, name)
	}
}

func TestNodesAreReadAndJudged(t *testing.T) {
	t.Parallel()
	workers := []adapter.Member{
		onNode("mem_a1", componentWorker, 0, 1, 1), onNode("mem_b1", componentWorker, 1, 1, 1), onNode("mem_d1", componentWorker, 2, 1, 1),
		onNode("mem_e1", componentWorker, 3, 1, 1),
	}
	found := parseSighting("NodeName=w0 NodeAddr=10.0.0.1  # member mem_a1\nNodeName=w5 NodeAddr=10.0.0.1  # member mem_b1\nNodeName=w3 NodeAddr=10.0.0.3\n"+
		"=== slurmctld\nup\n=== slurmdbd\nup\n=== silent\nw3\n=== nodes\n"+
		"w0|idle|2|1000|main*|none\nw5|down*|2|1000+|main*|Not|responding\nw9|idle|1|1|main|none\nw3|idle|1|1|main|none\nw0|idle|2|1000|other|none\n", workers)
	require.Len(t, found.nodes, 4)
	require.Equal(t, node{Name: "w0", MemberID: "mem_a1", State: "idle", CPUs: 2, MemoryMiB: 1000, Partition: "main"}, found.nodes[0])
	require.Equal(t, "mem_b1", found.nodes[1].MemberID, "the record decides, not the number in the name")
	require.Equal(t, "Not|responding", found.nodes[1].Reason)
	require.Empty(t, found.nodes[2].MemberID)
	require.Equal(t, "mem_e1", found.nodes[3].MemberID, "a line of an earlier version is its index's")

	seen := judge(onNode("mem_c1", componentController, 0, 1, 1), workers, found)
	require.Equal(t, adapter.Degraded, seen.Health)
	require.Equal(t, "slurmctld is up, 1 of 4 workers are healthy; nodes of Slurm that are no members: w9; members that are not in Slurm: mem_d1", seen.Message)
	require.Equal(t, "slurmctld and slurmdbd are up", seen.Members[0].Message)
	require.Equal(t, adapter.Unhealthy, seen.Members[2].Health)
	require.Contains(t, seen.Members[3].Message, "not in Slurm")
	require.Equal(t, adapter.Unhealthy, seen.Members[4].Health)
	require.Contains(t, seen.Members[4].Message, "takes no connection")
	found.slurmdbd = ""
	require.Equal(t, adapter.Degraded, judgeController(adapter.Member{}, found).Health)

	for one, want := range map[node]adapter.Health{
		{State: "idle"}: adapter.Healthy, {State: "mixed"}: adapter.Healthy, {State: "allocated+"}: adapter.Healthy, {State: "draining"}: adapter.Degraded,
		{State: "drained", Reason: "platform cordon op_1"}: adapter.Healthy, {State: "drained", Reason: "disk"}: adapter.Degraded,
		{State: "down"}: adapter.Unhealthy, {State: "idle*"}: adapter.Unhealthy, {State: "drained*", Reason: "platform drain op_1"}: adapter.Unhealthy, {State: "nonsense"}: adapter.Unhealthy,
	} {
		require.Equal(t, want, health(one), one.State)
	}
}

func TestControllerThatDoesNotAnswerLeavesWorkersUnknown(t *testing.T) {
	t.Parallel()
	controller, workers := onNode("mem_c1", componentController, 0, 1, 1), []adapter.Member{onNode("mem_a1", componentWorker, 0, 1, 1)}
	seen := unanswered(controller, workers, adapter.Unhealthy, "slurmctld does not answer")
	require.Equal(t, adapter.Unhealthy, seen.Members[0].Health)
	require.Equal(t, adapter.HealthUnknown, seen.Members[1].Health)
}

func TestSubmissionBecomesArgumentsOnly(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"sbatch", "--parsable", "--chdir=/var/lib/slurm/jobs", "--output=/var/lib/slurm/jobs/%j.out", "--open-mode=append",
		"--job-name=a", "--partition=p", "--nodes=2", "--ntasks=4", "--cpus-per-task=1", "--time=5",
	}, submission{Script: "#!/bin/sh", Name: "a", Partition: "p", Nodes: 2, Tasks: 4, CPUsPerTask: 1, LimitMinutes: 5}.command())
	require.Equal(t, "Invalid partition name specified", complaint(adapter.TaskResult{Stderr: "sbatch: error: Invalid partition name specified\n"}))
	require.Equal(t, "exit code 1", complaint(adapter.TaskResult{Message: "exit code 1"}))
}

func TestImpossibleClustersAreRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	whole := func() adapter.Dispatch {
		d := adapter.Dispatch{Kind: adapter.InstanceCreate, Members: []adapter.Member{
			onNode("mem_c1", componentController, 0, 1, 1), onNode("mem_w1", componentWorker, 0, 1, 1),
		}}
		for i := range d.Members {
			d.Members[i].Node.SealingKey = "k"
		}
		return d
	}
	require.NoError(t, check(context.Background(), whole()))
	cases := map[string]struct {
		change func(*adapter.Dispatch)
		code   string
	}{
		"no worker":       {func(d *adapter.Dispatch) { d.Members = d.Members[:1] }, "TOPOLOGY_INVALID"},
		"no controller":   {func(d *adapter.Dispatch) { d.Members = d.Members[1:] }, "TOPOLOGY_INVALID"},
		"foreign member":  {func(d *adapter.Dispatch) { d.Members[1].ComponentKey = "queen" }, "UNKNOWN_COMPONENT"},
		"too many":        {func(d *adapter.Dispatch) { d.Members = append(d.Members, manyWorkers()...) }, "TOO_MANY_WORKERS"},
		"no sealing key":  {func(d *adapter.Dispatch) { d.Members[0].Node.SealingKey = "" }, "NODE_INCOMPLETE"},
		"evil address":    {func(d *adapter.Dispatch) { d.Members[1].Node.Address = "10.0.0.1\nInclude=/x" }, "NODE_INCOMPLETE"},
		"no node address": {func(d *adapter.Dispatch) { d.Members[0].Node.Address = "" }, "NODE_INCOMPLETE"},
	}
	for name, c := range cases {
		d := whole()
		c.change(&d)
		var refused adapter.ErrorBody
		require.ErrorAs(t, check(context.Background(), d), &refused, name)
		require.Equal(t, c.code, refused.Code, name)
	}
	d := whole()
	d.Kind, d.Members = adapter.InstanceDecommission, d.Members[:1]
	require.NoError(t, check(context.Background(), d), "what never became whole can still be torn down")
}

func manyWorkers() (list []adapter.Member) {
	for i := range maxWorkers {
		one := onNode(fmt.Sprintf("mem_x%d", i), componentWorker, i+1, 1, 1)
		one.Node.SealingKey = "k"
		list = append(list, one)
	}
	return list
}

func TestUnfitNodesSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	member := onNode("mem_c1", componentController, 0, 1, 1)
	codes := map[int]string{3: "PACKAGES_MISSING", 4: "NAMESPACES_MISSING", 1: adapter.CodeNodeTask}
	for exit, want := range codes {
		var failed adapter.OperationError
		require.ErrorAs(t, unfit(member, adapter.TaskResult{State: adapter.TaskFailed, ExitCode: &exit, Stderr: " slurmctld munged\n"}), &failed)
		require.Equal(t, want, failed.Code)
		require.Equal(t, adapter.OwnerNode, failed.Owner)
	}
	require.NoError(t, unfit(member, adapter.TaskResult{State: adapter.TaskSucceeded}))
}
