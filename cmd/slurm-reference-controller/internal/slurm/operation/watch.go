package operation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// watchTime is how long one poll of a draining worker waits for a change.
	watchTime = 50 * time.Second
	// maxLost is how many lost jobs an operation's evidence names.
	maxLost = 100
)

// polled is what slurmctld reports of one worker.
type polled struct {
	// State is Slurm's name of the state, empty when slurmctld did not answer.
	State string
	// Reason is why it is drained or down.
	Reason string
	// Jobs are the jobs there, at most 100.
	Jobs []report.Job
	// sure is whether slurmctld listed the jobs: without that, an empty list proves nothing.
	sure bool
	// digest changes when anything above does.
	digest string
}

// onNode are the states of jobs that occupy a node.
const onNode = "RUNNING,COMPLETING,SUSPENDED,STOPPED,CONFIGURING"

// watchScript prints a node's state and jobs as soon as their digest differs from $3, at the latest
// after $4 seconds. $1 is the node, $2 the format of squeue.
const watchScript = `export TZ=UTC
see() {
    timeout 10 sinfo -a -h -N -n "$1" -o "%T|%E" | head -n 1
    echo "=== jobs"
    jobs=$(timeout 10 squeue -a -h -w "$1" -t ` + onNode + ` -O "$2") && ` +
	`echo "$jobs" | head -n 100 && echo "=== sure"
}
end=$(($(date +%s) + $4))
while :; do
    seen=$(see "$1" "$2")
    digest=$(echo "$seen" | sha256sum | cut -c 1-16)
    if test "$digest" != "$3" || test "$(date +%s)" -ge "$end"; then break; fi
    sleep 0.3
done
echo "$digest"
echo "$seen"`

// poll reads what slurmctld reports of a worker. The name of the step must differ from poll to
// poll.
func (w work) poll(ctx context.Context, worker layout.Worker, step, previous string) (polled, error) {
	controller, err := w.Controller()
	if err != nil {
		return polled{}, err
	}
	task := adapter.RunCommand{Command: []string{
		"sh", "-c", watchScript, "watch", worker.Name(), report.QueueFormat(), previous,
		fmt.Sprint(int(watchTime.Seconds())),
	}}
	result, err := w.Try(ctx, controller, step, task, adapter.Within(watchTime+40*time.Second))
	if err != nil {
		return polled{}, err
	}
	return parsePoll(result), nil
}

// parsePoll reads the output of watchScript. A failed command has reported nothing.
func parsePoll(result adapter.TaskResult) polled {
	if result.State != adapter.TaskSucceeded {
		return polled{}
	}
	digest, rest, _ := strings.Cut(result.Stdout, "\n")
	state, jobs, _ := strings.Cut(rest, "=== jobs\n")
	jobs, _, sure := strings.Cut(jobs, "=== sure")
	name, reason, _ := strings.Cut(strings.TrimSpace(state), "|")
	return polled{
		State: name, Reason: report.NodeReason(reason), Jobs: report.ParseQueue(jobs), sure: sure, digest: digest,
	}
}

// drained reports whether Slurm states that nothing runs there and nothing will.
func (s polled) drained() bool { return s.sure && s.State == "drained" && len(s.Jobs) == 0 }

// abandoned reports whether slurmctld does not reach the node and has no job there any more.
func (s polled) abandoned() bool {
	return s.sure && len(s.Jobs) == 0 && (strings.HasSuffix(s.State, "*") || strings.HasPrefix(s.State, "down"))
}

// held reports whether this adapter drained the node before.
func (s polled) held() bool {
	return strings.HasPrefix(s.Reason, report.ReasonMark) && strings.HasPrefix(s.State, "drain")
}

// describe returns for a person what a drain waits for.
func (s polled) describe(worker layout.Worker) string {
	switch {
	case s.State == "":
		return fmt.Sprintf("slurmctld does not report the state of %s, so it does not count as drained", worker.Name())
	case strings.HasSuffix(s.State, "*"):
		return fmt.Sprintf("%s is %s: it does not answer, so it does not count as drained", worker.Name(), s.State)
	case len(s.Jobs) == 0:
		return fmt.Sprintf("%s is %s", worker.Name(), s.State)
	case len(s.Jobs) == 1:
		return fmt.Sprintf("%s is %s: waiting for job %s", worker.Name(), s.State, s.Jobs[0].JobID)
	}
	return fmt.Sprintf("%s is %s: waiting for %d jobs", worker.Name(), s.State, len(s.Jobs))
}
