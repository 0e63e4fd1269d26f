package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
)

// mountsBelow lists the mount points at or below dir that the agent sees, deepest last.
func mountsBelow(dir string) []string {
	var points []string
	for _, line := range procfs.MountInfo(0) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescapeMount.Replace(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	return points
}

// unescapeMount undoes the kernel's escapes in mount tables.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func isMountPoint(dir string) bool {
	for _, point := range mountsBelow(dir) {
		if point == dir {
			return true
		}
	}
	return false
}

func unmountBelow(dir string) error {
	points := mountsBelow(dir)
	var failed error
	for i := len(points) - 1; i >= 0; i-- {
		if err := unix.Unmount(points[i], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			failed = errors.Join(failed, fmt.Errorf("unmount %s: %w", points[i], err))
		}
	}
	return failed
}
