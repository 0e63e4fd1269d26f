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
	if !filepath.IsAbs(file.Path) || filepath.Clean(file.Path) == "/" || strings.HasSuffix(file.Path, "/") {
		return wire.Errorf(wire.CodePathInvalid, "path: %q does not name a file by an absolute path", file.Path)
	}
	uid, gid, err := s.owner(file.Owner)
	if err != nil {
		return err
	}
	dir, err := s.openParent(filepath.Clean(file.Path), file.MakeDirs)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := replaceAt(dir, filepath.Base(file.Path), file, uid, gid); err != nil {
		return wire.Errorf(wire.CodeWriteFailed, "path: write %q: %v", file.Path, err)
	}
	return nil
}

// owner gives -1 twice for "as init".
func (s Settings) owner(owner string) (uid, gid int, err error) {
	if owner == "" {
		return -1, -1, nil
	}
	credential, _, err := s.accounts().credential(owner)
	if err != nil {
		return 0, 0, wire.Errorf(wire.CodeUserUnknown, "owner: %v", err)
	}
	if credential == nil {
		return -1, -1, nil
	}
	return int(credential.Uid), int(credential.Gid), nil
}

// openParent opens the directory of a file, component by component when it may have to make some.
func (s Settings) openParent(path string, makeDirs bool) (int, error) {
	root, err := unix.Open(s.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, wire.Errorf(wire.CodeWriteFailed, "path: open the member's root: %v", err)
	}
	defer unix.Close(root)
	parent := filepath.Dir(path)
	dir, err := openIn(root, parent)
	if errors.Is(err, unix.ENOENT) && makeDirs {
		dir, err = makeIn(root, parent)
	}
	if err != nil {
		return 0, wire.Errorf(wire.CodePathInvalid, "path: directory %q: %v", parent, err)
	}
	return dir, nil
}

func makeIn(root int, path string) (int, error) {
	built := "/"
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		above, err := openIn(root, built)
		if err != nil {
			return 0, err
		}
		err = unix.Mkdirat(above, part, 0o755)
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

func replaceAt(dir int, name string, file wire.File, uid, gid int) error {
	temp := ".gpuaas-" + rand.Text()
	fd, err := unix.Openat(dir, temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	handle := os.NewFile(uintptr(fd), temp)
	_, err = handle.Write(file.Content)
	if err == nil && uid >= 0 {
		err = handle.Chown(uid, gid)
	}
	if err == nil {
		err = unix.Fchmod(fd, file.Mode) // after chown, which clears set-id bits
	}
	err = errors.Join(err, handle.Sync(), handle.Close())
	if err == nil {
		err = unix.Renameat(dir, temp, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temp, 0)
	}
	return err
}
