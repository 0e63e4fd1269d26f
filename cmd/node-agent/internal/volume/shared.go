package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/mounts"
)

// The names beside the volumes of a storage. By its name, what is being created or deleted is not a volume.
const (
	newPrefix     = ".new-"
	gonePrefix    = ".gone-"
	measuredMark  = ".measured-"
	measuredEvery = 4 * time.Minute
)

// errMeasured says that another node has measured a volume of late.
var errMeasured = errors.New("another node has measured the volume")

// shared keeps volumes as folders of a file system that other nodes may have too.
type shared struct {
	dir string

	mu      sync.Mutex
	device  uint64 // of the file system that the storage was first tried on
	bounded bool   // by project quotas of that file system
}

func (s *shared) path(id string) string { return filepath.Join(s.dir, id) }

// same refuses a folder that lies on another file system than the one that was tried: one that is not mounted any more
// would make volumes of the node's own.
func (s *shared) same() error {
	var now unix.Stat_t
	if err := unix.Stat(s.dir, &now); err != nil {
		return fmt.Errorf("its folder: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.device {
	case 0:
		s.device = now.Dev
	case now.Dev:
	default:
		return errors.New("its folder is not on the file system that it was on when the agent started")
	}
	return nil
}

func (s *shared) probe(_ context.Context, users string) error {
	if err := s.same(); err != nil {
		return err
	}
	s.sweep("")
	try, err := os.MkdirTemp(s.dir, newPrefix+probeID+"-")
	if err != nil {
		return fmt.Errorf("it is not writable: %w", err)
	}
	defer os.Remove(try)
	bounded := encloses(try)
	s.mu.Lock()
	s.bounded = bounded
	s.mu.Unlock()
	tree, err := mounts.Clone(try)
	return probeMount(tree, err, users)
}

// sweep deletes folders that a killed agent left incomplete: those of a volume, or without an id those older than an
// hour, as another node may be creating newer ones.
func (s *shared) sweep(id string) {
	left, _ := filepath.Glob(s.path(newPrefix + id + "*"))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && (id != "" || time.Since(info.ModTime()) > time.Hour) {
			_ = unbound(path)
		}
	}
}

func (s *shared) enforces() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bounded
}

// make makes the folder beside its place, with its bound, and gives it its name when it is whole.
func (s *shared) make(_ context.Context, id string, size int64) error {
	if err := s.same(); err != nil {
		return err
	}
	if _, err := os.Lstat(s.path(id)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	made, err := os.MkdirTemp(s.dir, newPrefix+id+"-")
	if err == nil {
		err = os.Chmod(made, 0o755)
	}
	if err == nil && s.enforces() {
		err = bound(made, size)
	}
	if err == nil {
		err = name(made, s.path(id))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("create the folder: %w", err), unbound(made))
	}
	return nil
}

// name gives a folder its name, unless another node has created the volume meanwhile, which is as good. Some file
// systems cannot do that in one step. There name creates the folder directly: they have no bound to set on it first.
func name(made, path string) error {
	err := unix.Renameat2(unix.AT_FDCWD, made, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EEXIST):
		return unbound(made)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		if err = os.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) {
			err = nil
		}
		return errors.Join(err, os.Chmod(path, 0o755), unbound(made))
	}
	return err
}

// bound makes a folder that may take no more than size.
func bound(path string, size int64) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return enclose(folder, size)
}

// unbound deletes a folder that has nothing in it.
func unbound(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // it was not made
	}
	defer folder.Close()
	release(folder)
	return os.Remove(path)
}

// grow raises the bound of a folder that has one.
func (s *shared) grow(_ context.Context, id string, size int64) error {
	if err := s.same(); err != nil || !s.enforces() {
		return err
	}
	folder, err := os.Open(s.path(id))
	if err != nil {
		return err
	}
	defer folder.Close()
	project, known, err := enclosed(folder)
	wanted := uint64(max(size, 0)) // #nosec G115 -- not negative
	if err != nil || project == 0 || known.Hard*quotaUnit >= wanted {
		return err
	}
	return setLimit(folder, project, size)
}

func (s *shared) open(id string) (*os.File, error) {
	if err := s.same(); err != nil {
		return nil, err
	}
	return mounts.Clone(s.path(id))
}

// measure reads the quota of a folder with a bound. It walks a folder without one, unless a node has done so within
// measuredEvery.
func (s *shared) measure(ctx context.Context, id string) (Measure, error) {
	folder, err := os.Open(s.path(id))
	if err != nil {
		return Measure{}, err
	}
	defer folder.Close()
	if project, known, err := enclosed(folder); s.enforces() && err == nil && project != 0 {
		used, size := int64(known.Space), int64(known.Hard*quotaUnit) // #nosec G115 -- sizes
		return Measure{UsedBytes: used, SizeBytes: size}, nil
	}
	mark := s.path(measuredMark + id)
	if last, err := os.Stat(mark); err == nil && time.Since(last.ModTime()) < measuredEvery {
		return Measure{}, errMeasured
	}
	now := time.Now()
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return Measure{}, fmt.Errorf("measure volume %s: %w", id, err)
	}
	_ = os.Chtimes(mark, now, now) // an empty file that is written empty keeps its time
	used, whole := walk(ctx, s.path(id), walkLimit)
	found := Measure{UsedBytes: used}
	if !whole {
		found.Message = fmt.Sprintf("it has more than could be counted within %s", walkLimit)
	}
	return found, nil
}

// remove takes the folder's name first, so that no member is given half a volume.
func (s *shared) remove(_ context.Context, id string) error {
	if err := s.same(); err != nil {
		return err
	}
	s.sweep(id + "-")
	gone := s.path(gonePrefix + id)
	if err := os.Rename(s.path(id), gone); err != nil && !errors.Is(err, os.ErrNotExist) {
		if err = os.RemoveAll(gone); err == nil { // of an earlier try
			err = os.Rename(s.path(id), gone)
		}
		if err != nil {
			return fmt.Errorf("delete volume %s: %w", id, err)
		}
	}
	if folder, err := os.Open(gone); err == nil {
		release(folder)
		_ = folder.Close()
	}
	if err := errors.Join(os.RemoveAll(gone), os.RemoveAll(s.path(measuredMark+id))); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	return nil
}

func (s *shared) left(id string) ([]string, error) { return named(s.dir, id) }

// named lists what of a volume is in the folder of its storage, whatever is before and behind its id in the name.
func named(dir, id string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("find volume %s: %w", id, err)
	}
	for _, entry := range entries {
		if isOf(entry.Name(), id) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// isOf reports whether a name is one that a volume has or had, such as .new-ID-123 and ID.img.
func isOf(name, id string) bool {
	before, behind, found := strings.Cut(name, id)
	return found && (before == "" || before[0] == '.') && (behind == "" || strings.ContainsRune(".- ", rune(behind[0])))
}
