package device_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/device"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/exectest"
)

func TestNvidiaIsAskedByTheVendorsProgram(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "proc/driver/nvidia/gpus/0000:3b:00.0/information",
		"Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-????\nDevice Minor: \t 4\n")
	smi := program(t,
		`echo "GPU-aa11, 00000000:3B:00.0, NVIDIA H100 80GB HBM3, 81559"; echo "GPU-bb22, 00000000:86:00.0, NVIDIA H100 80GB HBM3, [N/A]"`)
	require.Equal(t, []gql.DeviceInput{
		{Uuid: "GPU-aa11", Index: 0, Minor: 4, PciAddress: "0000:3b:00.0", Path: "/dev/nvidia4",
			Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559},
		{Uuid: "GPU-bb22", Index: 1, Minor: 1, PciAddress: "0000:86:00.0", Path: "/dev/nvidia1",
			Model: "NVIDIA H100 80GB HBM3"},
	}, device.Source{Root: root, SMI: smi}.List(t.Context()))
}

func TestNvidiaIsReadFromTheDriverWithoutThatProgram(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "proc/driver/nvidia/gpus/0000:86:00.0/information",
		"Model: NVIDIA A100\nGPU UUID: GPU-b\nDevice Minor: 1\n")
	write(t, root, "proc/driver/nvidia/gpus/0000:f1:00.0/information",
		"Model: NVIDIA A100\nGPU UUID: GPU-a\nDevice Minor: 0\n")
	require.Equal(t, []gql.DeviceInput{
		{Uuid: "GPU-a", Index: 0, Minor: 0, PciAddress: "0000:f1:00.0", Path: "/dev/nvidia0", Model: "NVIDIA A100"},
		{Uuid: "GPU-b", Index: 1, Minor: 1, PciAddress: "0000:86:00.0", Path: "/dev/nvidia1", Model: "NVIDIA A100"},
	}, device.Source{Root: root, SMI: program(t, "exit 9")}.List(t.Context()))
}

func TestAnUnknownIdentityIsNotGuessed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "proc/driver/nvidia/gpus/0000:86:00.0/information", "GPU UUID: GPU-????????\nDevice Minor: 0\n")
	require.Empty(t, device.Source{Root: root}.List(t.Context()))
	twice := program(t, `echo "GPU-a, 00000000:3B:00.0, X, 1"; echo "GPU-a, 00000000:3C:00.0, X, 1"`)
	require.Empty(t, device.Source{Root: t.TempDir(), SMI: twice}.List(t.Context()))
}

func TestAmdIsReadFromTheKernel(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "dev/kfd", "")
	write(t, root, "sys/devices/0000:c1:00.0/unique_id", "f00d\n")
	write(t, root, "sys/devices/0000:c1:00.0/mem_info_vram_total", "68702699520\n")
	write(t, root, "sys/class/drm/renderD128/dev", "226:128\n")
	require.NoError(t, os.Symlink("../../../devices/0000:c1:00.0",
		filepath.Join(root, "sys/class/drm/renderD128/device")))
	require.Equal(t, []gql.DeviceInput{
		{Uuid: "AMD-f00d", Minor: 128, PciAddress: "0000:c1:00.0", Path: "/dev/dri/renderD128", MemoryMiB: 65520},
	}, device.Source{Root: root}.List(t.Context()))
}

func TestWhatGPUsDoIsAskedOfTheirVendors(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "sys/devices/0000:c1:00.0/unique_id", "f00d\n")
	write(t, root, "sys/devices/0000:c1:00.0/gpu_busy_percent", "25\n")
	write(t, root, "sys/devices/0000:c1:00.0/mem_info_vram_used", "2048\n")
	write(t, root, "sys/devices/0000:c1:00.0/mem_info_vram_total", "4096\n")
	write(t, root, "sys/class/drm/renderD128/dev", "226:128\n")
	require.NoError(t, os.Symlink("../../../devices/0000:c1:00.0",
		filepath.Join(root, "sys/class/drm/renderD128/device")))
	smi := program(t, `echo "GPU-a, 50, 10, 100"; echo "GPU-b, [N/A], 20, 100"; echo garbage`)
	uses := device.Source{Root: root, SMI: smi}.Uses(t.Context())
	require.Len(t, uses, 3)
	require.Equal(t, device.Use{Busy: 0.5, Memory: 10 << 20, MemoryTotal: 100 << 20}, uses["GPU-a"])
	require.True(t, math.IsNaN(uses["GPU-b"].Busy))
	require.Equal(t, device.Use{Busy: 0.25, Memory: 2048, MemoryTotal: 4096}, uses["AMD-f00d"])
	require.Empty(t, device.Source{Root: t.TempDir(), SMI: program(t, "exit 9")}.Uses(t.Context()))
}

func TestStandInsSaySo(t *testing.T) {
	t.Parallel()
	require.Equal(t, []gql.DeviceInput{
		{Uuid: "SIM-node-1-0", Index: 0, Minor: 0, Path: "/dev/nvidia0", Model: "sim", Simulated: true},
		{Uuid: "SIM-node-1-1", Index: 1, Minor: 1, Path: "/dev/nvidia1", Model: "sim", Simulated: true},
	}, device.StandIns("node-1", "sim", 2))
}

// write puts a file below the root.
func write(t *testing.T, root, path, content string) {
	t.Helper()
	path = filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// program writes a shell script.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "smi")
	exectest.Write(t, path, "#!/bin/sh\n"+script+"\n")
	return path
}
