package slurm

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

// volume makes a volume, which members mount at once: a block device with a file system.
func volume(t *testing.T) (device string) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "volume.img")
	out, err := exec.CommandContext(t.Context(), "sh", "-c",
		`truncate -s 2G "$1" && mkfs.ext4 -q "$1" && losetup -f --show "$1"`, "volume", image).CombinedOutput()
	require.NoError(t, err, "%s", out)
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() { // the members end after it, and the device with the last of them
		require.NoError(t, exec.Command("losetup", "-d", device).Run())
	})
	return device
}

// volumes are those of a cluster under test, by the slot.
type volumes map[string]string

// bind gives a member the volumes of its component, as the platform and its node do.
func (b *bench) bind(member *adapter.Member, bound volumes) {
	b.t.Helper()
	paths := map[string]string{layout.SlotHome: "/home", layout.SlotState: "/var/lib/slurm",
		layout.SlotBackup: "/var/lib/slurm-backup"}
	for slot, device := range bound {
		if slot != layout.SlotHome && member.ComponentKey != layout.ComponentController {
			continue
		}
		member.Volumes = append(member.Volumes, adapter.MemberVolume{Slot: slot, Path: paths[slot]})
		b.on(member.ID, "mkdir -p "+paths[slot]+" && mount "+device+" "+paths[slot])
	}
}

// controllerOf returns a controller on a node of its own.
func (b *bench) controllerOf(index int) adapter.Member {
	member := b.member(index)
	member.ID, member.ComponentKey = "mem_controller"+string(rune('a'+index))+b.current.Instance.ID,
		layout.ComponentController
	return member
}

// replaces replaces the controller, which comes first of the members.
func (b *bench) replaces(fresh adapter.Member, force bool) adapter.Status {
	b.t.Helper()
	d := b.dispatch(adapter.MemberReplace, adapter.ReplaceChange{ReplacementID: fresh.ID}, b.current.Members[0].ID)
	d.Members = append(append([]adapter.Member{}, d.Members...), fresh)
	d.Force = force
	require.Equal(b.t, adapter.VerdictSafe, b.plan(d).Verdict)
	return b.p.Run(b.base, d, patience)
}

// TestAQueueSurvivesItsControllersNode has the state of a cluster and the homes of its people on volumes.
func TestAQueueSurvivesItsControllersNode(t *testing.T) {
	t.Parallel()
	adaptertest.Require(t, "losetup", "mkfs.ext4")
	b := prepareBench(t, "ins_state", 2)
	bound := volumes{layout.SlotHome: volume(t), layout.SlotState: volume(t)}
	for i := range b.current.Members {
		b.bind(&b.current.Members[i], bound)
	}
	b.succeeds(b.p.Run(b.base, b.current, patience))
	q := queueUnderTest{b: b}
	q.fill()
	t.Run("kept by the old one", func(t *testing.T) { theOldControllerComesBack(t, b); q.goesOn(t) })
	t.Run("taken over", func(t *testing.T) { theNodeIsLost(t, b, bound); q.goesOn(t) })
	t.Run("recovered", func(t *testing.T) { theSandboxIsLost(t, b, bound); q.goesOn(t) })
	t.Run("the end", func(t *testing.T) { q.ends(t) })
	b.run(adapter.InstanceDecommission, nil)
}

// queueUnderTest is a job that runs, one that is held, and one that has ended.
type queueUnderTest struct {
	b                    *bench
	running, held, ended string
	began                string
}

func (q *queueUnderTest) fill() {
	b := q.b
	q.ended = b.submits(alice, "#!/bin/sh\necho done\n")
	b.job(q.ended, "COMPLETED")
	q.running = b.submits(alice, "#!/bin/sh\necho begun\nuntil test -e /home/alice/go; do sleep 0.2; done\necho over\n")
	q.began = b.job(q.running, "RUNNING").Started
	q.held = b.submits(bob, "#!/bin/sh\n#SBATCH --hold\nid -un\n")
	b.job(q.held, "PENDING")
}

