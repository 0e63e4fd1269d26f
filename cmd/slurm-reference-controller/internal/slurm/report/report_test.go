package report

import (
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
	text := queueLine(
		"7", "nobody", "main", "PENDING", "Resources", "0", "2", "", "2026-11-20T11:00:00",
		"2026-11-20T12:00:00", "N/A",
		"a | b  c=d",
	) +
		queueLine(
			"6", "root", "main", "RUNNING", "None", "0", "1", "w0", "2026-11-20T11:00:00", "2026-11-20T11:00:01",
			"2027-11-20T11:00:01", "x",
		) +
		queueLine(
			"5", "root", "main", "FAILED", "NonZeroExitCode", "768", "1", "w0", "2026-11-20T10:00:00",
			"2026-11-20T10:00:01",
			"2026-11-20T10:00:02", "é",
		)
	jobs := ParseQueue(text)
	require.Len(t, jobs, 3)
	require.Equal(
		t,
		Job{
			JobID: "7", Name: "a | b  c=d", User: "nobody", Partition: "main", State: "PENDING",
			Reason: "Resources", Nodes: 2, Submitted: "2026-11-20T11:00:00",
		},
		jobs[0],
	)
	require.Empty(t, jobs[1].Ended, "the end of a running job is only its limit")
	require.Equal(t, 3, jobs[2].ExitCode)
	require.Equal(t, "é", jobs[2].Name)
}

const completedLine = `JobId=3 UserId=root(0) GroupId=root(0) Name=a b Tres=x JobState=COMPLETED ` +
	`Partition=main TimeLimit=525600 ` +
	`StartTime=2026-11-20T11:40:24 EndTime=2026-11-20T11:40:25 NodeList=w[0-1] NodeCnt=2 ProcCnt=2 ` +
	`WorkDir=/ ReservationName= ` +
	`Tres=cpu=2,mem=2000M,node=2,billing=2 Account= QOS= WcKey= Cluster=unknown ` +
	`SubmitTime=2026-11-20T11:40:24 EligibleTime=2026-11-20T11:40:24 DerivedExitCode=0:0 ExitCode=0:15 `

func TestCompletionLogIsReadAndMerged(t *testing.T) {
	t.Parallel()
	done := ParseCompleted(completedLine + "\nnonsense\n\n")
	require.Equal(t, []Job{{
		JobID: "3", Name: "a b Tres=x", User: "root", Partition: "main", State: "COMPLETED", ExitCode: 143,
		Nodes: 2, NodeList: "w[0-1]",
		Submitted: "2026-11-20T11:40:24", Started: "2026-11-20T11:40:24", Ended: "2026-11-20T11:40:25",
	}}, done)
	merged := MergeJobs(
		[]Job{{JobID: "12", State: "RUNNING"}, {JobID: "3", State: "FAILED"}}, append(done, Job{JobID: "4"}),
	)
	require.Equal(t, []string{"12", "4", "3"}, []string{merged[0].JobID, merged[1].JobID, merged[2].JobID})
	require.Equal(t, "FAILED", merged[2].State, "what slurmctld still knows wins")
}

func TestFirstNodeOfAList(t *testing.T) {
	t.Parallel()
	for list, first := range map[string]string{
		"w0": "w0", "w[2-5]": "w2", "w[3,9]": "w3", "w7": "w7", "w1,x[2-3]": "w1", "": "", "w[4]": "w4",
	} {
		require.Equal(t, first, FirstNode(list), list)
	}
	for list, all := range map[string][]string{
		"w0": {"w0"}, "w[2-4]": {"w2", "w3", "w4"}, "w[3,9-10],w12": {"w3", "w9", "w10", "w12"},
		"w7,w[1-2]": {"w7", "w1", "w2"}, "": nil,
	} {
		require.Equal(t, all, NodeNames(list), list)
	}
}

func TestAWorkersStateIsJudged(t *testing.T) {
	t.Parallel()
	for one, want := range map[Node]adapter.Health{
		{State: "idle"}: adapter.Healthy, {State: "mixed"}: adapter.Healthy, {State: "allocated+"}: adapter.Healthy,
		{State: "draining"}: adapter.Degraded,
		{State: "drained", Reason: "platform cordon op_1"}: adapter.Healthy,
		{State: "drained", Reason: "disk"}:                 adapter.Degraded,
		{State: "down"}:                                    adapter.Unhealthy, {State: "idle*"}: adapter.Unhealthy,
		{State: "drained*", Reason: "platform drain op_1"}: adapter.Unhealthy, {State: "nonsense"}: adapter.Unhealthy,
	} {
		require.Equal(t, want, one.Health(), one.State)
	}
}

func TestANodeIsGivenUpByItsSilenceAlone(t *testing.T) {
	t.Parallel()
	for one, want := range map[Node]bool{
		{State: "down*", Reason: "Not responding"}:    true,
		{State: "down", Reason: "Not responding"}:     true,
		{State: "down*", Reason: "a person's reason"}: false,
		{State: "idle*"}: false, // SlurmdTimeout is not over
		{State: "drained*", Reason: "Not responding"}: false,
	} {
		require.Equal(t, want, one.GivenUp(), "%+v", one)
	}
}

func TestAJobWithoutTimesHasNoBeginning(t *testing.T) {
	t.Parallel()
	require.True(t, Job{Submitted: "N/A"}.since().IsZero())
}

func TestCountsHaveTheirNoun(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1 job", Counted(1, "job"))
	require.Equal(t, "2 jobs", Counted(2, "job"))
}

func TestAccountsAreReadNewestFirst(t *testing.T) {
	t.Parallel()
	list := ParseAccounts(
		"1|nobody|jobs|main|COMPLETED|0:0|1|2|w0|2026-11-20T10:00:00|2026-11-20T10:00:01|2026-11-20T10:00:04|3|6|a|" +
			"b\ngarbage\n2|nobody|jobs|main|CANCELLED by 0|0:15|0|0|None " +
			"assigned|2026-11-20T10:00:00|Unknown|Unknown|0|0|x\n",
	)
	require.Len(t, list, 2)
	require.Equal(
		t,
		AccountedJob{
			JobID: "2", Name: "x", User: "nobody", Account: "jobs", Partition: "main",
			State: "CANCELLED", ExitCode: 143, Submitted: "2026-11-20T10:00:00",
		},
		list[0],
	)
	require.Equal(t, "a|b", list[1].Name)
	require.Equal(t, 6, list[1].CPUSeconds)
}
