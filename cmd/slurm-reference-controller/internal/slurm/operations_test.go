package slurm

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	longJob  = "#!/bin/sh\nsleep 600\n"
	poolJob  = "#!/bin/sh\n#SBATCH --constraint=pool=blue\nsleep 4\n"
	poolLong = "#!/bin/sh\n#SBATCH --constraint=pool=blue\nsleep 600\n"
)

// TestClusterGrowsAndShrinksWhileAJobRuns is one cluster's life, step by step, with a job on w0 that
// must not notice.
func TestClusterGrowsAndShrinksWhileAJobRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_grow", 1)
	long := b.submit(longJob, nil)
	began := b.job(long, "RUNNING").Started
	untouched := func() {
		t.Helper()
		require.Equal(t, began, b.job(long, "RUNNING").Started, "the job on w0 must go on as it was")
	}
	workers := b.add(1, 2)
	untouched()
	b.run(adapter.MemberLabel, adapter.LabelChange{Labels: map[string]string{"pool": "blue"}}, workers[0])
	require.Equal(t, adapter.Healthy, b.observe().Health, "%+v", b.observe())

	t.Run("jobs are counted", func(t *testing.T) { jobsAreCounted(t, b) })
	t.Run("drain waits", func(t *testing.T) { drainWaits(t, b, workers[0]) })
	t.Run("drain is called off", func(t *testing.T) { drainIsCalledOff(t, b, workers[0]) })
	untouched()
	t.Run("cordon", func(t *testing.T) { cordonHolds(t, b, workers[0]) })
	t.Run("upgrade", func(t *testing.T) { upgradeAndBack(t, b) })
	untouched()

	plan := b.plan(b.dispatch(adapter.MemberRemove, nil, workers[0]))
	require.Equal(t, adapter.VerdictSafe, plan.Verdict, "%+v", plan)
	status := b.run(adapter.MemberRemove, nil, workers[0])
	require.Equal(t, adapter.MemberRemoved, status.Members[0].Status)
	b.forget(workers[0])
	var nodes struct{ Nodes []report.Node }
	b.p.Action(b.base, "node.list", b.current, "nodes", map[string]any{}, &nodes)
	require.Len(t, nodes.Nodes, 2)

	// A member that the list does not have any more is forgotten once its node does not answer.
	b.on(workers[1], `pkill -9 slurmd`)
	b.on(b.current.Members[0].ID, "scontrol update nodename=w2 state=down reason=test")
	b.forget(workers[1])
	b.run(adapter.MemberLabel, adapter.LabelChange{Labels: map[string]string{"pool": "red"}}, b.current.Members[1].ID)
	require.Equal(t, "slurmctld is up, 1 of 1 workers are healthy", b.observe().Message)
	untouched()
	accounts := struct{ Jobs []report.AccountedJob }{}
	b.p.Action(b.base, "accounting.jobs", b.current, "accounts", map[string]any{}, &accounts)
	require.NotEmpty(t, accounts.Jobs)
	require.Equal(t, daemons.JobAccount, accounts.Jobs[0].Account)

	plan = b.plan(b.dispatch(adapter.InstanceDecommission, nil))
	require.Equal(t, adapter.VerdictSafe, plan.Verdict)
	require.False(t, plan.Reversible)
	require.Equal(t, "JOBS_LOST", plan.Reasons[0].Code)
	require.Equal(t, long, plan.WorkLost[0].ID)
	endsWithASlowDatabase(t, b)
	require.Len(t, b.usage()["jobs job-"+long], 1, "what ends with the cluster is counted, by a slow database too")
}

