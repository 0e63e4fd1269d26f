package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

const (
	// uploadLife is how long a part of a file waits for the rest.
	uploadLife = 24 * time.Hour
	// maxUploads bounds the parts that wait on a volume.
	maxUploads = 1_000
)

// wanted is the file that an upload is to be.
type wanted struct {
	part   volumefiles.Part
	digest volumefiles.Digest
	mode   os.FileMode
}

// name is what the part of a file is called while it waits. Who goes on needs to know path, size and digest.
func (u wanted) name(path string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%x", path, u.part.Total, u.digest))
	return hex.EncodeToString(sum[:])
}

// wantedBy reads what a PUT brings.
func (q *request) wantedBy(r *http.Request) (out wanted, err error) {
	if out.digest, err = volumefiles.ParseDigest(r.Header.Get(volumefiles.ReprDigest)); err == nil {
		out.part, err = volumefiles.ParsePart(r.Header.Get("Content-Range"), r.ContentLength)
	}
	mode := uint64(0o644)
	if text := r.URL.Query().Get(volumefiles.ModeQuery); err == nil && text != "" {
		if mode, err = strconv.ParseUint(text, 8, 32); err != nil || mode > 0o777 {
			err = errors.New("mode: it must be the permission bits, octal, 0 to 777")
		}
	}
	if err != nil {
		return out, refusal("INVALID_ARGUMENT", "%v", err)
	}
	out.mode = os.FileMode(mode) // #nosec G115 -- at most 0o777
	if out.part.Total > q.spec.SizeBytes {
		return out, refusal("LIMIT_EXCEEDED",
			"the file has %d bytes, and the volume's size is %d: make it larger first",
			out.part.Total, q.spec.SizeBytes)
	}
	return out, nil
}

