package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// unseen is how many more numbers are left out beyond the known ones where slurmctld does not answer: jobs of which
	// nothing is left may have had them.
	unseen = 1000
	// parallelMembers is how many members are read at once, and maxNamed how many jobs a refusal names.
	parallelMembers = 8
	maxNamed        = 20
)

// request is the input of state.restore.
type request struct {
	Backup string `json:"backup"`
	Digest string `json:"digest"`
	Force  bool   `json:"force"`
}

// lookScript checks the backup $2 of the folder $1 for the cluster $3 and prints it. It exits with 3 where it does not
// exist, 4 where a file does not match its digest, 5 where it is another cluster's, and 8 where it is of a newer Slurm.
// Then come the numbers of jobs given here, as far as anything left shows them: "up" where slurmctld answers, its next
// number, the last one of the accounts and of the log; and each job that the backup does not know, of those that
// slurmctld knows and of those that run, whose numbers are the input.
const lookScript = entryScript + `cd "$1/$2" 2> /dev/null && test -s SHA256SUMS || exit 3
sha256sum -c --strict --quiet SHA256SUMS >&2 || exit 4
for file in state.tar.gz about people jobs; do grep -q " $file\$" SHA256SUMS || exit 4; done
test "$(cut -d '|' -f 1 about)" = "$3" || exit 5
made=$(cut -d '|' -f 3 about) here=$(slurmctld -V | cut -d ' ' -f 2)
test "$(printf '%s\n' "$made" "$here" | sort -V | tail -n 1)" = "$here" ||
    { echo "$made, and $here is here" >&2; exit 8; }
(cd .. && name=$2 && entry)
known=$(mktemp) && cut -d ' ' -f 1 jobs > "$known" || exit 1
sort -u | grep -E '^[0-9]+$' | grep -vxFf "$known" | sed 's/^/lost /'
rm -f "$known"
if ` + slurmctldUp + `; then
    echo up
    timeout 20 scontrol show config | sed -n 's/^NEXT_JOB_ID *= *\([0-9]*\)$/next \1/p'
    timeout 20 squeue -a -h -r -t all -o "%A %V" | sort -u | grep -vxFf jobs |
        sed 's/^\([0-9]*\) .*/lost \1/' | head -n 2000
fi
sed -n 's/^FirstJobId=/next /p' ` + layout.SlurmConfPath + `
sed -n 's/^JobId=\([0-9]*\) .*/seen \1/p' /var/log/slurm/jobcomp.log 2> /dev/null | sort -k 2n | tail -n 1
timeout 20 mariadb --no-defaults -N -uroot slurm_acct_db \
    -e 'select max(id_job) from ` + "`'\"$3\"'_job_table`" + `' 2> /dev/null |
    sed -n 's/^\([0-9]*\)$/seen \1/p'
exit 0`

// runningScript prints the numbers of the jobs that run on a worker, as their own daemons say.
const runningScript = `cat /proc/[0-9]*/cmdline 2> /dev/null | tr '\0' '\n' | ` +
	`sed -n 's/^slurmstepd: .\([0-9]*\)[.].*/\1/p' | sort -u | head -n 1000; true`

// maxRunning bounds how many numbers of jobs that run are looked up.
const maxRunning = 10_000

// found is what lookScript has found out.
type found struct {
	backup Backup
	up     bool
	// first is above all numbers that have been seen, and lost are jobs that the backup does not know.
	first int
	lost  []int
}

// take adds a line.
func (f *found) take(line string) {
	word, number, _ := strings.Cut(strings.TrimSpace(line), " ")
	n := layout.Number(number)
	switch word {
	case "up":
		f.up = true
	case "next":
		f.first = max(f.first, n)
	case "seen":
		f.first = max(f.first, n+1)
	case "lost":
		f.first = max(f.first, n+1)
		f.lost = append(f.lost, n)
	}
}

