package calls

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// readOutput returns the end of a job's output from the worker that ran its batch step. A job that has not begun has
// none, and so has one before version 1.6 that was not submitted by queue.submit.
func readOutput(
	ctx context.Context, call *adapter.Call, members map[string]string, one report.Job, limit int,
) (string, error) {
	worker, ok := readerOf(call, members, one)
	if !ok || limit == 0 {
		return "", nil
	}
	result, err := call.Do(ctx, worker, "output", endCommand(call, one, strconv.Itoa(limit)), adapter.Within(callTime))
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(result.Stdout, "?"), nil
}

// endCommand reads the last bytes of what a job has written.
func endCommand(call *adapter.Call, one report.Job, bytes string) adapter.RunCommand {
	of := writtenBy(call, one)
	switch {
	case detailOf(call) >= telling:
		return of.locatedCommand(locatedEndScript, streamOutput, bytes)
	case one.OfPerson():
		return personOutputCommand(of, bytes)
	}
	return outputCommand(one.JobID, bytes)
}

// writtenBy names what a job has written.
func writtenBy(call *adapter.Call, job report.Job) written {
	of := written{job: job.JobID, native: people.NativeName(job.JobID)}
	if job.OfPerson() {
		of.id, of.own = strconv.Itoa(job.UID), people.OutputName(call.Instance.ID, job.JobID)
	} else {
		of.own = path.Join(layout.JobDir, job.JobID)
	}
	return of
}

// readerOf returns the member that a job's output is read on: the one that ran its batch step, and when that has left
// the controller, where all members have the same homes.
func readerOf(call *adapter.Call, members map[string]string, job report.Job) (adapter.Member, bool) {
	if worker, ok := batchWorker(call, members, job.NodeList); ok || job.NodeList == "" || !job.OfPerson() {
		return worker, ok
	}
	for _, controller := range call.Of(layout.ComponentController) {
		if layout.HasVolume(controller, layout.SlotHome) {
			return controller, true
		}
	}
	return adapter.Member{}, false
}

// batchWorker returns the worker that ran the batch step: the first of the job's nodes. A worker
// that has left the cluster took its output along.
func batchWorker(call *adapter.Call, members map[string]string, nodeList string) (adapter.Member, bool) {
	id := members[report.FirstNode(nodeList)]
	for _, member := range call.Of(layout.ComponentWorker) {
		if id != "" && member.ID == id {
			return member, true
		}
	}
	return adapter.Member{}, false
}

// partScript prints the size of the file $1, and in base64 at most $4 bytes of it from byte $3 on. While there is
// nothing from there on and job $2 runs here, it waits up to $5 seconds.
const partScript = `size() { stat -L -c %s "$1" 2> /dev/null || echo 0; }
i=0
while test "$(size "$1")" -le "$3" && test $i -lt "$5" && grep -qsa "^slurmstepd: .$2[.]" /proc/[0-9]*/cmdline; do
    sleep 1
    i=$((i + 1))
done
size "$1"
test ! -r "$1" || tail -c "+$(($3 + 1))" "$1" | head -c "$4" | base64 -w 0`

// part is the input of job.output.
type part struct {
	JobID       string `json:"jobId"`
	Stream      string `json:"stream"`
	Encoding    string `json:"encoding"`
	From        int    `json:"from"`
	Bytes       int    `json:"bytes"`
	WaitSeconds int    `json:"waitSeconds"`
}

// partAnswer is the output of job.output. A caller that calls again from Next reads on, until Ended. Path and Why are
// where the job writes, and why there is nothing of it yet, since version 1.6.
type partAnswer struct {
	JobID string `json:"jobId"`
	State string `json:"state"`
	Text  string `json:"text"`
	Next  int    `json:"next"`
	Size  int    `json:"size"`
	Ended bool   `json:"ended"`
	Path  string `json:"path,omitempty"`
	Why   string `json:"why,omitempty"`
}

// readPart returns the action that reads what a job has written from a place on, and may wait until there is some.
func readPart(of right) adapter.ActionFunc {
	return func(ctx context.Context, call *adapter.Call) (any, error) { return readPartOf(ctx, call, of) }
}

