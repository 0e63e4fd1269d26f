package metrics

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/device"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
)

// dir holds the files, in the agent's state directory and outside of what a member sees.
const dir = "metrics"

// The reasons for which a member has no series.
var (
	errNoMember = &nodemetrics.Error{Code: nodemetrics.MemberUnknown, Message: "the node has not measured this member"}
	errNoWalls  = &nodemetrics.Error{Code: nodemetrics.Unmeasured,
		Message: "the node keeps members as plain processes, which it does not measure"}
)

var memberForm = regexp.MustCompile(`^[a-z]{1,8}_[0-9a-z]{1,64}$`)

// Options say what is measured.
type Options struct {
	// StateDir is the agent's state directory.
	StateDir string
	// Cgroups are those of members; nil measures none.
	Cgroups *oci.Cgroups
	// GPUs reads what the node's GPUs do; SimulatedGPUs says that they are declared and not there.
	GPUs          device.Source
	SimulatedGPUs bool
	Now           func() time.Time
	Log           *slog.Logger
}

// Recorder measures members. Its methods may be called by many goroutines.
type Recorder struct {
	options Options
	dir     string

	mu     sync.Mutex
	before map[string]reading            // the last one of each member
	newest map[string]nodemetrics.Sample // of the last round
	rolled map[string]int64              // the ten minutes in which each member's averages were last written
	round  int
	told   int
	failed bool // the last round could not be written
}

// reading is what a member's counters were.
type reading struct {
	epoch string
	at    time.Time
	usage
}

// New makes a recorder on the state directory, where those before it have written.
func New(options Options) (*Recorder, error) {
	r := &Recorder{options: options, dir: filepath.Join(options.StateDir, dir), before: map[string]reading{}}
	return r, os.MkdirAll(r.dir, 0o700)
}

// Run measures every ten seconds until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(nodemetrics.FineStep * time.Second)
	defer tick.Stop()
	for {
		r.Measure(ctx)
		r.dropOld()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Measure takes a sample of each member that lives, and writes it to the member's file.
func (r *Recorder) Measure(ctx context.Context) {
	if r.options.Cgroups == nil {
		return
	}
	var living []roster.Record
	real := false
	for _, known := range roster.List(filepath.Join(r.options.StateDir, roster.Dir)) {
		if known.Group != "" && known.Alive() && memberForm.MatchString(known.MemberID) {
			living = append(living, known)
			real = real || len(known.Devices) > 0 && !r.options.SimulatedGPUs
		}
	}
	var uses map[string]device.Use
	if real {
		uses = r.options.GPUs.Uses(ctx)
	}
	before, newest := make(map[string]reading, len(living)), make(map[string]nodemetrics.Sample, len(living))
	rolled := make(map[string]int64, len(living))
	var failed error
	for _, known := range living {
		now := reading{known.Epoch, r.options.Now(), r.usage(known)}
		sample := now.sample(r.before[known.MemberID])
		r.gpus(&sample, known.Devices, uses)
		before[known.MemberID], newest[known.MemberID] = now, sample
		at := nodemetrics.End(now.at.Unix(), nodemetrics.FineStep)
		window := nodemetrics.End(at, nodemetrics.CoarseStep)
		rolled[known.MemberID] = window
		failed = errors.Join(failed,
			appendSample(r.file(known.MemberID), at, sample.Values(), r.rolled[known.MemberID] != window))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.newest, r.rolled = before, newest, rolled
	r.round++
	if failed != nil && !r.failed {
		r.options.Log.WarnContext(ctx, "the use of members is not recorded: there will be a gap", "error", failed)
	}
	r.failed = failed != nil
}

// sample is what a member uses, by its counters now and before.
func (now reading) sample(before reading) nodemetrics.Sample {
	elapsed := math.NaN()
	if before.epoch == now.epoch && now.at.Sub(before.at) > time.Second {
		elapsed = now.at.Sub(before.at).Seconds()
	}
	rate := func(counter, earlier float64) *float64 {
		if counter < earlier { // its cgroup was made again
			return nil
		}
		return known((counter - earlier) / elapsed)
	}
	return nodemetrics.Sample{
		CPU: rate(now.CPUSeconds, before.CPUSeconds), CPULimit: known(now.CPULimit), CPUSeconds: known(now.CPUSeconds),
		MemoryBytes: known(now.Memory), MemoryLimitBytes: known(now.MemoryLimit),
		NetReceivedPerSecond: rate(now.netReceived, before.netReceived), NetReceivedBytes: known(now.netReceived),
		NetSentPerSecond: rate(now.netSent, before.netSent), NetSentBytes: known(now.netSent),
		DiskReadPerSecond: rate(now.DiskRead, before.DiskRead), DiskReadBytes: known(now.DiskRead),
		DiskWrittenPerSecond: rate(now.DiskWritten, before.DiskWritten), DiskWrittenBytes: known(now.DiskWritten),
	}
}

// known is nil for what is not.
func known(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return nil
	}
	return &value
}

// gpus adds what the member's GPUs do. One that did not answer is not counted.
func (r *Recorder) gpus(sample *nodemetrics.Sample, devices []string, uses map[string]device.Use) {
	sample.GPUs, sample.GPUsSimulated = len(devices), len(devices) > 0 && r.options.SimulatedGPUs
	var busy, memory, total sum
	for _, id := range devices {
		if use, ok := uses[id]; ok {
			busy.add(use.Busy)
			memory.add(use.Memory)
			total.add(use.MemoryTotal)
		}
	}
	sample.GPU = known(busy.total / float64(busy.count))
	if memory.count > 0 {
		sample.GPUMemoryBytes = known(memory.total)
	}
	if total.count > 0 {
		sample.GPUMemoryTotalBytes = known(total.total)
	}
}

// sum adds up what is known.
type sum struct {
	total float64
	count int
}

func (s *sum) add(value float64) {
	if !math.IsNaN(value) {
		s.total += value
		s.count++
	}
}

func (r *Recorder) file(memberID string) string { return filepath.Join(r.dir, memberID) }

// Series returns the points of a member: single samples for an hour and less, else those of ten minutes, of which the
// last may have begun only.
func (r *Recorder) Series(query nodemetrics.Query) ([]nodemetrics.Point, error) {
	if r.options.Cgroups == nil {
		return nil, errNoWalls
	}
	if !memberForm.MatchString(query.Member) {
		return nil, errNoMember
	}
	kept, err := readFile(r.file(query.Member))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoMember
	}
	if err != nil {
		return nil, err
	}
	step, find := int64(nodemetrics.FineStep), kept.fine
	if query.Range > nodemetrics.FineSpan {
		step, find = nodemetrics.CoarseStep, kept.coarse
	}
	now := nodemetrics.End(r.options.Now().Unix(), step)
	points := []nodemetrics.Point{}
	for end := now - query.Range/step*step + step; end <= now; end += step {
		if p, ok := find(end); ok {
			points = append(points, nodemetrics.Point{At: end, Samples: p.samples, Average: p.average.Pointers(),
				Max: p.most.Pointers()})
		}
	}
	return points, nil
}
