package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
)

const (
	// diskPrefix begins the name of each disk's device; the number of the process that mounted it follows.
	diskPrefix = "app-platform-chaos-"
	// ballast is the file that fills a disk.
	ballast = "ballast"
	// fullMost bounds how long a disk stays full.
	fullMost = 12 * time.Second
)

// Disk is a small disk, held in memory, that a fault may fill.
type Disk struct{ dir string }

// Mount mounts a small disk over a folder, which it creates. It needs root.
func Mount(dir string, bytes int64) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mount(diskPrefix+strconv.Itoa(os.Getpid()), dir, "tmpfs", 0,
		fmt.Sprintf("size=%d,mode=700", bytes)); err != nil {
		return nil, fmt.Errorf("mount a small disk: %w", err)
	}
	return &Disk{dir: dir}, nil
}

// Unmount gives the disk's memory back.
func (d *Disk) Unmount() error { return syscall.Unmount(d.dir, syscall.MNT_DETACH) }

// Fill leaves no byte free. What is written meanwhile by others takes part.
func (d *Disk) Fill() error {
	file, err := os.OpenFile(filepath.Join(d.dir, ballast), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("fill a disk: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err = io.Copy(file, endless{}); errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return fmt.Errorf("fill a disk: it does not fill up: %w", err)
}

// endless is zeros without end.
type endless struct{}

func (endless) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

// Empty takes away what filled the disk.
func (d *Disk) Empty() error {
	if err := os.Remove(filepath.Join(d.dir, ballast)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("empty a disk: %w", err)
	}
	return nil
}

// SweepDisks unmounts the disks of runs that were killed.
func SweepDisks() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var failed []error
	for _, line := range strings.Split(string(mounts), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[0], diskPrefix) {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimPrefix(fields[0], diskPrefix))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			failed = append(failed, syscall.Unmount(fields[1], syscall.MNT_DETACH))
		}
	}
	return errors.Join(failed...)
}

// fillAdapter fills the disk of the adapter's journal and books for a while.
func (s *Suite) fillAdapter(ctx context.Context, rng *rand.Rand) error {
	return s.fill(ctx, rng, s.AdapterDisk, s.stack.Controllers["chaos"])
}

// fillNode fills the disk of a node for a while: of its agent's journal, and of the members' files.
func (s *Suite) fillNode(ctx context.Context, rng *rand.Rand) error {
	number := rng.IntN(len(s.NodeDisks))
	return s.fill(ctx, rng, s.NodeDisks[number], s.stack.Nodes[number].Agent)
}

// fill fills a disk for a while, on and on, since what is compacted or deleted meanwhile gives space. At times the
// program whose disk it is gets killed then: it must not lose what it knows, nor forget what it has done.
func (s *Suite) fill(ctx context.Context, rng *rand.Rand, disk *Disk, of *supervise.Child) (err error) {
	defer func() { err = errors.Join(err, disk.Empty()) }()
	full, dies := time.Second+time.Duration(rng.Int64N(int64(fullMost-time.Second))), rng.IntN(3) == 0
	for begun := time.Now(); time.Since(begun) < full && ctx.Err() == nil; pause(ctx, 100*time.Millisecond) {
		if err := disk.Fill(); err != nil {
			return err
		}
		if dies && time.Since(begun) > full/2 {
			dies = false
			if err := kill(of); err != nil {
				return err
			}
		}
	}
	return nil
}
