package device

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// renderPrefix begins the names of the device nodes that AMD's compute stack opens.
const renderPrefix = "renderD"

// amd lists AMD's GPUs by what the kernel publishes of them.
func (s Source) amd(context.Context) []gql.DeviceInput {
	if _, err := os.Stat(s.at("/dev/kfd")); err != nil {
		return nil
	}
	nodes, _ := filepath.Glob(s.at("/sys/class/drm", renderPrefix+"*"))
	var found []gql.DeviceInput
	for _, node := range nodes {
		name := filepath.Base(node)
		minor, err := strconv.Atoi(strings.TrimPrefix(name, renderPrefix))
		if err != nil {
			return nil
		}
		link, _ := os.Readlink(filepath.Join(node, "device"))
		vram, _ := strconv.Atoi(s.word(node, "device", "mem_info_vram_total"))
		found = append(found, gql.DeviceInput{
			Uuid: amdIdentity(s.word(node, "device", "unique_id")), PciAddress: pciAddress(filepath.Base(link)),
			Minor: minor,
			Path:  "/dev/dri/" + name, Model: s.word(node, "device", "product_name"), MemoryMiB: vram >> 20,
		})
	}
	slices.SortFunc(found, func(a, b gql.DeviceInput) int { return a.Minor - b.Minor })
	return identified(found)
}

// amdIdentity is the vendor's number with its vendor; empty for none.
func amdIdentity(number string) string {
	if number == "" {
		return ""
	}
	return "AMD-" + number
}

// word reads a file of one line.
func (s Source) word(path ...string) string {
	raw, err := os.ReadFile(filepath.Join(path...)) // #nosec G304 -- the kernel's own file
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
