package slurm

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/backup"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

// restored is what state.restore answers.
type restored struct {
	Restored, Digest string
	FirstJob, Lost   int
}

// TestQueueAndAccountsAreRestoredFromABackup has homes, state and backups on a volume each.
func TestQueueAndAccountsAreRestoredFromABackup(t *testing.T) {
	t.Parallel()
	adaptertest.Require(t, "losetup", "mkfs.ext4")
	b := prepareBench(t, "ins_backup", 1)
	b.current.Members[1].Node.CPUs = 8
	bound := volumes{layout.SlotHome: volume(t), layout.SlotState: volume(t), layout.SlotBackup: volume(t)}
	for i := range b.current.Members {
		b.bind(&b.current.Members[i], bound)
	}
	b.succeeds(b.p.Run(b.base, b.current, patience))
	q := queueUnderTest{b: b}
	q.fill()
	var made backup.Backup
	b.does(alice, "state.backup", nil, &made)
	require.Equal(t, "backup cluster 1.6.0 2", made.Slot+" "+made.Cluster+" "+made.Version+" "+text(made.Jobs))
	require.Equal(t, layout.Number(q.held)+1, made.NextJob)
	q.goesOn(t)
	t.Run("what is refused", func(t *testing.T) { noOtherBackupIsRestored(t, b, made) })
	t.Run("destroyed", func(t *testing.T) { aDestroyedStateComesBack(t, b, made); q.goesOn(t) })
	t.Run("forced", func(t *testing.T) { newerJobsAreLostByForce(t, b, made); q.goesOn(t) })
	t.Run("not restored", func(t *testing.T) { whatWasThereRunsOn(t, b, made); q.goesOn(t) })
	t.Run("kept", func(t *testing.T) { theOldestBackupsAreDeleted(t, b, made) })
	b.run(adapter.InstanceDecommission, nil)
	t.Run("another instance", func(t *testing.T) { anotherInstanceTakesOver(t, bound, made, q) })
}

// anotherInstanceTakesOver has a new cluster of the same name, on another volume for its state, restore what is left of
// one that has ended.
func anotherInstanceTakesOver(t *testing.T, bound volumes, made backup.Backup, q queueUnderTest) {
	b := prepareBench(t, "ins_backup_2", 1)
	bound[layout.SlotState] = volume(t)
	for i := range b.current.Members {
		b.bind(&b.current.Members[i], bound)
	}
	b.succeeds(b.p.Run(b.base, b.current, patience))
	b.does(alice, "state.restore", map[string]any{"backup": made.Name, "digest": made.Digest, "force": true},
		&restored{})
	require.Equal(t, "JobHeldUser", b.job(q.held, "PENDING").Reason)
	require.Equal(t, "alice|prj_1|COMPLETED\n",
		b.on(b.current.Members[0].ID, "sacct -a -X -n -P -o User,Account,State -j "+q.ended))
	b.run(adapter.InstanceDecommission, nil)
}

// TestAQueueWithoutAccountsIsBackedUpInItsMember has no accounting, and no volume.
func TestAQueueWithoutAccountsIsBackedUpInItsMember(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_plain_backup", 1, `{"accounting":{"enabled":false}}`)
	held := b.submits(alice, "#!/bin/sh\n#SBATCH --hold\n")
	b.job(held, "PENDING")
	var made backup.Backup
	b.does(alice, "state.backup", nil, &made)
	require.Empty(t, made.Slot, "it goes with the member")
	b.p.KillProcess(b.current.Members[0].ID, "slurmctld")
	b.on(b.current.Members[0].ID, "rm -rf /var/lib/slurm/slurmctld")
	var done restored
	b.does(alice, "state.restore", map[string]any{"backup": made.Name}, &done)
	require.Equal(t, "JobHeldUser", b.job(held, "PENDING").Reason)
	require.GreaterOrEqual(t, b.next(), done.FirstJob)
}

func text(number int) string { return strconv.Itoa(number) }

// next submits a job and returns its number.
func (b *bench) next() int {
	id := b.submits(alice, "#!/bin/sh\n")
	b.job(id, "COMPLETED")
	return layout.Number(id)
}

// refusesRestore requires that a restore is refused, for this reason and about this field.
func (b *bench) refusesRestore(code, path string, input map[string]any) string {
	b.t.Helper()
	refused := b.deniesInput(alice, "state.restore", input)
	require.Equal(b.t, []string{code, path}, []string{refused.Code, refused.Path}, refused.Message)
	return refused.Message
}

func noOtherBackupIsRestored(t *testing.T, b *bench, made backup.Backup) {
	newer := b.next()
	controller := b.current.Members[0].ID
	const began = "cut -d ' ' -f 22 /proc/$(pidof slurmctld)/stat"
	before := b.on(controller, began)
	require.Contains(t, b.refusesRestore("JOBS_LOST", "input.force", map[string]any{"backup": made.Name}), text(newer))
	b.refusesRestore("BACKUP_MISSING", "input.backup", map[string]any{"backup": "20000101T000000Z"})
	b.refusesRestore("BACKUP_DAMAGED", "input.digest", map[string]any{"backup": made.Name, "force": true,
		"digest": "sha256:" + "0000000000000000000000000000000000000000000000000000000000000000"})
	dir := "/var/lib/slurm-backup/" + made.Name
	for _, file := range []string{"state.tar.gz", "accounts.tar.gz", "people", "SHA256SUMS"} {
		b.on(controller, "cp -p "+dir+"/"+file+" /tmp/whole; printf x >> "+dir+"/"+file)
		b.refusesRestore("BACKUP_DAMAGED", "input.backup", map[string]any{"backup": made.Name, "force": true})
		b.on(controller, "cat /tmp/whole > "+dir+"/"+file)
	}
	b.on(controller, "cp -rp "+dir+" "+dir+"x; cd "+dir+" && sed -i s/^cluster/other/ about && sha256sum "+
		"about accounts.tar.gz jobs people slurm.conf state.tar.gz > SHA256SUMS")
	b.refusesRestore("CLUSTER_NAME_FIXED", "input.backup", map[string]any{"backup": made.Name, "force": true})
	b.on(controller, "rm -rf "+dir+" && mv "+dir+"x "+dir)
	require.Equal(t, before, b.on(controller, began), "slurmctld was not stopped")
}

