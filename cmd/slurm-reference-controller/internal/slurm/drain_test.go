package slurm

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// A job of poolAsk runs until its node has letGo: what waits for it is seen to wait, however slow the machine is.
const (
	poolAsk = "#!/bin/sh\n#SBATCH --constraint=pool=blue\nuntil test -e " + letGo + "; do sleep 0.1; done\n"
	letGo   = "/run/let-go"
)

func drainWaits(t *testing.T, b *bench, worker string) {
	id := b.submit(poolAsk, nil)
	b.job(id, "RUNNING")
	d := b.dispatch(adapter.MemberDrain, nil, worker)
	plan := b.plan(d)
	require.Equal(t, adapter.VerdictSafe, plan.Verdict)
	require.True(t, plan.Reversible)
	require.Contains(t, plan.Message, id)
	b.begin(d)
	waiting := b.awaits(
		d, "the drain does not say what it waits for", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 },
	)
	require.Equal(t, id, waiting.WaitsFor[0].ID)
	require.Equal(t, "job", waiting.WaitsFor[0].Kind)
	require.Equal(t, layout.JobUser, waiting.WaitsFor[0].Owner)
	require.Equal(t, worker, waiting.WaitsFor[0].MemberID)
	require.WithinDuration(t, time.Now(), waiting.WaitsFor[0].Since, patience)
	b.on(worker, "touch "+letGo)
	ended := b.succeeds(b.awaits(d, "the drain does not end", func(s adapter.Status) bool {
		return s.State.Terminal()
	}))
	require.Empty(t, ended.WaitsFor)
	require.Equal(t, adapter.MemberDrained, ended.Members[0].Status)
	var evidence map[string]struct {
		State string
		Jobs  int
	}
	require.NoError(t, json.Unmarshal(ended.Evidence["drained"], &evidence))
	require.Equal(t, "drained", evidence[worker].State)
	require.Zero(t, evidence[worker].Jobs)
	b.job(id, "COMPLETED")
	b.run(adapter.MemberUncordon, nil, worker)
}

func drainIsCalledOff(t *testing.T, b *bench, worker string) {
	id := b.submit(poolLong, nil)
	b.job(id, "RUNNING")
	d := b.dispatch(adapter.MemberDrain, nil, worker)
	b.begin(d)
	b.awaits(d, "the drain does not wait", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 })
	var result adapter.CancelResult
	b.p.Call(b.base, http.MethodPost, adapter.CancelPath(d.OperationID), adapter.CancelRequest{Attempt: 1}, &result)
	ended := b.awaits(d, "the canceled drain does not end", func(s adapter.Status) bool { return s.State.Terminal() })
	require.Equal(t, adapter.StateCanceled, ended.State)
	require.Equal(t, adapter.MemberActive, ended.Members[0].Status, "back in service")
	b.job(id, "RUNNING")
	again := b.dispatch(adapter.MemberDrain, nil, worker)
	b.begin(again)
	b.awaits(again, "the drain does not wait", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 })
	again.Attempt, again.Force = 2, true
	forced := b.succeeds(b.p.Run(b.base, again, patience))
	require.Contains(t, string(forced.Evidence["lostJobs"]), `"`+id+`"`)
	b.job(id, "CANCELLED")
	b.run(adapter.MemberUncordon, nil, worker)
}

func cordonHolds(t *testing.T, b *bench, worker string) {
	b.run(adapter.MemberCordon, nil, worker)
	id := b.submit(poolJob, nil)
	require.Contains(t, b.on(b.current.Members[0].ID, "scontrol show node w1 -o"), "IDLE+DRAIN")
	require.Equal(t, "PENDING", b.job(id, "PENDING").State)
	seen := b.observe()
	require.Equal(t, adapter.Healthy, seen.Health, "a cordon is no illness: %+v", seen)
	b.run(adapter.MemberUncordon, nil, worker)
	b.job(id, "COMPLETED")
}