func readPartOf(ctx context.Context, call *adapter.Call, of right) (any, error) {
	input := part{Stream: "output", Encoding: "text", Bytes: 16384}
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	jobs, members, err := readJobs(ctx, call, input.JobID)
	if err != nil {
		return nil, err
	}
	job, err := theJob(listing{JobID: input.JobID, Limit: 2}.filter(jobs), input.JobID)
	if err != nil {
		return nil, err
	}
	who, err := people.Of(call)
	if err != nil {
		return nil, err
	}
	if who != nil && of == owner && job.UID != who.UID {
		return nil, notYours("job.output", job.JobID, job.User)
	}
	answer := partAnswer{JobID: job.JobID, State: job.State, Next: input.From, Ended: job.HasEnded()}
	if job.NodeList == "" { // it has not begun, and never will if it was canceled before
		return answer, nil
	}
	worker, ok := readerOf(call, members, job)
	switch {
	case !ok:
		return nil, adapter.Reject("OUTPUT_GONE", "input.jobId",
			"the worker that ran job %s has left, and its output with it", job.JobID)
	case !worker.Node.IsReachable():
		return nil, adapter.ErrorBody{Code: adapter.CodeUnavailable, Path: "input.jobId", Retryable: true,
			Message: fmt.Sprintf("the output of job %s is on node %s, which does not answer: try again when it does",
				job.JobID, worker.Node.Name)}
	}
	if answer.Ended {
		input.WaitSeconds = 0
	}
	result, err := call.Try(ctx, worker, "part", input.command(call, job), adapter.Within(callTime+time.Second))
	if err != nil {
		return nil, err
	}
	if result.State != adapter.TaskSucceeded {
		return nil, unread(worker, result)
	}
	if detailOf(call) < telling {
		return answer, answer.take(input, result.Stdout)
	}
	found, rest, err := readLocated(result.Stdout)
	if err != nil {
		return nil, err
	}
	answer.Path, answer.Why = found.path, found.why(job)
	if err := found.refusal(job, worker); err != nil {
		return nil, err
	}
	return answer, answer.take(input, rest)
}

// command returns the command that reads the requested part of the stream.
func (p part) command(call *adapter.Call, job report.Job) adapter.RunCommand {
	suffix, stream := outputSuffix, streamOutput
	if p.Stream == "errors" {
		suffix, stream = errorsSuffix, streamErrors
	}
	from, bytes, wait := strconv.Itoa(p.From), strconv.Itoa(p.Bytes), strconv.Itoa(p.WaitSeconds)
	if detailOf(call) >= telling {
		return writtenBy(call, job).locatedCommand(locatedPartScript, stream, from, bytes, wait)
	}
	if job.OfPerson() {
		return personPartCommand(writtenBy(call, job), suffix, from, bytes, wait)
	}
	return partCommand(job.JobID, suffix, from, bytes, wait)
}

// take adds what partScript printed. Text ends with a whole character, unless nothing would be left.
func (a *partAnswer) take(input part, printed string) error {
	size, encoded, _ := strings.Cut(printed, "\n")
	read, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return fmt.Errorf("read output: %w", err)
	}
	a.Size = layout.Number(size)
	if input.Encoding == "base64" {
		a.Text = base64.StdEncoding.EncodeToString(read)
	} else {
		read = wholeCharacters(read)
		a.Text = strings.ReplaceAll(strings.ToValidUTF8(string(read), "?"), "\x00", "?")
	}
	a.Next = input.From + len(read)
	a.Ended = a.Ended && a.Next >= a.Size
	return nil
}

// wholeCharacters cuts a character off that has only begun at the end, unless it is all there is.
func wholeCharacters(text []byte) []byte {
	for cut := 1; cut < min(utf8.UTFMax, len(text)); cut++ {
		if start := text[len(text)-cut:]; utf8.RuneStart(start[0]) {
			if !utf8.FullRune(start) {
				return text[:len(text)-cut]
			}
			break
		}
	}
	return text
}

// theJob returns the job of this id among those that were found. The id of an array is that of one of its tasks too;
// the others have ids of their own.
func theJob(jobs []report.Job, id string) (report.Job, error) {
	for _, one := range jobs {
		if one.JobID == id {
			return one, nil
		}
	}
	if len(jobs) == 0 {
		return report.Job{}, noSuchJob(id)
	}
	return jobs[0], nil
}
