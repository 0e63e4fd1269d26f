package slurm

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// part is what job.output answers.
type part struct {
	State, Text string
	Next, Size  int
	Ended       bool
	Path, Why   string
}

func (b *bench) part(id string, input map[string]any) (read part) {
	b.t.Helper()
	input["jobId"] = id
	b.p.Action(b.base, "job.output", b.current, "part-"+time.Now().String(), input, &read)
	return read
}

// refused runs an action that must be refused, and returns the refusal.
func (b *bench) refused(action, id string) (refused adapter.ErrorBody) {
	b.t.Helper()
	code, raw := b.p.TryAction(b.base, action, b.current, "refused-"+time.Now().String(), map[string]any{"jobId": id})
	require.Equal(b.t, http.StatusUnprocessableEntity, code, "%s", raw)
	require.NoError(b.t, json.Unmarshal(raw, &refused))
	require.Equal(b.t, "input.jobId", refused.Path)
	return refused
}

// TestJobsTellWhatUsersOfSlurmAskFor has one worker, on which jobs of all kinds run.
func TestJobsTellWhatUsersOfSlurmAskFor(t *testing.T) {
	t.Parallel()
	b := prepareBench(t, "ins_jobs", 1)
	b.current.Members[1].Node.CPUs = 8
	b.succeeds(b.p.Run(b.base, b.current, patience))
	t.Run("arrays and dependencies", func(t *testing.T) { arraysAreTold(t, b) })
	t.Run("held and queued again", func(t *testing.T) { jobsAreHeldAndQueuedAgain(t, b) })
	t.Run("output", func(t *testing.T) { outputFollows(t, b) })
	t.Run("links", func(t *testing.T) { linksLeadNowhere(t, b) })
}

func arraysAreTold(t *testing.T, b *bench) {
	script := "#!/bin/sh\nsrun -n1 sh -c 'echo task $SLURM_ARRAY_TASK_ID'; echo odd >&2; " +
		"test $SLURM_ARRAY_TASK_ID != 2\n"
	array := b.submit(script, map[string]any{"array": "1-3%1", "separateErrors": true, "name": "many"})
	after := b.submit("#!/bin/sh\ntrue\n", map[string]any{"dependency": "afterok:" + array})
	waiting := b.job(after, "PENDING")
	require.Contains(t, waiting.Dependency, "afterok:"+array)

	var tasks []report.Job
	require.Eventually(t, func() bool {
		var list jobList
		b.p.Action(b.base, "queue.list", b.current, "array-"+time.Now().String(), map[string]any{"jobId": array}, &list)
		tasks = list.Jobs
		return len(tasks) == 3 && !slices.ContainsFunc(tasks, func(one report.Job) bool { return !one.HasEnded() })
	}, patience, 200*time.Millisecond)
	states := map[string]string{}
	for _, one := range tasks {
		states[one.ArrayID] = one.State
		require.Equal(t, "usr_1", one.Owner)
		for _, at := range []string{one.Submitted, one.Started, one.Ended} {
			parsed, err := time.Parse(time.RFC3339, at)
			require.NoError(t, err, "a time with its zone")
			require.WithinDuration(t, time.Now(), parsed, 5*time.Minute)
		}
	}
	require.Equal(t, map[string]string{
		array + "_1": "COMPLETED", array + "_2": "FAILED", array + "_3": "COMPLETED",
	}, states)
	require.Equal(t, "DependencyNeverSatisfied", awaitReason(b, after).Reason)
	b.end(after)

	one := tasks[slices.IndexFunc(tasks, func(one report.Job) bool { return one.ArrayID == array+"_2" })]
	require.Equal(t, "task 2\n", b.part(one.JobID, map[string]any{}).Text)
	require.Equal(t, "odd\n", b.part(one.JobID, map[string]any{"stream": "errors"}).Text)
	steps := b.job(one.JobID, "FAILED").Steps
	require.Len(t, steps, 2)
	require.Equal(t, []string{"batch", "0"}, []string{steps[0].StepID, steps[1].StepID})
	require.Equal(t, []int{1, 0}, []int{steps[0].ExitCode, steps[1].ExitCode})

	older := b.current
	older.Instance.Version = "1.3.0"
	_, raw := b.p.TryAction(b.base, "queue.list", older, "before", map[string]any{"jobId": one.JobID})
	require.Contains(t, string(raw), `"jobId":"`+one.JobID+`"`)
	for _, word := range []string{"arrayId", "owner", `"gpus":`, "steps", "dependency", "Z\""} {
		require.NotContains(t, string(raw), word, "an instance is answered as its manifest says")
	}
	accounts := struct{ Jobs []report.AccountedJob }{}
	require.Eventually(t, func() bool { // slurmctld passes on what ended within a few seconds
		b.p.Action(b.base, "accounting.jobs", b.current, "accounts-"+time.Now().String(), map[string]any{}, &accounts)
		return len(accounts.Jobs) > 0
	}, patience, 200*time.Millisecond)
	_, err := time.Parse(time.RFC3339, accounts.Jobs[0].Submitted)
	require.NoError(t, err)
	require.Zero(t, *accounts.Jobs[0].GPUs)
}

