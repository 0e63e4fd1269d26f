package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// beginScript notes in the folder $1 the jobs that Slurm knows, each by its number and time of submission, and prints
// the number of the next job and how many have not ended. It fails with 3 where slurmctld does not answer: what it last
// saved may be what a backup is there to replace.
const beginScript = slurmctldUp + ` || exit 3
umask 077
install -d -m 0700 "$1" && timeout 20 squeue -a -h -r -t all -o "%A %V" > "$1/.known" &&
    sort -u -o "$1/.known" "$1/.known" || exit 3
jobs=$(timeout 20 squeue -a -h -r -o %A) || exit 3
next=$(timeout 20 scontrol show config | sed -n 's/^NEXT_JOB_ID *= *\([0-9]*\)$/\1/p')
echo "$next $(printf '%s\n' "$jobs" | grep -c .)"`

// saveScript writes a backup in the folder $1 of what is at rest now, and keeps $2 backups. It notes $3 to $6 in it:
// the cluster's name, the app's version, the number of the next job and how many had not ended. It exits with 6 where
// the space may not suffice for a copy that cannot be packed at all. A backup is there whole or not at all.
const saveScript = entryScript + `umask 077
install -d -m 0700 "$1" && cd "$1" || exit 1
find . -maxdepth 1 -name '.new.*' -exec rm -rf {} +
state=` + layout.StateDir + `
need=$(du -skc $state/slurmctld ` + daemons.DatabaseDir + ` 2> /dev/null | tail -n 1 | cut -f 1)
free=$(df -k --output=avail . | tail -n 1)
test "$free" -gt "$need" || { echo "$need KiB may be needed, and $free are free" >&2; exit 6; }
name=$(date -u +%Y%m%dT%H%M%SZ)
new=.new.$name
mkdir "$new" && tar -C $state -I 'gzip -1' -cf "$new/state.tar.gz" slurmctld || exit 1
test ! -d ` + daemons.DatabaseDir + `/data ||
    tar -C ` + daemons.DatabaseDir + ` -I 'gzip -1' -cf "$new/accounts.tar.gz" data || exit 1
{ cat $state/people 2> /dev/null || true; } > "$new/people" && cp ` + layout.SlurmConfPath + ` "$new/slurm.conf" &&
    mv .known "$new/jobs" || exit 1
echo "$3|$4|$(slurmctld -V | cut -d ' ' -f 2)|$5|$6|$(grep -c . "$new/people")" > "$new/about"
(cd "$new" && sha256sum -- * > ../.sums && mv ../.sums SHA256SUMS) && sync "$new"/* "$new" &&
    mv -T "$new" "$name" && sync . || exit 1
ls -1 | grep -E '` + namePattern + `' | sort -r | tail -n "+$(($2 + 1))" | while read -r old; do rm -rf "./$old"; done
entry`

// save makes a backup. Slurm is at rest for it and is started again whatever comes of it; jobs run on.
func save(ctx context.Context, k keeper) (any, error) {
	input := struct{ Keep int }{Keep: 5}
	if len(k.call.Input) > 0 {
		if err := json.Unmarshal(k.call.Input, &input); err != nil {
			return nil, fmt.Errorf("read input: %w", err)
		}
	}
	dir, _ := k.dir()
	begun, err := k.script(ctx, "backup-begin", quick, beginScript, dir)
	if err != nil {
		return nil, err
	}
	if begun.State != adapter.TaskSucceeded {
		return nil, adapter.Reject("CONTROLLER_DOWN", "instance", "slurmctld does not answer, and only a complete "+
			"queue is backed up: recover the controller, or restore a backup: %s", failed(begun))
	}
	next, jobs, _ := strings.Cut(strings.TrimSpace(begun.Stdout), " ")
	made, err := k.copied(ctx, input.Keep, layout.Number(next), layout.Number(jobs))
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), long)
	defer cancel()
	return made, ended(made, err, k.again(clean, "-backup"))
}

// ended returns a backup's error once Slurm was started again: why the backup failed, else why Slurm did not start.
func ended(made Backup, err, started error) error {
	if err != nil || started == nil {
		return err
	}
	return adapter.Fail("CONTROLLER_DOWN", adapter.OwnerNode, true,
		"the backup %s was saved, but Slurm did not start after it: recover the controller; %v", made.Name, started)
}

// copied stops Slurm and makes the copy.
func (k keeper) copied(ctx context.Context, keep, next, jobs int) (made Backup, err error) {
	if err := k.halt(ctx, "-backup"); err != nil {
		return made, err
	}
	dir, slot := k.dir()
	began := time.Now()
	result, err := k.script(ctx, "backup-copy", long, saveScript, dir, text(keep), k.config.ClusterName,
		k.call.Instance.Version, text(next), text(jobs))
	if err != nil {
		return made, err
	}
	made, ok := parse(result.Stdout, slot)
	if err := unsaved(ok, result); err != nil {
		return made, err
	}
	k.call.Log.Info("slurm's state was backed up", "backup", made.Name, "bytes", made.Bytes, "took", time.Since(began))
	return made, nil
}

// unsaved returns why a backup failed.
func unsaved(ok bool, result adapter.TaskResult) error {
	switch {
	case code(result) == 6:
		return adapter.Reject("BACKUP_NO_SPACE", "instance",
			"there is no space for a backup: %s; enlarge the volume, or keep fewer", failed(result))
	case result.State != adapter.TaskSucceeded || !ok:
		return adapter.Fail("BACKUP_FAILED", adapter.OwnerNode, true, "no backup was saved: %s", failed(result))
	}
	return nil
}
