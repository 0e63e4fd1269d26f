package metrics

import (
	"math"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// usage is what a member has used since its start, and what it may use; NaN is what is not known.
type usage struct {
	oci.Usage
	netReceived, netSent float64 // of the member's own interfaces
}

// usage reads what a living member uses.
func (r *Recorder) usage(known roster.Record) usage {
	u := usage{r.options.Cgroups.Usage(known.Group), math.NaN(), math.NaN()}
	if procfs.Namespace(known.InitPID, "net") != procfs.Namespace(0, "net") { // else the numbers are the node's
		if received, sent, found := procfs.Traffic(known.InitPID); found {
			u.netReceived, u.netSent = float64(received), float64(sent)
		}
	}
	return u
}

// maxUsages is how many members one heartbeat may bring the numbers of.
const maxUsages = 1_000

// News returns the newest samples for a heartbeat, and their round; none when the platform has that round.
func (r *Recorder) News() (input []gql.MemberUsageInput, round int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round == r.told {
		return nil, r.round
	}
	for member, s := range r.newest {
		if len(input) == maxUsages {
			break
		}
		input = append(input, gql.MemberUsageInput{
			MemberId: member, Cpu: s.CPU, CpuLimit: s.CPULimit, CpuSeconds: s.CPUSeconds,
			MemoryBytes: s.MemoryBytes, MemoryLimitBytes: s.MemoryLimitBytes,
			NetReceivedPerSecond: s.NetReceivedPerSecond, NetReceivedBytes: s.NetReceivedBytes,
			NetSentPerSecond: s.NetSentPerSecond, NetSentBytes: s.NetSentBytes,
			DiskReadPerSecond: s.DiskReadPerSecond, DiskReadBytes: s.DiskReadBytes,
			DiskWrittenPerSecond: s.DiskWrittenPerSecond, DiskWrittenBytes: s.DiskWrittenBytes,
			Gpus: s.GPUs, GpusSimulated: s.GPUsSimulated,
			Gpu: s.GPU, GpuMemoryBytes: s.GPUMemoryBytes, GpuMemoryTotalBytes: s.GPUMemoryTotalBytes,
		})
	}
	return input, r.round
}

// Told notes that the platform has a round.
func (r *Recorder) Told(round int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = max(r.told, round)
}
