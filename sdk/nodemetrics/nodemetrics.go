// Package nodemetrics is how a node's agent hands on what its members use: the measures, a sample of them, and the
// stream by which a member's series is read.
//
// A reader sends one query, and the agent one answer, each a JSON document on a line of its own:
//
//	reader  {"memberId":"mem_…","rangeSeconds":900}
//	agent   {"points":[{"at":1764000000,"samples":1,"average":[0.25,…],"max":[0.25,…]},…]}
//	agent   {"error":{"code":"MEMBER_UNKNOWN","message":"…"}}
//
// Each side checks what it receives: a query comes from elsewhere, and a node need not be what it was.
package nodemetrics

import "math"

// Kind is the kind of a tunnel's stream that reads the series of a member: see package tunnel.
const Kind = "metrics"

const (
	// FineStep and FineSpan are the step and the length of the series of single samples, in seconds.
	FineStep, FineSpan = 10, 3600
	// CoarseStep and CoarseSpan are the step and the length of the series of averages and maxima, in seconds.
	CoarseStep, CoarseSpan = 600, 7 * 24 * 3600
)

// Measure is a place in the values of a sample.
type Measure int

// The measures. Rates are those of the seconds since the sample before.
const (
	// CPU is seconds of processor time per second.
	CPU Measure = iota
	// Memory is bytes that the kernel cannot take back without writing them away: the working set.
	Memory
	// NetReceived and NetSent are bytes per second of the member's own network interfaces.
	NetReceived
	NetSent
	// DiskRead and DiskWritten are bytes per second that reached block devices.
	DiskRead
	DiskWritten
	// GPU is the fraction of time in which the member's GPUs were at work, on average of them.
	GPU
	// GPUMemory is bytes in use on the member's GPUs together.
	GPUMemory
	// Measures is how many there are.
	Measures
)

// Values has a value for each measure; NaN where it is not known.
type Values [Measures]float64

// Unknown returns values of which none is known.
func Unknown() (v Values) {
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

// Known reports whether any value is known.
func (v Values) Known() bool {
	for _, value := range v {
		if !math.IsNaN(value) {
			return true
		}
	}
	return false
}

// Pointers returns the values as JSON and GraphQL have them: null where one is not known.
func (v Values) Pointers() []*float64 {
	out := make([]*float64, Measures)
	for i := range v {
		if !math.IsNaN(v[i]) {
			out[i] = &v[i]
		}
	}
	return out
}

// Of reads values that Pointers returned. A value that is missing, negative or not a number becomes unknown.
func Of(pointers []*float64) Values {
	v := Unknown()
	for i := range min(len(pointers), len(v)) {
		if p := pointers[i]; p != nil && *p >= 0 && !math.IsInf(*p, 0) {
			v[i] = *p
		}
	}
	return v
}

// Sample is what a member uses at a moment, with what that is a part of. Nil is what is not known: rates are not before
// the second sample of a member's start, the network's numbers where it has none of its own, the GPUs' where it has
// none or they are simulated.
type Sample struct {
	// CPU is seconds per second, CPULimit the most of it, and CPUSeconds the time since the member started.
	CPU        *float64 `json:"cpu,omitempty"`
	CPULimit   *float64 `json:"cpuLimit,omitempty"`
	CPUSeconds *float64 `json:"cpuSeconds,omitempty"`
	// MemoryBytes is the working set, and MemoryLimitBytes the most of it.
	MemoryBytes      *float64 `json:"memoryBytes,omitempty"`
	MemoryLimitBytes *float64 `json:"memoryLimitBytes,omitempty"`
	// The network and the disk, in bytes per second, and in bytes since the member started.
	NetReceivedPerSecond *float64 `json:"netReceivedPerSecond,omitempty"`
	NetSentPerSecond     *float64 `json:"netSentPerSecond,omitempty"`
	NetReceivedBytes     *float64 `json:"netReceivedBytes,omitempty"`
	NetSentBytes         *float64 `json:"netSentBytes,omitempty"`
	DiskReadPerSecond    *float64 `json:"diskReadPerSecond,omitempty"`
	DiskWrittenPerSecond *float64 `json:"diskWrittenPerSecond,omitempty"`
	DiskReadBytes        *float64 `json:"diskReadBytes,omitempty"`
	DiskWrittenBytes     *float64 `json:"diskWrittenBytes,omitempty"`
	// GPUs is how many the member has, and GPUsSimulated whether they are declared and not there.
	GPUs          int  `json:"gpus,omitempty"`
	GPUsSimulated bool `json:"gpusSimulated,omitempty"`
	// GPU is the fraction of time at work, on average of the GPUs; their memory is that of all together.
	GPU                 *float64 `json:"gpu,omitempty"`
	GPUMemoryBytes      *float64 `json:"gpuMemoryBytes,omitempty"`
	GPUMemoryTotalBytes *float64 `json:"gpuMemoryTotalBytes,omitempty"`
}

// Values returns the measures of a sample.
func (s *Sample) Values() Values {
	return Of([]*float64{s.CPU, s.MemoryBytes, s.NetReceivedPerSecond, s.NetSentPerSecond, s.DiskReadPerSecond,
		s.DiskWrittenPerSecond, s.GPU, s.GPUMemoryBytes})
}

// Wrong returns the name of a field whose number cannot be; empty when each can.
func (s *Sample) Wrong() string {
	for name, value := range map[string]*float64{
		"cpu": s.CPU, "cpuLimit": s.CPULimit, "cpuSeconds": s.CPUSeconds, "memoryBytes": s.MemoryBytes,
		"memoryLimitBytes": s.MemoryLimitBytes, "netReceivedPerSecond": s.NetReceivedPerSecond,
		"netSentPerSecond": s.NetSentPerSecond, "netReceivedBytes": s.NetReceivedBytes, "netSentBytes": s.NetSentBytes,
		"diskReadPerSecond": s.DiskReadPerSecond, "diskWrittenPerSecond": s.DiskWrittenPerSecond,
		"diskReadBytes": s.DiskReadBytes, "diskWrittenBytes": s.DiskWrittenBytes, "gpu": s.GPU,
		"gpuMemoryBytes": s.GPUMemoryBytes, "gpuMemoryTotalBytes": s.GPUMemoryTotalBytes,
	} {
		if value != nil && (!(*value >= 0) || math.IsInf(*value, 0) || name == "gpu" && *value > 1) {
			return name
		}
	}
	return ""
}

// Point is what was measured in the step of a series that ends at a time. A step without a point is a gap.
type Point struct {
	// At is the end of the step, in seconds since 1970.
	At int64 `json:"at"`
	// Samples is how many samples it has.
	Samples int `json:"samples"`
	// Average and Max have a value for each measure.
	Average []*float64 `json:"average"`
	Max     []*float64 `json:"max"`
}
