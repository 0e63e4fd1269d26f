package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/thread"
)

// assembly is the empty folder of the node over which members are put together, each in a mount namespace of its own.
// Every folder above a member's root must be passable by the member's ids, which those of the agent's state are not.
const assembly = "/run/gpuaas-members"

const (
	atLower   = assembly + "/lower"
	atRoot    = assembly + "/root"
	atDevices = assembly + "/devices"
	atCgroup  = "/sys/fs/cgroup"
)

// apart runs do on a thread with a mount namespace of its own, which ends with it.
func apart(do func() error) error { return thread.Apart(func() error { return private(do) }) }

func private(do func() error) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("create a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := mountCgroups(); err != nil {
		return fmt.Errorf("mount cgroups: %w", err)
	}
	return do()
}

// mountCgroups gives the thread a view of the cgroups that is of one version: all controllers of version 1 where the
// kernel has any in use, else version 2. crun refuses a machine that shows both.
func mountCgroups() error {
	legacy := legacyControllers()
	if len(legacy) == 0 {
		var at unix.Statfs_t
		if unix.Statfs(atCgroup, &at) == nil && at.Type == unix.CGROUP2_SUPER_MAGIC {
			return nil
		}
		return unix.Mount("cgroup2", atCgroup, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	if err := unix.Mount("cgroup", atCgroup, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"mode=755,size=1m"); err != nil {
		return err
	}
	for _, names := range legacy {
		if err := mountController(names); err != nil {
			return fmt.Errorf("%s: %w", names, err)
		}
	}
	return nil
}

func mountController(names string) error {
	at, options := filepath.Join(atCgroup, strings.TrimPrefix(names, "name=")), names
	if strings.HasPrefix(names, "name=") {
		options = "none," + names
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("cgroup", at, "cgroup", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
		return err
	}
	for name := range strings.SplitSeq(names, ",") {
		if name == names {
			continue
		}
		if err := os.Symlink(names, filepath.Join(atCgroup, name)); err != nil {
			return err
		}
	}
	return nil
}

// legacyControllers lists the hierarchies of version 1 as the kernel names them, "memory" or "cpu,cpuacct". Machines
// with version 2 may have one left that is for names alone, which does not count.
func legacyControllers() (hierarchies []string) {
	raw, _ := os.ReadFile("/proc/self/cgroup")
	counting := false
	for line := range strings.Lines(string(raw)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && fields[1] != "" {
			hierarchies = append(hierarchies, fields[1])
			counting = counting || !strings.HasPrefix(fields[1], "name=")
		}
	}
	if !counting {
		return nil
	}
	return hierarchies
}

// makeAssembly makes the folder on the node, once.
func makeAssembly() error {
	return errors.Join(os.MkdirAll(assembly, 0o711), os.Chmod(assembly, 0o711))
}

func deviceNode(devices string, index int) string { return filepath.Join(devices, strconv.Itoa(index)) }
