// Package draft puts files into a member's root, whole or not at all.
package draft

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/accounts"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// buffer is how much of a file that is received is in memory at once, in bytes.
const buffer = 256 << 10

// Place is where files go.
type Place struct {
	// Root is the directory that is the member's /.
	Root string
	// Accounts are those that a file may belong to.
	Accounts accounts.Files
}

// Write puts a file into the root.
func (p Place) Write(file wire.File) error {
	draft, err := p.New(file)
	if err != nil {
		return err
	}
	defer draft.Discard()
	if _, err := draft.handle.Write(file.Content); err != nil {
		return writeFailed(wire.CodeWriteFailed, file.Path, err)
	}
	return draft.Commit()
}

// Draft is a file that has no name yet: a temporary one beside the place where it will be.
type Draft struct {
	file      wire.File
	dir       int
	temp      string
	handle    *os.File
	uid, gid  int
	committed bool
}

// New opens a draft of a file. Every component of its path is resolved with the root as /, so that no link leads out of
// it; a link at the last component is replaced, not followed.
func (p Place) New(file wire.File) (*Draft, error) {
	if !filepath.IsAbs(file.Path) || filepath.Clean(file.Path) == "/" || strings.HasSuffix(file.Path, "/") {
		return nil, wire.Errorf(wire.CodePathInvalid, "path: %q does not name a file by an absolute path", file.Path)
	}
	uid, gid, err := p.owner(file.Owner)
	if err != nil {
		return nil, err
	}
	made := madeDirs{make: file.MakeDirs, uid: -1, gid: -1}
	if file.OwnDirs {
		made.uid, made.gid = uid, gid
	}
	dir, err := p.openParent(filepath.Clean(file.Path), made)
	if err != nil {
		return nil, err
	}
	temp := ".gpuaas-" + rand.Text()
	fd, err := unix.Openat(dir, temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		_ = unix.Close(dir)
		return nil, writeFailed(wire.CodeWriteFailed, file.Path, err)
	}
	return &Draft{file: file, dir: dir, temp: temp, handle: os.NewFile(uintptr(fd), temp), uid: uid, gid: gid}, nil
}

// writeFailed returns err with the code, but CodeDiskFull only for a full disk or quota: else CodeWriteFailed.
func writeFailed(code, path string, err error) error {
	if code == wire.CodeDiskFull && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		code = wire.CodeWriteFailed
	}
	return wire.Errorf(code, "path: write %q: %v", path, err)
}

// Commit gives the file its owner, mode and name.
func (d *Draft) Commit() error {
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

// Discard lets go of the file, and removes it unless it has its name.
func (d *Draft) Discard() {
	_ = d.handle.Close()
	if !d.committed {
		_ = unix.Unlinkat(d.dir, d.temp, 0)
	}
	_ = unix.Close(d.dir)
}

// owner gives -1 twice for "as init".
func (p Place) owner(owner string) (uid, gid int, err error) {
	if owner == "" {
		return -1, -1, nil
	}
	credential, _, err := p.Accounts.Credential(owner)
	if err != nil {
		return 0, 0, wire.Errorf(wire.CodeUserUnknown, "owner: %v", err)
	}
	if credential == nil {
		return -1, -1, nil
	}
	return int(credential.Uid), int(credential.Gid), nil
}

// madeDirs says whether to create missing directories, and their owner; -1 twice is "as init".
type madeDirs struct {
	make     bool
	uid, gid int
}

// openParent opens the directory of a file, component by component when it may have to make some.
func (p Place) openParent(path string, made madeDirs) (int, error) {
	root, err := unix.Open(p.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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

// Reserve allocates the file's space early, so that a full disk is found now, where the filesystem can allocate.
func (d *Draft) Reserve(size int64) error {
	if size < 0 {
		return wire.Errorf(wire.CodeSpecInvalid, "size: %d is negative", size)
	}
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(d.handle.Fd()), 0, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return wire.Errorf(wire.CodeDiskFull, "path: there is no space for the %d bytes of %q in the member", size,
			d.file.Path)
	}
	return nil
}

// Receive takes the whole content from a reader, at the pace of its sender.
func (d *Draft) Receive(from io.Reader, size int64) error {
	// Neither end is given as what it is, since the copy would go around the buffer, in pieces of another size.
	got, err := io.CopyBuffer(struct{ io.Writer }{d.handle}, struct{ io.Reader }{io.LimitReader(from, size)},
		make([]byte, buffer))
	if err == nil && got != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return writeFailed(wire.CodeDiskFull, d.file.Path, err)
	}
	return nil
}
