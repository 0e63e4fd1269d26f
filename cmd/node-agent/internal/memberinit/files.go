package memberinit

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// write puts a file into the member's root, whole or not at all. Every component is resolved with the
// root as /, so that no link leads out of it; a link at the last component is replaced, not followed.
func (s Settings) write(file wire.File) error {
	draft, err := s.draft(file)
	if err != nil {
		return err
	}
	defer draft.discard()
	if _, err := draft.handle.Write(file.Content); err != nil {
		return writeFailed(wire.CodeWriteFailed, file.Path, err)
	}
	return draft.commit()
}

// draft is a file that has no name yet: a temporary one beside the place where it will be.
type draft struct {
	file      wire.File
	dir       int
	temp      string
	handle    *os.File
	uid, gid  int
	committed bool
}

func (s Settings) draft(file wire.File) (*draft, error) {
	if !filepath.IsAbs(file.Path) || filepath.Clean(file.Path) == "/" || strings.HasSuffix(file.Path, "/") {
		return nil, wire.Errorf(wire.CodePathInvalid, "path: %q does not name a file by an absolute path", file.Path)
	}
	uid, gid, err := s.owner(file.Owner)
	if err != nil {
		return nil, err
	}
	made := madeDirs{make: file.MakeDirs, uid: -1, gid: -1}
	if file.OwnDirs {
		made.uid, made.gid = uid, gid
	}
	dir, err := s.openParent(filepath.Clean(file.Path), made)
	if err != nil {
		return nil, err
	}
	temp := ".gpuaas-" + rand.Text()
	fd, err := unix.Openat(dir, temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		_ = unix.Close(dir)
		return nil, writeFailed(wire.CodeWriteFailed, file.Path, err)
	}
	return &draft{file: file, dir: dir, temp: temp, handle: os.NewFile(uintptr(fd), temp), uid: uid, gid: gid}, nil
}

// writeFailed tells a full disk from any other trouble where code says so.
func writeFailed(code, path string, err error) error {
	if code == wire.CodeDiskFull && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		code = wire.CodeWriteFailed
	}
	return wire.Errorf(code, "path: write %q: %v", path, err)
}

// commit gives the file its owner, mode and name.
func (d *draft) commit() error {
	var err error
	if d.uid >= 0 {
		err = d.handle.Chown(d.uid, d.gid)
	}
	if err == nil {
		err = unix.Fchmod(int(d.handle.Fd()), d.file.Mode) // after chown, which clears set-id bits
	}
	err = errors.Join(err, d.handle.Sync())
	if err == nil {
		err = unix.Renameat(d.dir, d.temp, d.dir, filepath.Base(filepath.Clean(d.file.Path)))
	}
	if err != nil {
		return writeFailed(wire.CodeWriteFailed, d.file.Path, err)
	}
	d.committed = true
	return nil
}

// discard lets go of the file, and removes it unless it has its name.
func (d *draft) discard() {
	_ = d.handle.Close()
	if !d.committed {
		_ = unix.Unlinkat(d.dir, d.temp, 0)
	}
	_ = unix.Close(d.dir)
}

// owner gives -1 twice for "as init".
func (s Settings) owner(owner string) (uid, gid int, err error) {
	if owner == "" {
		return -1, -1, nil
	}
	credential, _, err := s.accounts().Credential(owner)
	if err != nil {
		return 0, 0, wire.Errorf(wire.CodeUserUnknown, "owner: %v", err)
	}
	if credential == nil {
		return -1, -1, nil
	}
	return int(credential.Uid), int(credential.Gid), nil
}

// madeDirs says whether missing directories are made, and whose they are then; -1 twice is "as init".
type madeDirs struct {
	make     bool
	uid, gid int
}

// openParent opens the directory of a file, component by component when it may have to make some.
func (s Settings) openParent(path string, made madeDirs) (int, error) {
	root, err := unix.Open(s.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, wire.Errorf(wire.CodeWriteFailed, "path: open the member's root: %v", err)
	}
	defer unix.Close(root)
	parent := filepath.Dir(path)
	dir, err := openIn(root, parent)
	if errors.Is(err, unix.ENOENT) && made.make {
		dir, err = makeIn(root, parent, made)
	}
	if err != nil {
		return 0, wire.Errorf(wire.CodePathInvalid, "path: directory %q: %v", parent, err)
	}
	return dir, nil
}

func makeIn(root int, path string, made madeDirs) (int, error) {
	built := "/"
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		above, err := openIn(root, built)
		if err != nil {
			return 0, err
		}
		err = unix.Mkdirat(above, part, 0o755)
		if err == nil && made.uid >= 0 {
			err = unix.Fchownat(above, part, made.uid, made.gid, unix.AT_SYMLINK_NOFOLLOW)
		}
		_ = unix.Close(above)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return 0, err
		}
		built = filepath.Join(built, part)
	}
	return openIn(root, built)
}

func openIn(root int, path string) (int, error) {
	return unix.Openat2(root, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
}