// awaitReason waits until Slurm says why a job waits for ever.
func awaitReason(b *bench, id string) (found report.Job) {
	require.Eventually(b.t, func() bool {
		found = b.job(id, "PENDING")
		return found.Reason == "DependencyNeverSatisfied"
	}, patience, 200*time.Millisecond)
	return found
}

func jobsAreHeldAndQueuedAgain(t *testing.T, b *bench) {
	ask := func(verb, id string) {
		b.p.Action(b.base, "queue."+verb, b.current, verb+time.Now().String(), map[string]any{"jobId": id}, &struct{}{})
	}
	id := b.submit(longJob, map[string]any{"held": true})
	require.Equal(t, "JobHeldUser", b.job(id, "PENDING").Reason)
	ask("release", id)
	b.job(id, "RUNNING")
	require.Equal(t, "JOB_STATE", b.refused("queue.requeue", b.submit("#!/bin/sh\n",
		map[string]any{"held": true})).Code)
	ask("requeue", id)
	ask("hold", id)
	require.Contains(t, b.job(id, "PENDING").Reason, "Held")
	b.end(id)
	require.Equal(t, "JOB_STATE", b.refused("queue.hold", id).Code)
	for _, verb := range []string{"hold", "release", "requeue"} {
		require.Equal(t, "JOB_NOT_FOUND", b.refused("queue."+verb, "999999").Code, verb)
	}
}

func outputFollows(t *testing.T, b *bench) {
	worker := b.current.Members[1].ID
	id := b.submit("#!/bin/sh\necho \"one \303\244\"\nuntil test -e /tmp/go; do sleep 0.1; done\n"+
		"echo two\nprintf '\\377\\000' \n", nil)
	b.job(id, "RUNNING")
	path := "/var/lib/slurm/jobs/" + id + ".out"
	first := b.part(id, map[string]any{"waitSeconds": 15, "bytes": 5})
	require.Equal(t, part{State: "RUNNING", Text: "one ", Next: 4, Size: 7, Path: path}, first, "no half characters")
	first = b.part(id, map[string]any{"from": first.Next})
	require.Equal(t, part{State: "RUNNING", Text: "ä\n", Next: 7, Size: 7, Path: path}, first)
	began := time.Now()
	require.Empty(t, b.part(id, map[string]any{"from": first.Next, "waitSeconds": 1}).Text)
	require.Greater(t, time.Since(began), time.Second, "it waits while the job runs")
	next := make(chan part)
	go func() { next <- b.part(id, map[string]any{"from": first.Next, "waitSeconds": 15}) }()
	b.on(worker, "touch /tmp/go")
	require.Contains(t, (<-next).Text, "two\n", "it waits for more")
	b.job(id, "COMPLETED")
	last := b.part(id, map[string]any{"from": first.Next, "waitSeconds": 15})
	require.Equal(t, part{State: "COMPLETED", Text: "two\n??", Next: 13, Size: 13, Ended: true, Path: path}, last)
	whole, err := base64.StdEncoding.DecodeString(b.part(id, map[string]any{"encoding": "base64"}).Text)
	require.NoError(t, err)
	require.Equal(t, "one ä\ntwo\n\xff\x00", string(whole))
	require.Equal(t, "JOB_NOT_FOUND", b.refused("job.output", "999999").Code)
	waits := b.submit(longJob, map[string]any{"held": true})
	require.Equal(t, part{State: "PENDING"}, b.part(waits, map[string]any{}))
	b.end(waits)
}

// linksLeadNowhere has jobs put links to files of root where their output is.
func linksLeadNowhere(t *testing.T, b *bench) {
	for _, file := range []string{"/etc/munge/munge.key", "/etc/shadow"} {
		id := b.submit("#!/bin/sh\nln -sf "+file+" /var/lib/slurm/jobs/$SLURM_JOB_ID.out\n", nil)
		b.job(id, "COMPLETED")
		require.Equal(t, "OUTPUT_UNREADABLE", b.refused("job.output", id).Code)
		require.Empty(t, awaitJob(t, b.p, b.base, b.current, id, "COMPLETED").Output)
	}
}
