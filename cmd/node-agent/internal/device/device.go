// Package device finds the GPUs of the node with their identities: by the vendor's program where it is installed, else
// by what the driver publishes below /proc and /sys. A node of a lab declares simulated ones instead.
package device

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// smiTimeout bounds the vendor's program, which waits for the driver.
const smiTimeout = 20 * time.Second

// Source is where devices are looked for.
type Source struct {
	// Root is the file system's root, "/" but in tests.
	Root string
	// SMI is the vendor's program; empty to do without.
	SMI string
}

// Here is the node itself, with the vendor's program if it is installed.
func Here() Source {
	smi, _ := exec.LookPath("nvidia-smi")
	return Source{Root: string(filepath.Separator), SMI: smi}
}

// List returns the node's GPUs by their number. Without any, or when not every one of them has an identity, it returns
// none.
func (s Source) List(ctx context.Context) []gql.DeviceInput {
	ctx, cancel := context.WithTimeout(ctx, smiTimeout)
	defer cancel()
	for _, find := range []func(context.Context) []gql.DeviceInput{s.asked, s.nvidia, s.amd} {
		if found := find(ctx); len(found) > 0 {
			return found
		}
	}
	return nil
}

// StandIns returns the declared devices of a lab's node.
func StandIns(node, model string, count int) []gql.DeviceInput {
	devices := make([]gql.DeviceInput, count)
	for i := range devices {
		devices[i] = gql.DeviceInput{
			Uuid: "SIM-" + node + "-" + strconv.Itoa(i), Index: i, Minor: i, Path: nvidiaPath(i), Model: model,
			Simulated: true,
		}
	}
	return devices
}

func nvidiaPath(minor int) string { return "/dev/nvidia" + strconv.Itoa(minor) }

// identified returns the devices numbered in their order, and none when one of them has no identity or two have the
// same.
func identified(devices []gql.DeviceInput) []gql.DeviceInput {
	seen := make(map[string]bool, len(devices))
	for i := range devices {
		id := devices[i].Uuid
		if id == "" || strings.Contains(id, "?") || seen[id] {
			return nil
		}
		seen[id] = true
		devices[i].Index = i
	}
	return devices
}

// pciAddress is an address of the bus as Linux writes it: four digits of domain, lower case.
func pciAddress(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if domain, rest, ok := strings.Cut(text, ":"); ok && len(domain) == 8 {
		return strings.TrimPrefix(domain, "0000") + ":" + rest
	}
	return text
}

// at is a path below the root.
func (s Source) at(path ...string) string { return filepath.Join(append([]string{s.Root}, path...)...) }
