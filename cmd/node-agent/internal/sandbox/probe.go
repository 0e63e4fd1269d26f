package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
)

// Isolation is how members are kept apart on this node.
type Isolation struct {
	// Mode is memberinit.ModeNamespace or memberinit.ModeProcess.
	Mode string
	// Tmpfs says that members' files lie in memory, because the disk cannot carry an overlay.
	Tmpfs bool
	// Reason says why it is not better; empty when it is the best there is.
	Reason string
}

// detect builds a member's root in a scratch directory, first on the disk, then on a tmpfs.
func (m *Manager) detect(ctx context.Context) Isolation {
	if os.Geteuid() != 0 {
		return Isolation{Mode: memberinit.ModeProcess, Reason: "the agent does not run as root"}
	}
	onDisk := m.tryRoot(ctx, false)
	if onDisk == nil {
		return Isolation{Mode: memberinit.ModeNamespace}
	}
	inMemory := m.tryRoot(ctx, true)
	if inMemory == nil {
		return Isolation{Mode: memberinit.ModeNamespace, Tmpfs: true, Reason: onDisk.Error()}
	}
	return Isolation{Mode: memberinit.ModeProcess, Reason: inMemory.Error()}
}

func (m *Manager) tryRoot(ctx context.Context, tmpfs bool) error {
	dir, err := os.MkdirTemp(m.dir, ".probe-")
	if err != nil {
		return fmt.Errorf("try a sandbox: %w", err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{memberinit.DirRoot, memberinit.DirFS, memberinit.DirState} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return fmt.Errorf("try a sandbox: %w", err)
		}
	}
	layers := filepath.Join(dir, memberinit.DirFS)
	defer func() { _ = unmountBelow(layers) }()
	if err := prepareLayers(dir, tmpfs); err != nil {
		return fmt.Errorf("try a sandbox: %w", err)
	}
	settings := memberinit.Settings{Dir: dir, MemberID: "probe", Mode: memberinit.ModeNamespace, Hide: m.hide}
	cmd, err := memberCommand(settings, memberinit.ArgProbe)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if complaint, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("try a sandbox: %s (%w)", strings.TrimSpace(string(complaint)), err)
	}
	return nil
}

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
