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
	// watchTime is how long one look at a draining worker waits for something to change.
	watchTime = 50 * time.Second
	// maxLost is how many lost jobs an operation's evidence names.
	maxLost = 100
)

// sight is what slurmctld says of one worker.
type sight struct {
	// State is Slurm's word, empty when slurmctld did not answer.
	State string
	// Reason is why it is drained or down.
	Reason string
	// Jobs are what runs there, at most 100.
	Jobs []report.Job
	// sure says whether slurmctld listed the jobs: without that, none is not nothing.
	sure bool
	// digest changes when anything of it does.
	digest string
}

// watchScript prints a node's state and jobs, as soon as they differ from what had the digest $3, at
// the latest after $4 seconds. $1 is the node, $2 the format of squeue.
const watchScript = `export TZ=UTC
see() {
    timeout 10 sinfo -a -h -N -n "$1" -o "%T|%E" | head -n 1
    echo "=== jobs"
    jobs=$(timeout 10 squeue -a -h -w "$1" -t RUNNING,COMPLETING,SUSPENDED,STOPPED,CONFIGURING -O "$2") && echo "$jobs" | head -n 100 && echo "=== sure"
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

// see looks at a worker. The step's name must differ from look to look.
func (w work) see(ctx context.Context, worker layout.Worker, step, previous string) (sight, error) {
	controller, err := w.Controller()
	if err != nil {
		return sight{}, err
	}
	task := adapter.RunCommand{Command: []string{
		"sh", "-c", watchScript, "watch", worker.Name(), report.QueueFormat(), previous, fmt.Sprint(int(watchTime.Seconds())),
	}}
	result, err := w.Try(ctx, controller, step, task, adapter.Within(watchTime+40*time.Second))
	if err != nil {
		return sight{}, err
	}
	return parseSight(result), nil
}

func parseSight(result adapter.TaskResult) sight {
	if result.State != adapter.TaskSucceeded {
		return sight{}
	}
	digest, rest, _ := strings.Cut(result.Stdout, "\n")
	state, jobs, _ := strings.Cut(rest, "=== jobs\n")
	jobs, _, sure := strings.Cut(jobs, "=== sure")
	word, reason, _ := strings.Cut(strings.TrimSpace(state), "|")
	return sight{State: word, Reason: report.NodeReason(reason), Jobs: report.ParseQueue(jobs), sure: sure, digest: digest}
}

// drained says whether Slurm says in as many words that nothing runs there and nothing will.
func (s sight) drained() bool { return s.sure && s.State == "drained" && len(s.Jobs) == 0 }

// abandoned says whether slurmctld does not hear the node and has nothing running there any more.
func (s sight) abandoned() bool {
	return s.sure && len(s.Jobs) == 0 && (strings.HasSuffix(s.State, "*") || strings.HasPrefix(s.State, "down"))
}

// held says whether the node was drained on purpose before, by this adapter.
func (s sight) held() bool {
	return strings.HasPrefix(s.Reason, report.ReasonMark) && strings.HasPrefix(s.State, "drain")
}

// describe says to a person what a drain waits for.
func (s sight) describe(worker layout.Worker) string {
	switch {
	case s.State == "":
		return fmt.Sprintf("slurmctld does not say how %s is; that is not taken for drained", worker.Name())
	case strings.HasSuffix(s.State, "*"):
		return fmt.Sprintf("%s is %s: it does not answer, and that is not taken for drained", worker.Name(), s.State)
	case len(s.Jobs) == 0:
		return fmt.Sprintf("%s is %s", worker.Name(), s.State)
	case len(s.Jobs) == 1:
		return fmt.Sprintf("%s is %s: waiting for job %s", worker.Name(), s.State, s.Jobs[0].JobID)
	}
	return fmt.Sprintf("%s is %s: waiting for %d jobs", worker.Name(), s.State, len(s.Jobs))
}
