package slurm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// devices gives a member a /dev of its own with device nodes of GPUs, as a node's agent does: no driver is behind them.
func (b *bench) devices(member string, minors ...int) {
	b.t.Helper()
	script := `mount -t tmpfs -o mode=755 none /dev && mkdir /dev/shm /dev/pts && mount -t tmpfs none /dev/shm
mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/zero c 1 5
mknod -m 666 /dev/random c 1 8; mknod -m 666 /dev/urandom c 1 9
`
	for _, minor := range minors {
		script += fmt.Sprintf("mknod -m 666 /dev/nvidia%d c 60 %d\n", minor, minor)
	}
	b.on(member, script)
}

// offered returns what GPUs each worker offers, as Slurm sees it.
func (b *bench) offered() string {
	b.t.Helper()
	return strings.Join(strings.Fields(b.on(b.current.Members[0].ID, `sinfo -a -N -h -o "%N=%G" | sort`)), " ")
}

// holding submits a job that requests one GPU of a node, and returns its id and, once it runs, its output.
func (b *bench) holding(node string) (id, told string) {
	b.t.Helper()
	id = b.submit("#!/bin/sh\n#SBATCH --nodelist="+node+"\necho $CUDA_VISIBLE_DEVICES; sleep 600\n",
		map[string]any{"gpus": 1})
	require.Eventually(b.t, func() bool {
		told = awaitJob(b.t, b.p, b.base, b.current, id, "RUNNING").Output
		return strings.HasSuffix(told, "\n")
	}, patience, 50*time.Millisecond)
	return id, strings.TrimSpace(told)
}

// end cancels a job and waits until it has ended.
func (b *bench) end(id string) {
	b.t.Helper()
	b.p.Action(b.base, "queue.cancel", b.current, "end-"+id, map[string]any{"jobId": id}, &struct{}{})
	b.job(id, "CANCELLED")
}

// TestJobsGetTheGPUsOfTheAllocation has two workers on a node whose allocation has three GPUs there, and one worker on
// a node without.
func TestJobsGetTheGPUsOfTheAllocation(t *testing.T) {
	t.Parallel()
	b := prepareBench(t, "ins_gpus", 2)
	for i := range b.current.Members {
		b.current.Members[i].Node.GPUs, b.current.Members[i].Node.CPUs = 3, 8
		b.devices(b.current.Members[i].ID, 2, 10, 3)
	}
	b.succeeds(b.p.Run(b.base, b.current, patience))
	b.add(2)
	require.Equal(t, "w0=gpu:2 w1=gpu:1 w2=(null)", b.offered())

	first, told := b.holding("w0")
	_, other := b.holding("w0")
	third, last := b.holding("w1")
	require.Equal(t, 1, *b.job(third, "RUNNING").GPUs)
	require.Equal(t, []string{"0", "1", "2"}, []string{told, other, last},
		"places among all that a member sees: workers on one node see each other's")
	code, raw := b.p.TryAction(b.base, "queue.submit", b.current, "many", map[string]any{"script": longJob, "gpus": 3})
	require.Equal(t, http.StatusUnprocessableEntity, code, "%s", raw)
	require.Contains(t, string(raw), "SUBMIT_REFUSED")

	steps := b.submit("#!/bin/sh\n#SBATCH --nodelist=w0\nsrun --gres=gpu:1 sh -c 'echo step $CUDA_VISIBLE_DEVICES'\n"+
		"srun --gres=none sh -c 'echo without $CUDA_VISIBLE_DEVICES'\n", map[string]any{"gpus": 1})
	b.job(steps, "PENDING")
	b.end(first)
	b.job(steps, "COMPLETED")
	require.Equal(t, "step 0\nwithout\n", awaitJob(t, b.p, b.base, b.current, steps, "COMPLETED").Output)

	t.Run("an heir", func(t *testing.T) { heirHasTheSameGPU(t, b, third) })

	var seen struct{ Nodes []report.Node }
	b.p.Action(b.base, "node.list", b.current, "gpus", map[string]any{}, &seen)
	require.Equal(t, []int{2, 0, 1}, []int{*seen.Nodes[0].GPUs, *seen.Nodes[1].GPUs, *seen.Nodes[2].GPUs})
	older := b.current
	older.Instance.Version = "1.3.0"
	_, raw = b.p.TryAction(b.base, "node.list", older, "gpus-before", map[string]any{})
	require.Contains(t, string(raw), `"name":"w0"`)
	require.NotContains(t, string(raw), `"gpus":`, "an instance is answered as its manifest says")
}

// heirHasTheSameGPU replaces w1 by a worker on its node, when its job has ended.
func heirHasTheSameGPU(t *testing.T, b *bench, job string) {
	t.Helper()
	b.end(job)
	old, heir := b.current.Members[2], b.current.Members[2]
	heir.ID, heir.Index, heir.Status = "mem_heir", 3, "pending"
	b.current.Members = append(b.current.Members, heir)
	b.devices(heir.ID, 2, 10, 3)
	b.run(adapter.MemberReplace, adapter.ReplaceChange{ReplacementID: heir.ID}, old.ID, heir.ID)
	b.forget(old.ID)
	require.Equal(t, "w0=gpu:2 w2=(null) w3=gpu:1", b.offered())
	id, told := b.holding("w3")
	require.Equal(t, "2", told)
	b.end(id)
}

// TestAnUpgradeBringsGPUs begins with a cluster as version 1.3 created it, which grows before it is upgraded. The
// driver has the ids of its GPUs.
func TestAnUpgradeBringsGPUs(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_before", 1, `{"partitionName":"batch","accounting":{"enabled":false}}`)
	controller, old := b.current.Members[0].ID, b.current.Members[1].ID
	b.on(old, "rm /etc/slurm/task-prolog /etc/slurm/gpus")
	b.on(controller, "sed -i '/^# task-prolog:/d; /^TaskProlog=/d; /^GresTypes=/d' /etc/slurm/slurm.conf; "+
		"scontrol reconfigure")
	job := func(want string, input map[string]any) {
		t.Helper()
		id := b.submit("#!/bin/sh\n#SBATCH --nodelist=w0\nsrun -n1 sh -c 'echo $CUDA_VISIBLE_DEVICES'\n", input)
		list := awaitJob(t, b.p, b.base, b.current, id, "COMPLETED")
		require.Equal(t, want, list.Output)
		require.Equal(t, len(input)*2, *list.Jobs[0].GPUs, "also without accounting")
	}
	b.add(1)
	require.NotContains(t, b.on(controller, "cat /etc/slurm/slurm.conf"), "\nTaskProlog=", "w0 has none")
	job("\n", nil)

	b.current.Members[1].Node.GPUs = 2
	b.devices(old, 9, 10)
	b.on(old, `mount -t tmpfs none /proc/driver
for minor in 9 10; do
    mkdir -p "/proc/driver/nvidia/gpus/0000:0$minor:00.0"
    printf 'Model: \t X\nGPU UUID: \t GPU-%s\nDevice Minor: \t %s\n' $minor $minor \
        > "/proc/driver/nvidia/gpus/0000:0$minor:00.0/information"
done`)
	same := adapter.VersionConfig{Config: b.current.Instance.Config}
	b.run(adapter.InstanceUpgrade, adapter.VersionChange{From: same, To: same})
	require.Contains(t, b.on(controller, "cat /etc/slurm/slurm.conf"), "\nTaskProlog=")
	require.Equal(t, "w0=gpu:2 w1=(null)", b.offered())
	job("GPU-9,GPU-10\n", map[string]any{"gpus": 2})
	job("\n", nil)
}
