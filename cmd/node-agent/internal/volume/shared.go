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

// The names beside the volumes of a storage. What is being made or deleted is no volume by its name.
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

	mu     sync.Mutex
	device uint64 // of the file system that the storage was first tried on
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
		return errors.New("another file system lies at its folder than when the agent started")
	}
	return nil
}

func (s *shared) probe(_ context.Context, users string) error {
	if err := s.same(); err != nil {
		return err
	}
	try, err := os.MkdirTemp(s.dir, newPrefix+"probe-")
	if err != nil {
		return fmt.Errorf("it is not writable: %w", err)
	}
	defer os.Remove(try)
	tree, err := mounts.Clone(try)
	return probeMount(tree, err, users)
}

func (*shared) enforces() bool { return false }

// make makes the folder, which is whole as soon as it is there.
func (s *shared) make(_ context.Context, id string, _ int64) error {
	if err := s.same(); err != nil {
		return err
	}
	err := os.Mkdir(s.path(id), 0o755)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(s.path(id), 0o755)
	}
	if err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	return nil
}

func (*shared) grow(context.Context, string, int64) error { return nil }

func (s *shared) open(id string) (*os.File, error) {
	if err := s.same(); err != nil {
		return nil, err
	}
	return mounts.Clone(s.path(id))
}

// measure walks the folder, unless another node has done so since the last time.
func (s *shared) measure(ctx context.Context, id string) (Measure, error) {
	if _, err := os.Lstat(s.path(id)); err != nil {
		return Measure{}, err
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
	gone := s.path(gonePrefix + id)
	if err := os.Rename(s.path(id), gone); err != nil && !errors.Is(err, os.ErrNotExist) {
		if err = os.RemoveAll(gone); err == nil { // of an earlier try
			err = os.Rename(s.path(id), gone)
		}
		if err != nil {
			return fmt.Errorf("delete volume %s: %w", id, err)
		}
	}
	if err := errors.Join(os.RemoveAll(gone), os.RemoveAll(s.path(measuredMark+id))); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	return nil
}

func (s *shared) left(id string) ([]string, error) { return named(s.dir, id) }

// named lists what of a volume is in the folder of its storage, whatever stands before and behind its id.
func named(dir, id string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for volume %s: %w", id, err)
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
