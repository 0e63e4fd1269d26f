package install

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The kernel holds the group of a process for a moment after its end.
const (
	cgroupTries = 40
	cgroupPause = 50 * time.Millisecond
)

// cgroup is the group of this installation's nodes in every hierarchy of the machine.
func (r *Rig) cgroup() string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(r.cfg.Dir))
	return fmt.Sprintf("/app-platform-lab-%x", hash.Sum64())
}

// removeCgroups deletes a group and those below it from all hierarchies. A node takes its processes with it when it is
// killed, but not the groups that they were in.
func removeCgroups(group string) error {
	tops, err := filepath.Glob("/sys/fs/cgroup/*" + group)
	if err != nil {
		return err
	}
	var dirs []string
	for _, top := range append(tops, "/sys/fs/cgroup"+group) {
		_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	slices.Reverse(dirs)
	for tries := 0; ; tries++ {
		failed := removeAll(dirs)
		if failed == nil || tries == cgroupTries {
			return failed
		}
		time.Sleep(cgroupPause)
	}
}

func removeAll(dirs []string) (failed error) {
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
