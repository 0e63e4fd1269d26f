package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
)

func isMountPoint(dir string) bool {
	for _, point := range procfs.MountsBelow(dir) {
		if point == dir {
			return true
		}
	}
	return false
}

func unmountBelow(dir string) error {
	points := procfs.MountsBelow(dir)
	var failed error
	for i := len(points) - 1; i >= 0; i-- {
		if err := unix.Unmount(points[i], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			failed = errors.Join(failed, fmt.Errorf("unmount %s: %w", points[i], err))
		}
	}
	return failed
}
