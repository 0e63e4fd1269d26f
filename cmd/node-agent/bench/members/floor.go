package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/thread"
)

// floor is one round of the runtime alone: a call that runs /bin/true with the configuration of the member of this
// round, on the version of the root itself. It makes all namespaces, and no group, layers, network or record.
func (s *stage) floor(ctx context.Context, round int) error {
	bundle := filepath.Join(s.dir, "floor")
	if err := s.bare(filepath.Join(s.dir, "members", "members", memberID(round), "bundle"), bundle); err != nil {
		return fmt.Errorf("configure the runtime alone: %w", err)
	}
	return thread.Apart(func() error {
		if err := oneView(); err != nil {
			return err
		}
		began := time.Now()
		run := exec.CommandContext(ctx, "crun", "--root", bundle, "--cgroup-manager", "disabled", "run",
			"--bundle", bundle,
			fmt.Sprint("floor-", round)) // #nosec G204 -- nothing is an outsider's
		if said, err := run.CombinedOutput(); err != nil {
			return fmt.Errorf("run the runtime alone: %w: %s", err, said)
		}
		s.measured.Floor = append(s.measured.Floor, time.Since(began))
		return nil
	})
}

// bare copies a member's configuration without what the agent prepared for it: namespaces, cgroup and layers.
func (s *stage) bare(from, to string) error {
	raw, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err != nil {
		return err
	}
	var spec specs.Spec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return err
	}
	spec.Root.Path, spec.Root.Readonly, spec.Process.Args = s.root, true, []string{"/bin/true"}
	spec.Linux.CgroupsPath, spec.Linux.Resources = "", nil
	for i := range spec.Linux.Namespaces {
		spec.Linux.Namespaces[i].Path = ""
	}
	spec.Mounts = slices.DeleteFunc(spec.Mounts, func(mount specs.Mount) bool {
		return mount.Destination == "/run/lock"
	})
	if raw, err = json.Marshal(spec); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(to, 0o700), os.WriteFile(filepath.Join(to, "config.json"), raw, 0o600))
}

// oneView hides version 2 of cgroups from the thread where the machine has both: crun refuses to run where it sees
// both.
func oneView() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Unmount("/sys/fs/cgroup/unified", unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
