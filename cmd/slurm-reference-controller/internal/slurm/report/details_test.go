package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDetailsAreReadByTheirWidths(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"JobID": "7", "State": "RUNNING", "SubmitTime": "2026-11-26T13:00:00", "StartTime": "2026-11-26T13:00:01",
		"EndTime": "2026-11-27T13:00:00", "JobArrayID": "5_1", "Comment": OwnerComment("usr_1"), "Dependency": "(null)",
		"tres-alloc": "cpu=1,node=1,gres/gpu=2", "Name": "a b",
	}
	var line strings.Builder
	for _, field := range strings.Split(DetailFormat(), ",") {
		name, width, _ := strings.Cut(field, ":")
		fmt.Fprintf(&line, "%-"+width+"s", values[name])
	}
	two := 2
	require.Equal(t, []Job{{
		JobID: "7", State: "RUNNING", Name: "a b", Submitted: "2026-11-26T13:00:00Z", Started: "2026-11-26T13:00:01Z",
		Details: Details{ArrayID: "5_1", Owner: "usr_1", GPUs: &two},
	}}, InUTC(ParseDetailed(line.String()+"\n")))
	require.Less(t, 80*len(line.String()), 48<<10, "beside the log's lines it fits in what a node keeps of an output")
	require.Empty(t, ownerOf("a word of the user"))
}

func TestGPUsAreWhatAJobAskedForWhereSlurmDoesNotCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"gres:gpu:2": 6, "gres:gpu": 3, "gres:gpu:a100:1": 3, "(null)": 0,
		"N/A": 0} {
		job := Job{Details: Details{GPUs: gpusOf("cpu=1,node=3")}}
		job.ask(text, 3)
		require.Equal(t, want, *job.GPUs, text)
	}
	counted := Job{Details: Details{GPUs: gpusOf("cpu=1,gres/gpu=4")}}
	counted.ask("gres:gpu:2", 3)
	require.Equal(t, 4, *counted.GPUs)
}

func TestTimesGetTheirZone(t *testing.T) {
	t.Parallel()
	require.Equal(t, "2026-11-26T11:00:00Z", Zoned("2026-11-26T13:00:00", " +0200\n"))
	require.Empty(t, Zoned("", "+0200"))
	require.Equal(t, "Unknown", Zoned("Unknown", "+0200"))
	jobs := ParseCompletedIn("JobId=3 UserId=nobody(65534) Name=x JobState=FAILED SubmitTime=2026-11-26T13:00:00 ",
		"-0100")
	require.Equal(t, "2026-11-26T14:00:00Z", jobs[0].Submitted)
}

func TestStepsAndAccountsHaveTheirGPUs(t *testing.T) {
	t.Parallel()
	steps := ParseSteps("5|FAILED|1:0|w0|cpu=1|2026-11-26T13:00:00|Unknown|many\n" +
		"5.batch|CANCELLED by 0|0:15|w0|cpu=1,gres/gpu=2|2026-11-26T13:00:00|Unknown|batch\n")
	require.Equal(t, []Step{{
		StepID: "batch", Name: "batch", State: "CANCELLED", ExitCode: 143, NodeList: "w0", GPUs: 2,
		Started: "2026-11-26T13:00:00Z",
	}}, steps)
	accounts := ParseDetailedAccounts(
		"billing=1,gres/gpu=3|9|nobody|jobs|main|COMPLETED|0:0|1|1|w0|2026-11-26T13:00:00|Unknown|Unknown|1|2|a|b\n")
	require.Equal(t, 3, *accounts[0].GPUs)
	require.Equal(t, "2026-11-26T13:00:00Z", accounts[0].Submitted)
	require.Equal(t, "a|b", accounts[0].Name)
}
