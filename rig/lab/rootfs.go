package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// scratchBytes bounds each of /tmp, /run and /dev/shm of a node.
const scratchBytes = 256 << 20

// Written is where a node shows, read-only, what was written on its root since it booted: the upper layer alone, since
// the machine's own root beneath it may have a million files.
const Written = "/run/lab/written"

// Bind makes a file or folder of the machine appear on a node.
type Bind struct {
	Source   string `json:"source"`   // on the machine, absolute
	Target   string `json:"target"`   // on the node, absolute; made when absent
	ReadOnly bool   `json:"readOnly"` // else writes go to the machine
}

// buildRoot makes the node's root and moves into it. It runs in the node's init, in its own mount namespace, once.
func buildRoot(s setup) error {
	root := filepath.Join(s.Root, "root")
	steps := []struct {
		name string
		do   func() error
	}{
		{"private mounts", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"overlay root", func() error { return mountOverlay(s, root) }},
		{"system mounts", func() error { return mountSystem(root) }},
		{"what is written", func() error { return showWritten(filepath.Join(s.Root, "upper"), root+Written) }},
		{"devices", func() error { return makeDevices(root) }},
		{"hidden folders", func() error { return hide(root, s.Hide) }},
		{"binds", func() error { return bindAll(root, s.Binds) }},
		{"host name", func() error { return unix.Sethostname([]byte(s.Hostname)) }},
		{"pivot", func() error { return pivot(root) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("node root: %s: %w", step.name, err)
		}
	}
	return nil
}

// mountOverlay puts an overlay of the machine's root on root, its writes on a tmpfs of bounded size.
func mountOverlay(s setup, root string) error {
	if err := mountTmpfs(s.Root, s.Bytes, 0o755); err != nil {
		return err
	}
	upper, work := filepath.Join(s.Root, "upper"), filepath.Join(s.Root, "work")
	for _, dir := range []string{upper, work, root, filepath.Join(upper, "etc")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := writeIdentity(filepath.Join(upper, "etc"), s); err != nil {
		return err
	}
	options := "lowerdir=/,upperdir=" + upper + ",workdir=" + work
	err := unix.Mount("overlay", root, "overlay", 0, options)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w (is the machine's root itself an overlay of overlays, or full of mounts?)", err)
	}
	return err
}

func showWritten(upper, target string) error {
	if err := os.MkdirAll(target, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(upper, target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", target, "",
		unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// writeIdentity writes the files that say who the node is. Without a name server inside the lab, resolving must fail at
// once.
func writeIdentity(etc string, s setup) error {
	sum := sha256.Sum256([]byte(s.Root + s.Hostname))
	files := map[string]string{
		"hostname":    s.Hostname + "\n",
		"hosts":       "127.0.0.1 localhost\n" + s.Address + " " + s.Hostname + "\n",
		"resolv.conf": "# no name server inside the lab\n",
		"machine-id":  hex.EncodeToString(sum[:16]) + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func mountTmpfs(target string, bytes int64, mode os.FileMode) error {
	options := fmt.Sprintf("size=%d,mode=%o", bytes, mode)
	return unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

func mountSystem(root string) error {
	if err := unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	// A fresh sysfs shows this node's network devices instead of the machine's.
	if err := unix.Mount("sysfs", root+"/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("sys: %w", err)
	}
	for dir, mode := range map[string]os.FileMode{"/run": 0o755, "/tmp": 0o1777} {
		if err := mountTmpfs(root+dir, scratchBytes, mode); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return os.MkdirAll(root+"/run/lock", 0o755)
}

// makeDevices fills /dev with the harmless devices only: no disk of the machine is reachable from a node.
func makeDevices(root string) error {
	dev := root + "/dev"
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "size=1048576,mode=755"); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bindFile("/dev/"+name, dev+"/"+name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	// FUSE is what rootless container storage mounts with; not every machine has it.
	if _, err := os.Stat("/dev/fuse"); err == nil {
		if err := bindFile("/dev/fuse", dev+"/fuse"); err != nil {
			return fmt.Errorf("fuse: %w", err)
		}
	}
	links := map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
		"ptmx": "pts/ptmx"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dev, dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=0620,gid=5"); err != nil {
		return fmt.Errorf("pts: %w", err)
	}
	if err := mountTmpfs(dev+"/shm", scratchBytes, 0o1777); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	return unix.Mount("mqueue", dev+"/mqueue", "mqueue", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

func bindFile(source, target string) error {
	if err := touch(target); err != nil {
		return err
	}
	return unix.Mount(source, target, "", unix.MS_BIND, "")
}

func touch(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// hide covers folders of the machine by an empty one. A folder that is not there needs none.
func hide(root string, dirs []string) error {
	for _, dir := range dirs {
		target := filepath.Join(root, dir)
		if info, err := os.Stat(target); err != nil || !info.IsDir() {
			continue
		}
		if err := mountTmpfs(target, 1<<20, 0o700); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

func bindAll(root string, binds []Bind) error {
	for _, b := range binds {
		if err := bind(root, b); err != nil {
			return fmt.Errorf("%s on %s: %w", b.Source, b.Target, err)
		}
	}
	return nil
}

func bind(root string, b Bind) error {
	info, err := os.Stat(b.Source)
	if err != nil {
		return err
	}
	target := filepath.Join(root, b.Target)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else {
		err = touch(target)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(b.Source, target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if !b.ReadOnly {
		return nil
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// pivot makes root the root and lets go of the machine's.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The two paths may be the same: the old root is then stacked below the new one, and unmounted from there.
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Chdir("/")
}

func validPath(path string) bool {
	return strings.HasPrefix(path, "/") && filepath.Clean(path) == path && path != "/"
}