// goesOn requires that everything is as it was, and that more is taken.
func (q *queueUnderTest) goesOn(t *testing.T) {
	t.Helper()
	b := q.b
	require.Equal(t, q.began, b.job(q.running, "RUNNING").Started, "the same run")
	require.Equal(t, "JobHeldUser", b.job(q.held, "PENDING").Reason)
	require.Equal(t, "begun\n", b.reads(alice, "job.output", q.running, "RUNNING"))
	controller := b.current.Members[0].ID
	require.Eventually(t, func() bool {
		return b.on(controller, "sacct -a -X -n -P -o User,Account,State -j "+q.ended) == "alice|prj_1|COMPLETED\n"
	}, patience, 200*time.Millisecond)
	id := b.submits(alice, whoAmI)
	require.Equal(t, "alice\nalice\n1004\n/home/alice\n/home/alice\n700 alice\nalice\n",
		b.reads(alice, "job.output", id, "COMPLETED"))
	ended, err := time.Parse(time.RFC3339, b.job(id, "COMPLETED").Ended)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // slurmctld saves what it has taken some seconds later
		saved, err := strconv.ParseInt(strings.TrimSpace(b.on(controller,
			"stat -c %Y /var/lib/slurm/slurmctld/job_state")), 10, 64)
		return err == nil && saved > ended.Unix()
	}, patience, 200*time.Millisecond)
}

// ends lets the job end under a controller that it did not begin under, and takes away the worker that it ran on. The
// job's daemon, which is as old as the job, asks its member where the controller is only then.
func (q *queueUnderTest) ends(t *testing.T) {
	b := q.b
	before := b.on(b.current.Members[1].ID, "grep slurm-controller /etc/hosts")
	hosts := func(line string) {
		b.on(b.current.Members[1].ID, "hosts=$(grep -v slurm-controller /etc/hosts); printf '%s\\n' \"$hosts\" '"+
			strings.TrimSpace(line)+"' > /etc/hosts")
	}
	hosts("192.0.2.1 slurm-controller")
	b.on(b.current.Members[0].ID, "touch /home/alice/go")
	require.Never(t, func() bool { return b.listed(q.running).HasEnded() }, 3*time.Second, 300*time.Millisecond,
		"it is told to where the controller was")
	hosts(before)
	require.Equal(t, "w0", b.job(q.running, "COMPLETED").NodeList)
	var done struct{}
	b.does(bob, "queue.release", map[string]any{"jobId": q.held}, &done)
	require.Equal(t, bob.Posix.Name+"\n", b.reads(bob, "job.output", q.held, "COMPLETED"))
	worker := b.current.Members[1].ID
	alone := b.sbatch(alice, "--nodelist=w0 --output=/tmp/alone", `#!/bin/sh\ntrue\n`)
	require.Empty(t, b.reads(alice, "job.output", alone, "COMPLETED"))
	b.run(adapter.MemberRemove, nil, worker)
	b.forget(worker)
	refused := b.denies(alice, "job.output", alone)
	require.Equal(t, "OUTPUT_GONE", refused.Code)
	require.Contains(t, refused.Message, "/tmp/alone on its worker only, which has left")
	require.Equal(t, "begun\nover\n", b.reads(alice, "job.output", q.running, "COMPLETED"), "homes outlast workers")
}

// theOldControllerComesBack replaces a controller by one whose volume has nothing.
func theOldControllerComesBack(t *testing.T, b *bench) {
	fresh := b.controllerOf(1)
	fresh.Volumes = b.current.Members[0].Volumes
	status := b.replaces(fresh, false)
	require.Equal(t, adapter.StateFailed, status.State)
	require.Equal(t, "STATE_GONE", status.Error.Code)
	b.p.Destroy(fresh.ID)
}

// theNodeIsLost takes the controller away with all that its member had.
func theNodeIsLost(t *testing.T, b *bench, bound volumes) {
	gone := false
	lost := b.current.Members[0].ID
	b.p.Destroy(lost)
	b.p.Away(lost)
	b.current.Members[0].Node.Reachable = &gone
	fresh := b.controllerOf(2)
	b.bind(&fresh, bound)
	status := b.succeeds(b.replaces(fresh, true))
	require.JSONEq(t, `["`+lost+`"]`, string(status.Evidence["notTornDown"]))
	b.current.Members[0] = fresh
	for _, member := range b.current.Members {
		require.Equal(t, fresh.Node.Address+" slurm-controller\n", b.on(member.ID, "grep slurm-controller /etc/hosts"))
	}
}

// theSandboxIsLost recovers a controller whose member was wiped.
func theSandboxIsLost(t *testing.T, b *bench, bound volumes) {
	b.p.Destroy(b.current.Members[0].ID)
	b.current.Members[0].Volumes = nil
	b.bind(&b.current.Members[0], bound)
	b.run(adapter.MemberRecover, nil, b.current.Members[0].ID)
}
