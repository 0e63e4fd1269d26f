package calls

import (
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// detail is how much an instance's manifest lets the answers say, and which commands it names. The answers to an
// instance of an earlier manifest keep to that manifest and its commands.
type detail int

const (
	plain    detail = iota // before 1.4
	detailed               // 1.4: arrays, owners, GPUs, steps and zoned times
	peopled                // 1.5: whose a job is, by the id of the account
	telling                // 1.6: where Slurm says that a job writes
)

// detailOf returns the detail of the instance's manifest.
func detailOf(call *adapter.Call) detail {
	part := strings.SplitN(call.Instance.Version, ".", 3)
	if len(part) < 2 {
		return plain
	}
	major, errMajor := strconv.Atoi(part[0])
	minor, errMinor := strconv.Atoi(part[1])
	switch {
	case errMajor != nil || errMinor != nil || major < 1 || major == 1 && minor < 4:
		return plain
	case major == 1 && minor < 5:
		return detailed
	case major == 1 && minor < 6:
		return peopled
	}
	return telling
}
