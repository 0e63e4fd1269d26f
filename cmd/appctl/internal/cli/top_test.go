package cli_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

// addUsageFixtures adds what three members use: one with a GPU, one with simulated ones, and one on a node that is
// away.
func addUsageFixtures(s *clienttest.Server) {
	usage := func(index int, more object) object {
		one := object{"memberId": "mem_1", "instanceId": "ins_1", "instanceName": "one", "componentKey": "worker",
			"index": index, "status": "ACTIVE", "at": at, "stale": false, "gpus": 0, "gpusSimulated": false}
		for key, value := range more {
			one[key] = value
		}
		return one
	}
	s.Handle("memberUsage", answer([]object{
		usage(0, object{"cpu": 0.25, "cpuLimit": 2, "cpuSeconds": 99, "memoryBytes": 512 << 20,
			"memoryLimitBytes":     1 << 30,
			"netReceivedPerSecond": 2048, "netSentPerSecond": 0, "diskReadPerSecond": 0, "diskWrittenPerSecond": 1.5e6,
			"gpus": 1,
			"gpu":  0.875, "gpuMemoryBytes": 10 << 30, "gpuMemoryTotalBytes": 80 << 30}),
		usage(1, object{"cpu": 1.5, "memoryBytes": 2 << 30, "gpus": 2, "gpusSimulated": true}),
		usage(2, object{"at": at, "stale": true, "memoryBytes": 700}),
	}))
}

func TestTopSaysWhatItCannotSortBy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.run(t.Context(), "", "top", "one", "--sort", "size")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "must be cpu, memory, net, disk or gpu")
	require.Empty(t, r.CallsOf("memberUsage"))
	require.Equal(t, 3, r.run(t.Context(), "", "top", "nothing").code, "an instance that is not there")
}

func TestTopStaysAndShowsItAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	r.Handle("memberUsage", func(clienttest.Call) (any, error) {
		if len(r.CallsOf("memberUsage")) > 1 {
			stop()
		}
		return []object{{"memberId": "mem_1", "cpu": 0.25, "at": at}}, nil
	})
	got := r.run(ctx, "", "top", "-w", "-o", "json")
	require.GreaterOrEqual(t, len(r.CallsOf("memberUsage")), 2)
	require.Contains(t, got.stdout, `"cpu":0.25`)
}
