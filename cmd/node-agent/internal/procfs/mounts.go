package procfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// MountsBelow lists the mount points at or below dir that the caller sees, deepest last.
func MountsBelow(dir string) []string {
	var points []string
	for _, line := range MountInfo(0) {
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

// IsMountPoint reports whether the caller sees a mount at dir.
func IsMountPoint(dir string) bool { return slices.Contains(MountsBelow(dir), dir) }

// UnmountBelow unmounts what the caller sees mounted at or below dir, the deepest first.
func UnmountBelow(dir string) error {
	var failed error
	for _, point := range slices.Backward(MountsBelow(dir)) {
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			failed = errors.Join(failed, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return failed
}