// progress answers how much of an upload is there.
func (q *request) progress(w http.ResponseWriter, r *http.Request) error {
	digest, err := volumefiles.ParseDigest(r.Header.Get(volumefiles.ReprDigest))
	if err != nil {
		return refusal("INVALID_ARGUMENT", "%v", err)
	}
	total, err := volumefiles.Number(r.Header.Get(volumefiles.UploadLength))
	if err != nil {
		return refusal("INVALID_ARGUMENT", "%s: %v", volumefiles.UploadLength, err)
	}
	have := int64(0)
	if folder, err := q.uploads(false); err == nil {
		defer folder.Close()
		name := wanted{part: volumefiles.Part{Total: total}, digest: digest}.name(q.path)
		if info, err := folder.Lstat(name); err == nil && ours(info) {
			have = info.Size()
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	w.Header().Set(volumefiles.UploadOffset, strconv.FormatInt(have, 10))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// upload takes a part of a file, and gives the file its name when it is whole and right.
func (q *request) upload(w http.ResponseWriter, r *http.Request) error {
	given, err := q.wantedBy(r)
	if err != nil {
		return err
	}
	if err := q.takes(given); err != nil {
		return err
	}
	folder, err := q.uploads(true)
	if err != nil {
		return err
	}
	defer folder.Close()
	name := given.name(q.path)
	if err := begins(w, folder, name, given.part.From); err != nil {
		return err
	}
	file, have, err := openPart(folder, name)
	if err != nil {
		return err
	}
	defer closePart(file)
	w.Header().Set(volumefiles.UploadOffset, strconv.FormatInt(have, 10))
	if have != given.part.From {
		return behind(have)
	}
	sum, err := q.receive(r.Body, file, given)
	if err != nil {
		return err
	}
	if !given.part.Last() {
		w.Header().Set(volumefiles.UploadOffset, strconv.FormatInt(have+given.part.Length, 10))
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	if found := volumefiles.Digest(sum.Sum(nil)); found != given.digest {
		err := refusal("DIGEST_MISMATCH",
			"the bytes have the digest %s and not %s, and nothing is kept: upload the file again", found, given.digest)
		return errors.Join(err, folder.Remove(name))
	}
	if err := q.place(file, name, given.mode); err != nil {
		return err
	}
	w.Header().Set(volumefiles.UploadOffset, strconv.FormatInt(given.part.Total, 10))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// takes refuses a place where no file can be, before a byte is taken.
func (q *request) takes(given wanted) error {
	above, err := q.root.Stat(path.Dir(q.path))
	if errors.Is(err, os.ErrNotExist) || err == nil && !above.IsDir() {
		return refusal("FAILED_PRECONDITION", "path: there is no folder %q: create it first",
			volumefiles.Shown(path.Dir(q.path)))
	}
	if err != nil {
		return err
	}
	info, err := q.root.Lstat(q.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir():
		return refusal("FAILED_PRECONDITION", "path: %q is a folder: name the file in it", volumefiles.Shown(q.path))
	case !info.Mode().IsRegular():
		return refusal("FAILED_PRECONDITION", "path: %q exists and is not a regular file: delete it first",
			volumefiles.Shown(q.path))
	}
	folder, err := q.root.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	var at unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &at); err != nil {
		return err
	}
	free := int64(at.Bavail) * at.Bsize // #nosec G115 -- a disk's size
	if more := given.part.Total - given.part.From; more > free {
		return refusal("LIMIT_EXCEEDED",
			"the file needs %d bytes more, and the volume has %d: delete files, or make it larger", more, free)
	}
	return nil
}

// receive writes the bytes of a part behind those that are there. With the last part it returns the digest of all.
func (q *request) receive(body io.Reader, file *os.File, given wanted) (hash.Hash, error) {
	buffer := make([]byte, bufferSize)
	to, sum := io.Writer(io.NewOffsetWriter(file, given.part.From)), sha256.New()
	if given.part.Last() {
		if _, err := io.CopyBuffer(sum, io.NewSectionReader(file, 0, given.part.From), buffer); err != nil {
			return nil, err
		}
		to = io.MultiWriter(to, sum)
	}
	n, err := io.CopyBuffer(writer{to}, io.LimitReader(body, given.part.Length), buffer)
	if err == nil && n < given.part.Length {
		err = io.ErrUnexpectedEOF
	}
	return sum, err
}

// writer hides what else a writer can do, so that a copy uses its buffer.
type writer struct{ io.Writer }

// place gives a whole file its owner, its mode and its name, in that order and on the disk.
func (q *request) place(file *os.File, name string, mode os.FileMode) error {
	err := errors.Join(file.Chown(q.spec.ID, q.spec.ID), file.Chmod(mode))
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = q.root.Rename(volumefiles.UploadsFolder+"/"+name, q.path)
	}
	if err != nil { // the part goes on waiting
		return errors.Join(err, file.Chown(0, 0), file.Chmod(0o600))
	}
	above, err := openFolder(q.root, path.Dir(q.path))
	if err != nil {
		return nil //nolint:nilerr // it was moved away meanwhile, with the file
	}
	defer above.Close()
	return above.Sync()
}

// uploads opens the folder where parts wait, and with create makes it. Anything else in its place is refused: a
// member's root can write anything there.
func (q *request) uploads(create bool) (*os.Root, error) {
	const name = volumefiles.UploadsFolder
	if create {
		if err := q.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	seen, err := q.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	foreign := refusal("FAILED_PRECONDITION",
		"%s in the volume's root is not the platform's folder (root's, mode 0700): delete it or move it away", name)
	if !seen.IsDir() || seen.Mode().Perm() != 0o700 || !rootOwned(seen) {
		return nil, foreign
	}
	folder, err := enter(q.root, name)
	if err != nil {
		return nil, err
	}
	if opened, err := folder.Stat("."); err != nil || !os.SameFile(seen, opened) {
		_ = folder.Close()
		return nil, foreign
	}
	return folder, nil
}

// behind refuses a part that does not go on behind the bytes that are there.
func behind(have int64) error {
	return refusal("CONFLICT", "Content-Range: %d bytes of the upload are stored: continue after them", have)
}

// begins refuses a new upload that does not begin at its first byte, and one beyond the number that may wait on a
// volume. An upload that waits there continues.
func begins(w http.ResponseWriter, folder *os.Root, name string, from int64) error {
	if _, err := folder.Lstat(name); err == nil {
		return nil
	}
	if from > 0 {
		w.Header().Set(volumefiles.UploadOffset, "0")
		return behind(0)
	}
	waiting, err := names(folder)
	if err == nil && len(waiting) >= maxUploads {
		err = refusal("LIMIT_EXCEEDED", "%d uploads to the volume are unfinished, the limit: finish one, or wait a day",
			maxUploads)
	}
	return err
}

// names lists what waits in the folder of parts, one more than may at most.
func names(folder *os.Root) ([]os.DirEntry, error) {
	open, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer open.Close()
	waiting, err := open.ReadDir(maxUploads + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return waiting, err
}

// openPart opens a part that waits, or a new one, locked against other requests, and returns how much is there.
func openPart(folder *os.Root, name string) (*os.File, int64, error) {
	file, err := folder.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, 0, err
	}
	busy := refusal("CONFLICT", "another request uploads the same file: wait until it has ended")
	if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, 0, busy
	}
	info, err := file.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = folder.Lstat(name); err != nil || !os.SameFile(info, named) {
			err = busy // the other request has given it its name meanwhile
		} else if !ours(info) { // somebody's, or one whose agent was killed as it gave it away
			err = errors.Join(busy, folder.RemoveAll(name))
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// closePart gives the lock of a part back. Closing alone is not enough: a program that the agent is just about to start
// has the file open too, until it runs.
func closePart(file *os.File) {
	_ = unix.Flock(int(file.Fd()), unix.LOCK_UN)
	_ = file.Close()
}

// ours reports whether a part is a file of root's that has no other name.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && stat.Nlink == 1 && rootOwned(info)
}

func rootOwned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}
