package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// sbatch submits a job from within the cluster, as somebody at a login does.
func (b *bench) sbatch(who adapter.Requester, options, script string) string {
	b.t.Helper()
	return strings.TrimSpace(b.on(b.current.Members[0].ID, "cd /home/"+who.Posix.Name+" && printf '"+script+
		"' | setpriv --reuid="+who.Posix.Name+" --regid="+who.Posix.Name+" --clear-groups sbatch --parsable "+options))
}

// TestOutputIsReadWhereSlurmSaysThatItIs has jobs of a login, which write where they like.
func TestOutputIsReadWhereSlurmSaysThatItIs(t *testing.T) {
	t.Parallel()
	b := prepareBench(t, "ins_output", 1)
	b.current.Members[1].Node.CPUs = 8
	b.succeeds(b.p.Run(b.base, b.current, patience))
	b.reads(alice, "job.output", b.submits(alice, "#!/bin/sh\nmkdir results\n"), "COMPLETED")
	t.Run("where they like", func(t *testing.T) { jobsWriteWhereTheyLike(t, b) })
	t.Run("why not", func(t *testing.T) { whyOutputIsNotRead(t, b) })
}

func jobsWriteWhereTheyLike(t *testing.T, b *bench) {
	id := b.sbatch(alice, `--job-name=train --output="results/%x of %N-%j.txt" --error=results/%j.errors`,
		`#!/bin/sh\necho out; echo err >&2\n`)
	require.Equal(t, "out\n", b.reads(alice, "job.output", id, "COMPLETED"))
	var read part
	b.does(alice, "job.output", map[string]any{"jobId": id}, &read)
	require.Regexp(t, "^/home/alice/results/train of .+-"+id+`\.txt$`, read.Path)
	b.does(alice, "job.output", map[string]any{"jobId": id, "stream": "errors"}, &read)
	require.Equal(t, part{State: "COMPLETED", Text: "err\n", Next: 4, Size: 4, Ended: true,
		Path: "/home/alice/results/" + id + ".errors"}, read)
	var list jobList
	b.does(alice, "queue.list", map[string]any{"jobId": id}, &list)
	require.Equal(t, "out\n", list.Output)

	id = b.sbatch(alice, "--array=3 --output=results/many-%A.%a", `#!/bin/sh\necho of an array\n`)
	require.Equal(t, "of an array\n", b.reads(alice, "job.output", id, "COMPLETED"))
	id = b.sbatch(alice, "", `#!/bin/sh\necho as sbatch calls it\n`)
	require.Equal(t, "as sbatch calls it\n", b.reads(alice, "job.output", id, "COMPLETED"))
	require.Equal(t, "as sbatch calls it\n", b.reads(bob, "job.output.any", id, "COMPLETED"))
}

func whyOutputIsNotRead(t *testing.T, b *bench) {
	worker := b.current.Members[1].ID
	refuses := func(id, stream, code, path, message string) {
		t.Helper()
		refused := b.refusesOutput(id, stream)
		require.Equal(t, code, refused.Code, refused.Message)
		require.Equal(t, path, refused.Path)
		require.Contains(t, refused.Message, message)
	}
	id := b.sbatch(alice, "--output=/dev/null", `#!/bin/sh\ntrue\n`)
	b.job(id, "COMPLETED")
	refuses(id, "output", "OUTPUT_UNREADABLE", "input.jobId", "/dev/null, which is not a regular file")
	refuses(id, "errors", "NO_OUTPUT", "input.stream", "read the stream output")

	id = b.sbatch(alice, "--output=results/shut", `#!/bin/sh\nchmod 0 results/shut\n`)
	b.job(id, "COMPLETED")
	refuses(id, "output", "OUTPUT_UNREADABLE", "input.jobId", "/home/alice/results/shut, which alice may not read")
	id = b.sbatch(alice, "--output=results/removed",
		`#!/bin/sh\nrm results/removed\nuntil test -e go; do sleep 0.1; done\n`)
	b.job(id, "RUNNING")
	var read part
	require.Eventually(t, func() bool {
		b.does(alice, "job.output", map[string]any{"jobId": id}, &read)
		return read.Why != ""
	}, patience, 100*time.Millisecond)
	require.Equal(t, part{State: "RUNNING", Path: "/home/alice/results/removed",
		Why: "the file /home/alice/results/removed does not exist yet: job " + id + " will write to it"}, read)
	b.on(worker, "touch /home/alice/go")
	b.job(id, "COMPLETED")
	refuses(id, "output", "OUTPUT_GONE", "input.jobId", "/home/alice/results/removed, which does not exist any more")
	id = b.sbatch(alice, "--output=/root/of-root", `#!/bin/sh\ntrue\n`)
	require.Eventually(t, func() bool { return b.listed(id).HasEnded() }, patience, 100*time.Millisecond)
	refuses(id, "output", "OUTPUT_UNREADABLE", "input.jobId", "/root/of-root, which alice may not read")

	b.on(b.current.Members[0].ID, "setpriv --reuid=alice --regid=alice --clear-groups "+
		"srun --chdir=/ --job-name=by-hand true")
	id = strings.TrimSpace(b.on(b.current.Members[0].ID, "squeue -a -h -t all -n by-hand -o %A"))
	refuses(id, "output", "NO_OUTPUT", "input.jobId", "is not a batch job")
}

// refusesOutput returns why a job's output is not read.
func (b *bench) refusesOutput(id, stream string) (refused adapter.ErrorBody) {
	b.t.Helper()
	return b.deniesInput(alice, "job.output", map[string]any{"jobId": id, "stream": stream})
}
