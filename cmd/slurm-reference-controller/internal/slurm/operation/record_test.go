package operation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestRecordOfAnEarlierVersionIsReadByIndex(t *testing.T) {
	t.Parallel()
	held, err := parseRecord(
		"SlurmctldHost=na(10.0.0.1)\nSlurmctldPort=21000\nNodeName=w0 NodeAddr=10.0.0.1 "+
			"NodeHostname=na Port=21001 CPUs=2 RealMemory=900 State=UNKNOWN\n"+
			"NodeName=w[1-126] Port=21002-21127 CPUs=2 RealMemory=900 State=FUTURE\n=== nodes\nw0|idle\n=== "+
			"slurmctld\nup\n",
		[]adapter.Member{{ID: "mem_w1", ComponentKey: layout.ComponentWorker}},
	)
	require.NoError(t, err)
	require.True(t, held.up)
	require.Equal(t, map[string]string{"w0": "idle"}, held.states)
	require.Equal(
		t,
		[]layout.Worker{{Slot: 0, MemberID: "mem_w1", Host: "na", Address: "10.0.0.1", CPUs: 2, MemoryMiB: 900}},
		held.Workers,
	)
	_, err = parseRecord("=== nodes\n", nil)
	require.ErrorContains(t, err, "names no controller")
}
