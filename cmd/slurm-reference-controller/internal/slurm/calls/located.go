package calls

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// The streams of a job, as Slurm names where they go.
const (
	streamOutput = "StdOut"
	streamErrors = "StdErr"
)

// locateScript sets $file to where job $1 writes its stream $2. Slurm says where: a job's script and its submitter may
// choose. For a job that Slurm has forgotten, the names that begin with $3 and $4 are tried, in the home of the running
// user unless they are whole paths. $kind is empty, or why there is no such place: "terminal" of a job that is not a
// batch, "joined" where standard error goes into the output. The node fills in what Slurm leaves of a pattern.
const locateScript = `job=$1 stream=$2 own=$3 native=$4 file= kind=
told=$(LC_ALL=C timeout 10 scontrol show job "$job" 2>&1) || case $told in
*"Invalid job id"*) told= ;;
*) printf '%s\n' "$told" >&2; exit 7 ;;
esac
told=$(printf '%s\n' "$told" | sed -n "/^JobId=$job /,/^\$/p")
of() { printf '%s\n' "$told" | sed -n "s/^   $1=//p" | tail -n 1; }
if test -z "$told"; then
    suffix=.out; test "$stream" = StdOut || suffix=.err
    home=$(getent passwd "$(id -u)" | cut -d : -f 6)
    for file in "$own" "$native"; do
        case $file in /*) ;; *) file=$home/$file ;; esac
        file=$file$suffix
        test ! -e "$file" || break
    done
    test -e "$file" || kind=forgotten
else
    host=$(uname -n | cut -d . -f 1)
    file=$(of "$stream" | sed "s/%[0-9]*N/$host/g; s/%[0-9]*[nt]/0/g")
    test -n "$file" || kind=terminal
    test "$stream" = StdOut || test -z "$file" || test "$(of StdOut)" != "$(of StdErr)" || kind=joined
fi
`

// judgeScript has $kind say why the file is not read: it is "absent", "special", or "denied" to who runs this.
const judgeScript = `test -n "$kind" || if test -e "$file"; then
    if test ! -f "$file"; then kind=special; elif test ! -r "$file"; then kind=denied; fi
else
    kind=absent
    case $(LC_ALL=C stat -L -- "$file" 2>&1) in *"Permission denied"*) kind=denied ;; esac
fi
`

// locatedPartScript prints the kind and in base64 the place, the size and in base64 at most $6 bytes from byte $5 on of
// what a job has written. While there is nothing from there on and the job runs here, it waits up to $7 seconds.
const locatedPartScript = locateScript + `size() { { test -f "$file" && stat -L -c %s -- "$file"; } 2> /dev/null || echo 0; }
i=0
while test -z "$kind" && test "$(size)" -le "$5" && test $i -lt "$7" &&
    grep -qsa "^slurmstepd: .$job[.]" /proc/[0-9]*/cmdline; do
    sleep 1
    i=$((i + 1))
done
` + judgeScript + `echo "$kind $(printf %s "$file" | base64 -w 0)"
size
test -n "$kind" || tail -c "+$(($5 + 1))" -- "$file" | head -c "$6" | base64 -w 0`

// locatedEndScript prints the last $5 bytes of what a job has written, where it can be read.
const locatedEndScript = locateScript + judgeScript + `test -n "$kind" || tail -c "$5" -- "$file"`

// asPerson runs the script $2 as the account with the id $1, and no other's.
const asPerson = `id=$1 script=$2
test "$id" -ge 1000 && test "$id" -le 59999 && getent passwd "$id" > /dev/null || exit 1
shift 2
exec setpriv --reuid="$id" --regid="$id" --clear-groups sh -c "$script" output "$@"`

// locatedCommand runs one of the scripts on a stream of a job, as the job's user.
func (w written) locatedCommand(script, stream string, arguments ...string) adapter.RunCommand {
	given := append([]string{w.job, stream, w.own, w.native}, arguments...)
	if w.id == "" {
		return adapter.RunCommand{User: layout.JobUser,
			Command: append([]string{"sh", "-c", script, "output"}, given...)}
	}
	return adapter.RunCommand{Command: append([]string{"sh", "-c", asPerson, "person", w.id, script}, given...)}
}

// located is what locatedPartScript printed before the part itself.
type located struct{ kind, path string }

// readLocated splits what locatedPartScript printed.
func readLocated(printed string) (found located, rest string, err error) {
	first, rest, _ := strings.Cut(printed, "\n")
	kind, encoded, _ := strings.Cut(first, " ")
	path, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return found, rest, fmt.Errorf("read where the output is: %w", err)
	}
	return located{kind, strings.ToValidUTF8(string(path[:min(len(path), maxShownPath)]), "?")}, rest, nil
}

// unasked is the exit code of a script to which slurmctld has not answered.
const unasked = 7

// unread returns the error of a task that did not read a job's output on a member.
func unread(on adapter.Member, result adapter.TaskResult) error {
	if result.ExitCode != nil && *result.ExitCode == unasked {
		return unavailable(result)
	}
	return adapter.Fail(adapter.CodeNodeTask, adapter.OwnerNode, true, "the output could not be read on node %s: %s %s",
		on.Node.Name, result.Message, complaint(result))
}

// maxShownPath is how many bytes of a path an answer shows: those of the longest that Linux has.
const maxShownPath = 4096

// refusal returns why there is nothing to read; nil where there is, or may be: a job that runs may still write.
func (l located) refusal(job report.Job, on adapter.Member) error {
	refuse := func(code, format string, arguments ...any) error {
		return adapter.Reject(code, "input.jobId", "job %s "+format, append([]any{job.JobID}, arguments...)...)
	}
	switch {
	case l.kind == "terminal":
		return refuse("NO_OUTPUT", "is not a batch job: its output goes to the terminal that started it")
	case l.kind == "joined":
		return adapter.Reject("NO_OUTPUT", "input.stream",
			"job %s writes standard error into its output: read the stream output", job.JobID)
	case l.kind == "special":
		return refuse("OUTPUT_UNREADABLE", "writes to %s, which is not a regular file", l.path)
	case l.kind == "denied":
		return refuse("OUTPUT_UNREADABLE", "writes to %s, which %s may not read", l.path, job.User)
	case l.kind == "forgotten":
		return refuse("OUTPUT_GONE", "is no longer known to Slurm, nor is the file that it wrote to")
	case l.kind != "absent" || !job.HasEnded():
		return nil
	case on.ComponentKey == layout.ComponentController && !strings.HasPrefix(l.path, people.HomeDir+"/"):
		return refuse("OUTPUT_GONE", "wrote to %s on its worker only, which has left", l.path)
	}
	return refuse("OUTPUT_GONE", "wrote to %s, which does not exist any more", l.path)
}

// why says why nothing is read of a job that may still begin to write.
func (l located) why(job report.Job) string {
	if l.kind != "absent" {
		return ""
	}
	return fmt.Sprintf("the file %s does not exist yet: job %s will write to it", l.path, job.JobID)
}