// restore brings a cluster back to a backup. What is there now is kept beside it, and put back when Slurm does not come
// up over the backup. No number of a job is given twice.
func restore(ctx context.Context, k keeper) (any, error) {
	var input request
	if err := json.Unmarshal(k.call.Input, &input); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	seen, err := k.look(ctx, input)
	if err != nil {
		return nil, err
	}
	if len(seen.lost) > 0 && !input.Force {
		return nil, adapter.Reject("JOBS_LOST", "input.force",
			"the backup %s does not have %s, submitted since: restore a later one, or with force, which loses them",
			seen.backup.Name, named(seen.lost))
	}
	// What asItWas finds to put back is then of this restore.
	forget := adapter.RunCommand{Command: []string{"rm", "-rf", before}}
	if _, err := k.call.Do(ctx, k.controller, "restore-forget", forget, adapter.Within(quick)); err != nil {
		return nil, err
	}
	if err := k.exchange(ctx, seen); err != nil {
		return nil, k.asItWas(ctx, err)
	}
	k.bringPeople(ctx)
	k.sendRecord(ctx)
	return map[string]any{"restored": seen.backup.Name, "digest": seen.backup.Digest, "firstJob": seen.first,
		"lost": len(seen.lost)}, nil
}

// exchange stops Slurm, puts the backup in its place and starts Slurm over it.
func (k keeper) exchange(ctx context.Context, seen found) error {
	if err := k.halt(ctx, "-restore"); err != nil {
		return err
	}
	dir, _ := k.dir()
	placed, err := k.script(ctx, "restore-place", long, placeScript, dir, seen.backup.Name, text(seen.first))
	if err != nil {
		return err
	}
	if placed.State != adapter.TaskSucceeded {
		return errors.New(failed(placed))
	}
	return k.again(ctx, "-restore", daemons.OwnDatabase())
}

// named lists jobs, not more than a refusal has space for.
func named(jobs []int) string {
	list := make([]string, 0, maxNamed)
	for _, job := range jobs[:min(len(jobs), maxNamed)] {
		list = append(list, text(job))
	}
	counted := report.Counted(len(jobs), "job") + " (" + strings.Join(list, ", ")
	if len(jobs) > maxNamed {
		counted += " and more"
	}
	return counted + ")"
}

// look checks the backup and finds out which numbers jobs have had.
func (k keeper) look(ctx context.Context, input request) (found, error) {
	dir, slot := k.dir()
	var seen found
	task := adapter.RunCommand{Stdin: k.running(ctx),
		Command: []string{"sh", "-c", lookScript, "look", dir, input.Backup, k.config.ClusterName}}
	result, err := k.call.Try(ctx, k.controller, "restore-look", task, adapter.Within(long))
	if err != nil {
		return seen, err
	}
	first, rest, _ := strings.Cut(result.Stdout, "\n")
	one, ok := parse(first, slot)
	if err := refused(input, one, ok, result); err != nil {
		return seen, err
	}
	seen.backup, seen.first = one, one.NextJob
	for line := range strings.Lines(rest) {
		seen.take(line)
	}
	slices.Sort(seen.lost)
	seen.lost = slices.Compact(seen.lost)
	if !seen.up {
		seen.first += unseen
	}
	return seen, nil
}

// refused says why a backup is not restored.
func refused(input request, one Backup, ok bool, result adapter.TaskResult) error {
	switch code(result) {
	case 3:
		return adapter.Reject("BACKUP_MISSING", "input.backup", "there is no backup %q: list them by state.backups",
			input.Backup)
	case 4:
		return adapter.Reject("BACKUP_DAMAGED", "input.backup",
			"the backup %s does not match its digests, restore another: %s", input.Backup, failed(result))
	case 5:
		return adapter.Reject("CLUSTER_NAME_FIXED", "input.backup",
			"the backup %s is of a cluster with another name: launch one with that name", input.Backup)
	case 8:
		return adapter.Reject("VERSION_MISMATCH", "input.backup",
			"a newer Slurm made the backup %s, install that on the controller's node: %s", input.Backup,
			strings.TrimSpace(result.Stderr))
	}
	switch {
	case result.State != adapter.TaskSucceeded || !ok:
		return adapter.Fail(adapter.CodeNodeTask, adapter.OwnerNode, true, "the backup cannot be read: %s",
			failed(result))
	case input.Digest != "" && input.Digest != one.Digest:
		return adapter.Reject("BACKUP_DAMAGED", "input.digest", "the backup %s has the digest %s: it is not the "+
			"requested one", input.Backup, one.Digest)
	}
	return nil
}

