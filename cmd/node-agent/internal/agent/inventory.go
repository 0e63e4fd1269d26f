package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// inventory is what the options declare, and for the rest what the machine has.
func (o Options) inventory(ctx context.Context, isolation sandbox.Isolation) gql.NodeInventoryInput {
	found := gql.NodeInventoryInput{
		Cpus: o.CPUs, MemoryMiB: o.MemoryMiB, Gpus: o.GPUs, GpuModel: o.GPUModel, GpusSimulated: o.SimulatedGPUs,
		Isolation: gql.NodeIsolationProcess, Region: o.Region, Sku: o.SKU, Kernel: kernelRelease(),
		Labels: labels(o.Labels),
	}
	if isolation.Mode != memberinit.ModeProcess {
		found.Isolation = gql.NodeIsolationNamespace
	}
	if found.Cpus == 0 {
		found.Cpus = runtime.NumCPU()
	}
	if found.MemoryMiB == 0 {
		found.MemoryMiB = memoryMiB()
	}
	if o.GPUs < 0 {
		found.Gpus = countGPUs("/dev")
	}
	found.Walls, found.Devices = offered(isolation), o.devices(ctx, found.Gpus)
	return found
}

// labels encodes labels; nil without any, which leaves those that the platform has.
func labels(given map[string]string) json.RawMessage {
	if len(given) == 0 {
		return nil
	}
	raw, _ := json.Marshal(given) // text to text, which always encodes
	return raw
}

// countGPUs counts the device nodes of accelerators: NVIDIA's nvidia0…, or without those AMD's renderD….
func countGPUs(dev string) int {
	nvidia, _ := filepath.Glob(filepath.Join(dev, "nvidia[0-9]*"))
	if len(nvidia) > 0 {
		return len(nvidia)
	}
	if _, err := os.Stat(filepath.Join(dev, "kfd")); err != nil {
		return 0
	}
	amd, _ := filepath.Glob(filepath.Join(dev, "dri", "renderD*"))
	return len(amd)
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

var memTotal = regexp.MustCompile(`(?m)^MemTotal:\s+(\d+) kB`)

func memoryMiB() int {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	match := memTotal.FindSubmatch(raw)
	if match == nil {
		return 0
	}
	kib, _ := strconv.Atoi(string(match[1]))
	return kib / 1024
}

// bootID changes whenever the node boots. A node may be a namespace of a machine that stays up: its own first process
// distinguishes its boots.
func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		raw = []byte("unknown")
	}
	first, err := procfs.ReadStat(1)
	if err != nil {
		return strings.TrimSpace(string(raw))
	}
	return fmt.Sprintf("%s-%d", strings.TrimSpace(string(raw)), first.Start)
}
