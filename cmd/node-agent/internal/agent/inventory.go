package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
)

// inventory is what the options declare, and for the rest what the machine has.
func (o Options) inventory(isolation sandbox.Isolation) platform.Inventory {
	found := platform.Inventory{
		CPUs: o.CPUs, MemoryMiB: o.MemoryMiB, GPUs: o.GPUs, GPUModel: o.GPUModel, GPUsSimulated: o.SimulatedGPUs,
		Isolation: strings.ToUpper(memberinit.ModeProcess), Region: o.Region, SKU: o.SKU, Kernel: kernelRelease(), Labels: o.Labels,
	}
	if isolation.Mode == memberinit.ModeNamespace {
		found.Isolation = strings.ToUpper(memberinit.ModeNamespace)
	}
	if found.CPUs == 0 {
		found.CPUs = runtime.NumCPU()
	}
	if found.MemoryMiB == 0 {
		found.MemoryMiB = memoryMiB()
	}
	if o.GPUs < 0 {
		found.GPUs = countGPUs("/dev")
	}
	return found
}

// countGPUs counts the device nodes of accelerators: nvidia0…, or where there are none AMD's renderD….
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

// bootID changes whenever the node boots. A node may be a namespace of a machine that stays up: its
// own first process tells its boots apart.
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