// aDestroyedStateComesBack deletes all that the volume of the state has.
func aDestroyedStateComesBack(t *testing.T, b *bench, made backup.Backup) {
	newest := b.next()
	controller := b.current.Members[0].ID
	for _, process := range []string{"slurmctld", "slurmdbd", "mariadbd"} {
		b.p.KillProcess(controller, process)
	}
	b.on(controller, "rm -rf /var/lib/slurm/slurmctld /var/lib/slurm/database /var/lib/slurm/people")
	seen := b.observe()
	require.Equal(t, adapter.Unhealthy, seen.Health)
	require.Nil(t, seen.Lost, "a backup brings it back")
	require.Contains(t, seen.Message, "restore one by state.restore")
	refused := b.deniesInput(alice, "state.backup", nil)
	require.Equal(t, "CONTROLLER_DOWN", refused.Code, refused.Message)

	var done restored
	b.does(alice, "state.restore", map[string]any{"backup": made.Name, "digest": made.Digest}, &done)
	require.Greater(t, done.FirstJob, newest, "numbers that were given since are not given again")
	require.GreaterOrEqual(t, b.next(), done.FirstJob)
	require.Equal(t, adapter.Healthy, b.observe().Health)
	require.Contains(t, b.on(controller, "cat /var/lib/slurm/people"), "alice 1004 1004 usr_alice\n")

	b.run(adapter.InstanceUpgrade, adapter.VersionChange{
		From: adapter.VersionConfig{Version: "1.6.0", Config: b.current.Instance.Config},
		To:   adapter.VersionConfig{Version: "1.6.0", Config: b.current.Instance.Config},
	})
	require.Equal(t, "FirstJobId="+text(done.FirstJob)+"\n", b.on(controller, "grep ^FirstJobId /etc/slurm/slurm.conf"),
		"the record keeps it")
}

func newerJobsAreLostByForce(t *testing.T, b *bench, made backup.Backup) {
	mine := b.submits(alice, "#!/bin/sh\necho mine\n")
	elsewhere := b.sbatch(alice, "--output=elsewhere", `#!/bin/sh\ntrue\n`)
	b.job(mine, "COMPLETED")
	b.job(elsewhere, "COMPLETED")
	lost := b.submits(bob, longJob)
	b.job(lost, "RUNNING")
	var done restored
	b.does(alice, "state.restore", map[string]any{"backup": made.Name, "force": true}, &done)
	require.Positive(t, done.Lost)
	require.Greater(t, done.FirstJob, layout.Number(lost))
	code, raw := b.tries(alice, "queue.cancel", map[string]any{"jobId": lost})
	require.Equal(t, http.StatusUnprocessableEntity, code, "%s", raw)
	require.Contains(t, string(raw), "JOB_NOT_FOUND")
	require.Eventually(t, func() bool {
		return b.on(b.current.Members[1].ID,
			"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^slurmstepd: .'"+lost+" || true") == "0\n"
	}, patience, 300*time.Millisecond, "slurmctld ends what it does not know")
	require.GreaterOrEqual(t, b.next(), done.FirstJob)
	require.Equal(t, "mine\n", b.reads(alice, "job.output", mine, "COMPLETED"), "by its name: only the log has the job")
	refused := b.denies(alice, "job.output", elsewhere)
	require.Equal(t, "OUTPUT_GONE", refused.Code)
	require.Contains(t, refused.Message, "no longer known to Slurm")
}

// whatWasThereRunsOn has a backup that is what its digests say, and that Slurm cannot be started over.
func whatWasThereRunsOn(t *testing.T, b *bench, made backup.Backup) {
	newest := b.next()
	controller, dir := b.current.Members[0].ID, "/var/lib/slurm-backup/"
	b.on(controller, "cd "+dir+" && cp -rp "+made.Name+" 20000101T000000Z && cd 20000101T000000Z && "+
		"echo broken > state.tar.gz && sha256sum about accounts.tar.gz jobs people slurm.conf state.tar.gz > "+
		"SHA256SUMS")
	code, raw := b.tries(alice, "state.restore", map[string]any{"backup": "20000101T000000Z", "force": true})
	require.Equal(t, http.StatusUnprocessableEntity, code, "%s", raw)
	require.Contains(t, string(raw), "RESTORE_FAILED")
	require.Contains(t, string(raw), "the state from before the restore is in place, and Slurm runs")
	require.Equal(t, "COMPLETED", b.listed(text(newest)).State)
}

func theOldestBackupsAreDeleted(t *testing.T, b *bench, made backup.Backup) {
	var newer backup.Backup
	b.does(alice, "state.backup", map[string]any{"keep": 2}, &newer)
	var all struct{ Backups []backup.Backup }
	b.does(alice, "state.backups", nil, &all)
	require.Equal(t, []backup.Backup{newer, made}, all.Backups)
}
