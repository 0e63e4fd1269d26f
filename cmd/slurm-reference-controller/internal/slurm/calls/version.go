package calls

import (
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// detailed reports whether the instance's manifest knows what jobs and nodes have told since version 1.4. An instance
// of an earlier one is answered as its manifest says, and by the commands that its manifest names.
func detailed(call *adapter.Call) bool {
	part := strings.SplitN(call.Instance.Version, ".", 3)
	if len(part) < 2 {
		return false
	}
	major, errMajor := strconv.Atoi(part[0])
	minor, errMinor := strconv.Atoi(part[1])
	return errMajor == nil && errMinor == nil && (major > 1 || major == 1 && minor >= 4)
}