// jobsAreCounted runs a job on two nodes, an array, and a job that is queued again: each run of each is counted once.
func jobsAreCounted(t *testing.T, b *bench) {
	wide := b.submit("#!/bin/sh\nsrun sleep 2\n", map[string]any{"nodes": 2})
	array := b.submit("#!/bin/sh\n#SBATCH --array=1-3\ntrue\n", nil)
	controller := b.current.Members[0].ID
	again := requeued(b, controller)
	b.job(wide, "COMPLETED")
	tasks := strings.Fields(b.on(controller, "until test $(squeue -h -t COMPLETED -r -j "+array+
		" | wc -l) = 3; do sleep 0.2; done; scontrol -o show job "+array+" | sed 's/ .*//; s/JobId=//'"))
	require.Len(t, tasks, 3)
	var got map[string][]adapter.UsageRecord
	require.Eventually(t, func() bool {
		got = b.usage()
		return len(got["jobs job-"+wide]) == 1 && len(got["jobs job-"+again]) == 2 &&
			!slices.ContainsFunc(tasks, func(task string) bool { return len(got["jobs job-"+task]) == 0 })
	}, patience, time.Second)
	for _, task := range tasks {
		require.Len(t, got["jobs job-"+task], 1, "task %s of the array: %v", task, got)
	}
	seconds, err := strconv.Atoi(got["job.seconds job-"+wide][0].Quantity)
	require.NoError(t, err)
	require.GreaterOrEqual(t, seconds, 2)
	require.Equal(t, strconv.Itoa(2*seconds), got["job.node_seconds job-"+wide][0].Quantity, "each node once")
	require.Equal(t, got, b.usage(), "what was read is not counted again")
}

// requeued runs a job that is queued again while it runs, and returns its number. Slurm puts the second run off by two
// minutes once what ran has ended, whatever its start was set to before, so that the start is set again and again.
// Begun at once, often within the same second, the second run may find what is left of the first and fail: it is a run
// all the same.
func requeued(b *bench, controller string) string {
	job := b.submit("#!/bin/sh\n#SBATCH --requeue\ntest -n \"$SLURM_RESTART_COUNT\" || sleep 600\n", nil)
	b.job(job, "RUNNING")
	b.on(controller, "scontrol requeue "+job)
	b.on(controller, "until scontrol -o show job "+job+" | grep -q -E 'JobState=(COMPLETED|FAILED) .*Restarts=1'; do "+
		"scontrol update jobid="+job+" starttime=now 2>/dev/null || true; sleep 0.2; done")
	return job
}

func upgradeAndBack(t *testing.T, b *bench) {
	before := b.current.Instance
	after := before
	after.Version, after.Config = "1.5.1", json.RawMessage(
		`{"partitionName":"batch","maxJobMinutes":77,"backfillSeconds":5}`,
	)
	change := func(from, to adapter.Instance) adapter.VersionChange {
		return adapter.VersionChange{
			From: adapter.VersionConfig{Version: from.Version, Config: from.Config},
			To:   adapter.VersionConfig{Version: to.Version, Config: to.Config},
		}
	}
	b.current.Instance = after
	status := b.run(adapter.InstanceUpgrade, change(before, after))
	require.JSONEq(t, `{"version":"1.5.1","partition":"batch","maxTime":"01:17:00"}`, string(status.Evidence["runs"]))
	require.Contains(
		t, b.on(b.current.Members[1].ID, "cat /run/slurm/conf/slurm.conf"), "MaxTime=77", "workers have it too",
	)

	renamed := after
	renamed.Config = json.RawMessage(`{"partitionName":"other"}`)
	b.current.Instance = renamed
	d := b.dispatch(adapter.InstanceUpgrade, change(after, renamed))
	require.Equal(t, adapter.VerdictUnsafe, b.plan(d).Verdict)
	require.Equal(t, "PARTITION_IN_USE", b.plan(d).Reasons[0].Code)
	failed := b.p.Run(b.base, d, patience)
	require.Equal(t, adapter.StateFailed, failed.State)
	require.Equal(t, "PARTITION_IN_USE", failed.Error.Code)

	b.current.Instance = before
	status = b.run(adapter.InstanceRollback, change(after, before))
	require.JSONEq(t, `{"version":"1.6.0","partition":"batch","maxTime":"UNLIMITED"}`, string(status.Evidence["runs"]))
}

