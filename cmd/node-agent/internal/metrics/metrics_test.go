package metrics

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/device"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/thread"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
)

const member = "mem_0123"

// start is a multiple of ten minutes.
const start = int64(1_800_000_000)

func cpu(value float64) nodemetrics.Values {
	v := nodemetrics.Unknown()
	v[nodemetrics.CPU] = value
	return v
}

// bench is a recorder on a folder, at a time that a test sets.
type bench struct {
	*Recorder
	t   *testing.T
	now time.Time
}

func newBench(t *testing.T, options Options) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Unix(start, 0)}
	if options.StateDir == "" {
		options.StateDir = t.TempDir()
	}
	if options.Cgroups == nil {
		options.Cgroups = &oci.Cgroups{}
	}
	options.Now, options.Log = func() time.Time { return b.now }, slog.New(slog.DiscardHandler)
	var err error
	b.Recorder, err = New(options)
	require.NoError(t, err)
	return b
}

// put writes a sample as the recorder does, every time as one that was just started.
func (b *bench) put(at int64, value float64) {
	b.t.Helper()
	require.NoError(b.t, appendSample(b.file(member), at, cpu(value), true))
	b.now = time.Unix(at, 0)
}

func (b *bench) series(seconds int64) []nodemetrics.Point {
	b.t.Helper()
	points, err := b.Series(nodemetrics.Query{Member: member, Range: seconds})
	require.NoError(b.t, err)
	return points
}

// A week of samples and more: the file is no longer than stated, the last hour is each sample, the week its averages
// and maxima; hours in which nothing was measured are gaps in both; and a recorder that was just started reads the
// same.
func TestASeriesIsBoundedAndItsGapsAreGaps(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	const hours = 9 * 24
	at := start
	for i := range int64(hours * 6) { // the first and the last sample of each ten minutes, but for a gap
		for _, second := range []int64{10, 600} {
			if hour := i / 6; hour == hours-2 || hour == hours-30 {
				continue
			}
			at = start + i*600 + second
			b.put(at, float64(second))
		}
	}
	info, err := os.Stat(b.file(member))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(FileBytes))
	require.Less(t, FileBytes, 171<<10, "what the documents state")

	again := newBench(t, Options{StateDir: b.options.StateDir})
	again.now = b.now
	week := again.series(nodemetrics.CoarseSpan)
	require.Len(t, week, 7*24*6-2*6)
	for _, point := range week {
		require.Equal(t, 2, point.Samples)
		require.InDelta(t, 305, *point.Average[nodemetrics.CPU], 0)
		require.InDelta(t, 600, *point.Max[nodemetrics.CPU], 0)
		require.Nil(t, point.Average[nodemetrics.GPU])
	}
	require.Len(t, again.series(24*3600), 24*6-6)
	hour := again.series(nodemetrics.FineSpan)
	require.Len(t, hour, 12)
	require.Equal(t, at, hour[11].At)
	require.Len(t, again.series(900), 3)

	again.now = again.now.Add(30 * 24 * time.Hour)
	require.Empty(t, again.series(nodemetrics.CoarseSpan), "places of an earlier turn")
}

// The agent was away in the middle of ten minutes: their average is that of all samples, before and after.
func TestARestartLosesNoAverages(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.put(start+100, 1)
	b.put(start+100, 9) // the same place again: the first one stays
	b.put(start+590, 3)
	running := b.series(nodemetrics.CoarseSpan)
	require.Len(t, running, 1, "ten minutes that go on")
	require.InDelta(t, 2, *running[0].Average[nodemetrics.CPU], 0)
	b.put(start+4*3600, 5) // the next agent, hours later
	points := b.series(nodemetrics.CoarseSpan)
	require.Len(t, points, 2)
	require.InDelta(t, 2, *points[0].Average[nodemetrics.CPU], 0)
	require.InDelta(t, 3, *points[0].Max[nodemetrics.CPU], 0)
	require.Equal(t, start+600, points[0].At)
}

func TestATornPlaceIsAGap(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.put(start+10, 1)
	b.put(start+20, 2)
	raw, err := os.ReadFile(b.file(member))
	require.NoError(t, err)
	raw[fineAt(start+20)+12] ^= 1
	require.NoError(t, os.WriteFile(b.file(member), raw, 0o600))
	points := b.series(900)
	require.Len(t, points, 1)
	require.Equal(t, start+10, points[0].At)
	require.NoError(t, os.WriteFile(b.file(member), raw[:50], 0o600))
	require.Empty(t, b.series(900))
}

func TestWhatHasNoSeriesSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	for _, id := range []string{"mem_9", "../../etc/passwd", ""} {
		_, err := b.Series(nodemetrics.Query{Member: id, Range: 900})
		require.ErrorIs(t, err, errNoMember)
	}
	b.options.Cgroups = nil
	_, err := b.Series(nodemetrics.Query{Member: member, Range: 900})
	require.ErrorIs(t, err, errNoWalls)
	b.Measure(t.Context())
	news, _ := b.News()
	require.Empty(t, news)
}

func TestSeriesThatAreAWeekOldAreDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.put(start+10, 1)
	b.now = time.Now().Add(7*24*time.Hour - time.Minute)
	b.dropOld()
	require.FileExists(t, b.file(member), "of a member that was removed, too")
	b.now = b.now.Add(time.Hour)
	b.dropOld()
	require.NoFileExists(t, b.file(member))
}

// A process that works is measured from a real cgroup; its GPUs by what a vendor's program prints.
func TestAMemberIsMeasuredFromItsCgroup(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("cgroups are made by root")
	}
	groups, err := oci.OpenCgroups("app-platform-test-metrics-" + strconv.Itoa(os.Getpid()))
	if err == nil {
		err = groups.Writable()
	}
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { groups.RemoveEmpty("") })
	const group = "alo_1/" + member
	if groups.Version != 1 {
		t.Skip("threads enter groups of version 1: TestUsageOfVersion2 reads the files of version 2")
	}
	require.NoError(t, groups.Bound("alo_1", oci.Limits{MemoryBytes: 64 << 20, CPUMillis: 500}))
	require.NoError(t, groups.Bound(group, oci.Limits{}))
	process := exec.Command("sh", "-c", "read go; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; read go")
	input, err := process.StdinPipe()
	require.NoError(t, err)
	output, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, thread.Apart(func() error { // what the thread starts begins in the group
		if err := groups.Enter(group, &specs.LinuxResources{}); err != nil {
			return err
		}
		return process.Start()
	}))
	t.Cleanup(func() { require.NoError(t, groups.Remove("alo_1")) })
	t.Cleanup(func() { _, _ = process.Process.Kill(), process.Wait() })
	_, err = input.Write([]byte("\n"))
	require.NoError(t, err)
	_, err = output.Read(make([]byte, 5))
	require.NoError(t, err)

	state := t.TempDir()
	stat, err := procfs.ReadStat(process.Process.Pid)
	require.NoError(t, err)
	dir := filepath.Join(state, roster.Dir, member)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, roster.Store(dir,
		roster.Record{MemberID: member, Epoch: "e", InitPID: stat.PID, InitStart: stat.Start,
			Group: group, Devices: []string{"GPU-a", "GPU-b"}}))
	smi := filepath.Join(t.TempDir(), "smi")
	require.NoError(t, os.WriteFile(smi,
		[]byte("#!/bin/sh\necho 'GPU-a, 50, 100, 1000'\necho 'GPU-b, 100, 200, 1000'\necho 'GPU-c, 0, 9, 9'\n"), 0o700))
	b := newBench(t, Options{StateDir: state, Cgroups: groups, GPUs: device.Source{Root: t.TempDir(), SMI: smi}})
	b.Measure(t.Context())
	b.now = b.now.Add(10 * time.Second)
	b.Measure(t.Context())
	news, round := b.News()
	require.Len(t, news, 1)
	one := news[0]
	require.Greater(t, *one.CpuSeconds, 0.0)
	require.NotNil(t, one.Cpu, "the second sample has rates")
	require.Greater(t, *one.MemoryBytes, 0.0)
	require.InDelta(t, 64<<20, *one.MemoryLimitBytes, 0, "that of its allocation")
	require.InDelta(t, 0.5, *one.CpuLimit, 0.001)
	require.Nil(t, one.NetReceivedBytes, "it has the node's network")
	require.Equal(t, 2, one.Gpus)
	require.InDelta(t, 0.75, *one.Gpu, 0)
	require.InDelta(t, 300<<20, *one.GpuMemoryBytes, 0)
	require.Len(t, b.series(900), 2)
	b.Told(round)
	news, _ = b.News()
	require.Empty(t, news, "the platform has it")

	b.options.SimulatedGPUs = true
	b.Measure(t.Context())
	news, _ = b.News()
	require.True(t, news[0].GpusSimulated)
	require.Nil(t, news[0].Gpu, "nothing is made up")

	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, b.Run(ctx), context.Canceled)
}