// running returns the numbers of the jobs that run on workers that answer, a line each.
func (k keeper) running(ctx context.Context) string {
	var mu sync.Mutex
	var lines []string
	k.each(k.call.Of(layout.ComponentWorker), func(worker adapter.Member) {
		task := adapter.RunCommand{Command: []string{"sh", "-c", runningScript}}
		result, err := k.call.Do(ctx, worker, "restore-running-"+worker.ID, task, adapter.Within(quick))
		if err != nil {
			k.call.Log.Warn("a worker does not report which jobs run there", "member", worker.ID, "error", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, strings.Fields(result.Stdout)...)
	})
	slices.Sort(lines)
	lines = slices.Compact(lines)
	return strings.Join(append(lines[:min(len(lines), maxRunning)], ""), "\n")
}

// each does something with all of these members that can be reached.
func (k keeper) each(members []adapter.Member, do func(adapter.Member)) {
	var group errgroup.Group
	group.SetLimit(parallelMembers)
	for _, member := range members {
		if !member.Node.IsReachable() {
			continue
		}
		group.Go(func() error { do(member); return nil })
	}
	_ = group.Wait() // each has logged what it could not do
}

// bringPeople makes the accounts of the register that came back on all members. One that does not answer gets them when
// it is brought up again.
func (k keeper) bringPeople(ctx context.Context) {
	register, err := k.script(ctx, "restore-register", quick, people.MakeAll+"\n"+people.ReadRegister)
	if err != nil || register.Stdout == "" {
		return
	}
	others := slices.Concat(k.call.Of(layout.ComponentWorker), k.call.Of(layout.ComponentLogin))
	k.each(others, func(member adapter.Member) {
		task := people.MakePacked(register.Stdout)
		_, err := k.call.Do(ctx, member, "restore-people-"+member.ID, task, adapter.Within(quick))
		if err != nil {
			k.call.Log.Warn("a member did not receive the accounts; recover it", "member", member.ID, "error", err)
		}
	})
}

// sendRecord sends the workers the record, which has changed.
func (k keeper) sendRecord(ctx context.Context) {
	sent, err := k.script(ctx, "restore-send-conf", quick, `timeout 20 scontrol reconfigure`)
	if err != nil || sent.State != adapter.TaskSucceeded {
		k.call.Log.Warn("the workers did not receive slurm.conf; they read it at their next start", "error", err,
			"says", failed(sent))
	}
}

// asItWas puts back what was there before, starts it, and returns why the restore failed.
func (k keeper) asItWas(ctx context.Context, cause error) error {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), long)
	defer cancel()
	state := "the state from before the restore is in place, and Slurm runs"
	err := k.halt(clean, "-back")
	if err == nil {
		var back adapter.TaskResult
		back, err = k.script(clean, "restore-back", quick, backScript)
		if err == nil && back.State != adapter.TaskSucceeded {
			err = errors.New(failed(back))
		}
	}
	if err == nil {
		err = k.again(clean, "-back")
	}
	if err != nil {
		state = "Slurm did not start with the state from before the restore either"
		k.call.Log.Error("Slurm did not start with the state from before the restore", "error", err)
	}
	return adapter.Fail("RESTORE_FAILED", adapter.OwnerNode, true, "the backup was not restored, and %s: %v", state,
		cause)
}
