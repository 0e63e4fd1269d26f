package rootfs

import (
	"bufio"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// The places of a member that its node fills when it starts it.
const (
	// MemberDir is the folder of the member's init, at the top of the root.
	MemberDir = ".member"
	// InitFile is the program of the member's init, in MemberDir.
	InitFile = "init"
	// StateDir is the folder of its results and logs, in MemberDir.
	StateDir = "state"
	// ScratchDir lies on the node's disk and on no overlay.
	ScratchDir = "scratch"
)

func (s Store) node() string { return cmp.Or(s.Node, "/") }

// topLinks are folders at the top that are links into /usr on a merged system, and folders of programs on another.
var topLinks = []string{"bin", "sbin", "lib", "lib64", "lib32", "libx32"}

// trees lists the folders whose public files are taken whole.
func (s Store) trees() (dirs []string) {
	for _, name := range append([]string{"usr"}, topLinks...) {
		path := filepath.Join(s.node(), name)
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// fill makes the root in an empty folder.
func (s Store) fill(to string) error {
	c := &copier{link: s.Link, linked: map[uint64]string{}}
	for _, dir := range s.trees() {
		if err := c.tree(dir, filepath.Join(to, filepath.Base(dir))); err != nil {
			return err
		}
	}
	return errors.Join(s.links(to), skeleton(to), s.copyEtc(to, c), s.accounts(filepath.Join(to, "etc")),
		s.fixed(to), s.variable(to), c.tree(filepath.Join(s.node(), "var/lib/dpkg"), filepath.Join(to, "var/lib/dpkg")),
		clearLocks(to))
}

func (s Store) links(to string) error {
	for _, name := range topLinks {
		target, err := os.Readlink(filepath.Join(s.node(), name))
		if err != nil {
			continue // a folder, which is copied, or absent
		}
		if err := os.Symlink(target, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// folders are those that every root has, with their modes.
var folders = []struct {
	path string
	mode os.FileMode
}{
	{"dev", 0o755}, {"proc", 0o755}, {"sys", 0o755}, {"run", 0o755}, {"tmp", 0o777 | os.ModeSticky},
	{"home", 0o755}, {"media", 0o755}, {"mnt", 0o755}, {"opt", 0o755}, {"srv", 0o755}, {"root", 0o700},
	{ScratchDir, 0o755},
	{MemberDir, 0o700}, {MemberDir + "/" + StateDir, 0o700},
	{"etc", 0o755}, {"etc/cloud/cloud.cfg.d", 0o755}, {"etc/cron.d", 0o755}, {"etc/containers", 0o755},
	{"var", 0o755}, {"var/tmp", 0o777 | os.ModeSticky}, {"var/backups", 0o755}, {"var/cache", 0o755},
	{"var/cache/apt/archives/partial", 0o755}, {"var/lib", 0o755}, {"var/lib/apt/lists/partial", 0o755},
	{"var/log", 0o755}, {"var/mail", 0o755}, {"var/opt", 0o755}, {"var/spool", 0o755},
}

func skeleton(to string) error {
	for _, one := range folders {
		path := filepath.Join(to, one.path)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, one.mode)); err != nil {
			return err
		}
	}
	return errors.Join(os.Symlink("/run", filepath.Join(to, "var/run")),
		os.Symlink("/run/lock", filepath.Join(to, "var/lock")))
}

const (
	hosts   = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	sudoers = "Defaults env_reset\nDefaults " +
		"secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\nroot ALL=(ALL:ALL) ALL\n%sudo " +
		"ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n"
)

// fixed writes the files of /etc that are the same on every node.
func (s Store) fixed(to string) error {
	files := []file{
		{"etc/machine-id", "", 0o444, 0}, {"etc/fstab", "", 0o644, 0}, {"etc/hosts", hosts, 0o644, 0},
		{"etc/hostname", "", 0o644, 0}, {"etc/resolv.conf", "", 0o644, 0},
		{filepath.Join(MemberDir, InitFile), "", 0o755, 0},
	}
	if _, err := os.Stat(filepath.Join(s.node(), "usr/bin/sudo")); err == nil {
		files = append(files, file{"etc/sudoers", sudoers, 0o440, 0}, file{"etc/sudoers.d/README", "", 0o440, 0})
	}
	if err := os.Symlink("/proc/self/mounts", filepath.Join(to, "etc/mtab")); err != nil {
		return err
	}
	return writeAll(to, files)
}

// packaged matches a folder of /etc or /var in a package's list of files.
var packaged = regexp.MustCompile(`^/(etc|var/(lib|cache|log|spool))/[^/]+$`)

// variable makes the folders of /var and /etc that packages or system accounts have, with owner and mode and without
// what is in them.
func (s Store) variable(to string) error {
	known := s.packaged()
	for _, pattern := range []string{"var/lib/*", "var/cache/*", "var/log/*", "var/spool/*", "etc/*"} {
		found, err := filepath.Glob(filepath.Join(s.node(), pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := s.emptyFolder(path, to, known); err != nil {
				return err
			}
		}
	}
	return nil
}

// kept are folders of /var that members must not see: what the node keeps of its own boot and of containers.
var kept = map[string]bool{"/var/lib/cloud": true, "/var/lib/private": true, "/var/lib/containers": true,
	"/var/lib/dpkg": true}

func (s Store) emptyFolder(path, to string, known map[string]bool) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return skipGone(err)
	}
	at, err := filepath.Rel(s.node(), path)
	if err != nil {
		return err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	ofAccount := owner != 0 && owner < idsOfMember && (owner < firstPerson || owner > lastPerson)
	if kept["/"+at] || !known["/"+at] && !ofAccount {
		return nil
	}
	target := filepath.Join(to, at)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return (&copier{}).attributes(target, info)
}

// packaged lists the folders of /etc and /var that packages of the node own.
func (s Store) packaged() map[string]bool {
	known := map[string]bool{}
	lists, _ := filepath.Glob(filepath.Join(s.node(), "var/lib/dpkg/info/*.list"))
	for _, list := range lists {
		file, err := os.Open(list)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if packaged.Match(lines.Bytes()) {
				known[lines.Text()] = true
			}
		}
		_ = file.Close()
	}
	return known
}

// clearLocks removes the locks of the package database.
func clearLocks(to string) error {
	locks, _ := filepath.Glob(filepath.Join(to, "var/lib/dpkg/lock*"))
	var failed error
	for _, lock := range locks {
		failed = errors.Join(failed, os.Remove(lock))
	}
	return failed
}