// TestDeadWorkersAreReplaced replaces a worker whose slurmd was killed, and then one whose node is lost.
func TestDeadWorkersAreReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_dead", 1)
	controller, first := b.current.Members[0].ID, b.current.Members[1].ID
	b.on(first, "pkill -9 slurmd")
	seen := b.observe()
	require.Equal(t, adapter.Unhealthy, seen.Members[1].Health, "%+v", seen)
	require.Contains(t, seen.Members[1].Message, "does not accept connections")

	second := b.member(1)
	b.current.Members = append(b.current.Members, second)
	b.on(controller, "scontrol update nodename=w0 state=down reason=test") // slurmctld itself would take half a minute
	status := b.run(adapter.MemberReplace, adapter.ReplaceChange{ReplacementID: second.ID}, first)
	require.Equal(
		t, map[string]adapter.MemberStatus{first: adapter.MemberRemoved, second.ID: adapter.MemberActive},
		statuses(status),
	)
	b.forget(first)
	id := b.submit(longJob, nil)
	b.job(id, "RUNNING")

	gone := false
	b.current.Members[1].Node.Reachable = &gone
	third := b.member(2)
	b.current.Members = append(b.current.Members, third)
	d := b.dispatch(adapter.MemberReplace, adapter.ReplaceChange{ReplacementID: third.ID}, second.ID)
	d.Force = true
	plan := b.plan(d)
	require.Equal(t, adapter.VerdictUnsafe, plan.Verdict)
	require.Equal(t, id, plan.WorkLost[0].ID)
	status = b.succeeds(b.p.Run(b.base, d, patience))
	require.JSONEq(t, `["`+second.ID+`"]`, string(status.Evidence["notTornDown"]))
	require.Contains(t, string(status.Evidence["lostJobs"]), `"`+id+`"`)
	b.forget(second.ID)
	b.job(id, "PENDING") // Slurm makes a job wait that it queued again
	again := b.job(id, "RUNNING")
	require.Equal(t, "w2", again.NodeList, "the job was queued again and runs on the new worker")
	require.Equal(t, adapter.Healthy, b.observe().Health, "%+v", b.observe())
	b.run(adapter.InstanceDecommission, nil)
}

// TestMemberThatDoesNotComeUpLeavesNoTraceInSlurm adds a worker that cannot start, then recovers one.
func TestMemberThatDoesNotComeUpLeavesNoTraceInSlurm(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_fail", 1)
	bad := b.member(1)
	bad.Node.Address = "203.0.113.1" // nobody can reach it there
	kept := b.current.Members
	b.current.Members = append(kept[:len(kept):len(kept)], bad)
	b.on(
		bad.ID,
		`printf '#!/bin/sh\nsleep 300\n' > /usr/sbin/slurmd.broken && chmod 755 /usr/sbin/slurmd.broken && `+
			`mount --bind /usr/sbin/slurmd.broken /usr/sbin/slurmd`,
	)
	change := adapter.AddChange{Components: []adapter.ComponentCount{{Key: layout.ComponentWorker, Count: 1}}}
	off := b.dispatch(adapter.MembersAdd, change, bad.ID)
	b.begin(off)
	b.awaits(
		off, "the addition does not get as far as slurmd",
		func(s adapter.Status) bool { return s.Phase == "starting workers" },
	)
	b.p.Call(b.base, http.MethodPost, adapter.CancelPath(off.OperationID), adapter.CancelRequest{Attempt: 1}, nil)
	ended := b.awaits(off, "the canceled addition does not end", func(s adapter.Status) bool {
		return s.State.Terminal()
	})
	require.Equal(t, adapter.StateCanceled, ended.State)
	require.NotContains(t, b.on(kept[0].ID, "cat /etc/slurm/slurm.conf; sinfo -N -h"), "w1")
	b.on(bad.ID, "chmod 644 /usr/sbin/slurmd.broken")
	failed := b.p.Run(b.base, b.dispatch(adapter.MembersAdd, change, bad.ID), patience)
	require.Equal(t, adapter.StateFailed, failed.State)
	require.Equal(t, "PACKAGES_MISSING", failed.Error.Code)
	require.Equal(t, adapter.OwnerNode, failed.Error.Owner)
	require.Equal(t, adapter.MemberFailed, statuses(failed)[bad.ID])
	require.NotContains(t, b.on(kept[0].ID, "cat /etc/slurm/slurm.conf"), bad.ID)

	b.on(bad.ID, "umount /usr/sbin/slurmd")
	b.current.Members[2].Node.Address = b.address
	status := b.run(adapter.MemberRecover, nil, bad.ID)
	require.Equal(t, adapter.MemberActive, statuses(status)[bad.ID])
	b.on(kept[0].ID, "pkill -9 slurmctld; pkill -9 slurmdbd; true")
	isLostWithoutItsState(t, b, kept[0].ID)
	b.run(adapter.MemberRecover, nil, kept[0].ID)
	require.Eventually(t, func() bool { return b.observe().Health == adapter.Healthy }, patience, 200*time.Millisecond)

	var refused adapter.ErrorBody
	code, raw := b.p.Call(b.base, http.MethodPut, adapter.OperationPath("op_no"), func() adapter.Dispatch {
		d := b.dispatch(adapter.MemberDrain, nil, kept[0].ID)
		d.OperationID = "op_no"
		return d
	}(), nil)
	require.NoError(t, json.Unmarshal(raw, &refused))
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Equal(t, "CONTROLLER_IS_FIXED", refused.Code)
	require.True(t, strings.HasPrefix(refused.Path, "targets["))
	b.run(adapter.InstanceDecommission, nil)
}

