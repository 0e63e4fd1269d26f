package calls

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// readOutput returns the end of a submitted job's output from the worker that ran its batch step. A
// job that has not begun, or was not submitted by queue.submit, has none.
func readOutput(
	ctx context.Context, call *adapter.Call, members map[string]string, one report.Job, limit int,
) (string, error) {
	worker, ok := readerOf(call, members, one)
	if !ok || limit == 0 {
		return "", nil
	}
	command := outputCommand(one.JobID, strconv.Itoa(limit))
	if one.OfPerson() {
		command = personOutputCommand(writtenBy(call, one), strconv.Itoa(limit))
	}
	result, err := call.Do(ctx, worker, "output", command, adapter.Within(callTime))
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(result.Stdout, "?"), nil
}

// writtenBy names what a person's job has written.
func writtenBy(call *adapter.Call, job report.Job) written {
	return written{id: strconv.Itoa(job.UID), job: job.JobID, own: people.OutputName(call.Instance.ID, job.JobID),
		native: people.NativeName(job.JobID)}
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

// partScript prints the size of the file $1, and in base64 at most $4 bytes of it from byte $3 on. While there are none
// and job $2 runs here, it waits up to $5 seconds.
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

// partAnswer is the output of job.output. Whoever asks again from Next reads on, until Ended.
type partAnswer struct {
	JobID string `json:"jobId"`
	State string `json:"state"`
	Text  string `json:"text"`
	Next  int    `json:"next"`
	Size  int    `json:"size"`
	Ended bool   `json:"ended"`
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
	if !ok {
		return nil, adapter.Reject("OUTPUT_GONE", "input.jobId",
			"the worker that ran job %s has left, and its output with it", job.JobID)
	}
	if answer.Ended {
		input.WaitSeconds = 0
	}
	result, err := call.Do(ctx, worker, "part", input.command(call, job), adapter.Within(callTime+time.Second))
	if err != nil {
		return nil, err
	}
	return answer, answer.take(input, result.Stdout)
}

// command reads the part of the stream that is asked for.
func (p part) command(call *adapter.Call, job report.Job) adapter.RunCommand {
	suffix := outputSuffix
	if p.Stream == "errors" {
		suffix = errorsSuffix
	}
	from, bytes, wait := strconv.Itoa(p.From), strconv.Itoa(p.Bytes), strconv.Itoa(p.WaitSeconds)
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
// the others are asked for by their own.
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