// TestAccountingIsTurnedOnAndOffUnderJobs begins without accounts. Jobs that were submitted then must
// neither end nor be held when slurmctld begins to enforce associations.
func TestAccountingIsTurnedOnAndOffUnderJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t, "ins_acct", 1, `{"partitionName":"batch","accounting":{"enabled":false}}`)
	require.Contains(t, b.observe().Members[0].Message, "accounting is off")
	code, raw := b.p.TryAction(b.base, "accounting.jobs", b.current, "off", map[string]any{})
	require.Equal(t, http.StatusUnprocessableEntity, code, "%s", raw)
	require.Contains(t, string(raw), "ACCOUNTING_OFF")
	running := b.submit(longJob, map[string]any{"cpusPerTask": 2})
	began := b.job(running, "RUNNING").Started
	waiting := b.submit("#!/bin/sh\ntrue\n", map[string]any{"cpusPerTask": 2})

	off := b.current.Instance
	on := off
	on.Config = json.RawMessage(`{"partitionName":"batch"}`)
	change := adapter.VersionChange{
		From: adapter.VersionConfig{Config: off.Config}, To: adapter.VersionConfig{Config: on.Config},
	}
	b.current.Instance = on
	b.run(adapter.InstanceUpgrade, change)
	require.Equal(t, began, b.job(running, "RUNNING").Started)
	require.NotContains(t, b.job(waiting, "PENDING").Reason, "InvalidAccount")
	after := b.submit("#!/bin/sh\ntrue\n", nil)
	b.p.Action(b.base, "queue.cancel", b.current, "end", map[string]any{"jobId": running}, &struct{}{})
	b.job(waiting, "COMPLETED")
	b.job(after, "COMPLETED")
	accounts := struct{ Jobs []report.AccountedJob }{}
	b.p.Action(b.base, "accounting.jobs", b.current, "on", map[string]any{}, &accounts)
	require.NotEmpty(t, accounts.Jobs)

	change.From, change.To = change.To, change.From
	b.current.Instance = off
	b.run(adapter.InstanceRollback, change)
	require.Contains(t, b.observe().Members[0].Message, "accounting is off")
	b.job(b.submit("#!/bin/sh\ntrue\n", nil), "COMPLETED")
	b.run(adapter.InstanceDecommission, nil)
}
