package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

// Tombstone says that an operation, which was not known when it was canceled, is never begun by an attempt up to its
// own.
type Tombstone struct {
	Attempt int
	At      time.Time
}

func (j *Journal) tombstone(id string) string { return filepath.Join(j.dir, "tombstones", id) }

// Bury stores a tombstone. It is on disk when Bury returns.
func (j *Journal) Bury(id string, attempt int) error {
	return writeDurably(j.tombstone(id), strconv.AppendInt(nil, int64(attempt), 10))
}

// Exhume deletes a tombstone. A missing one is not an error.
func (j *Journal) Exhume(id string) error {
	if err := os.Remove(j.tombstone(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete tombstone: %w", err)
	}
	return nil
}

// Tombstones returns those that are stored, by operation.
func (j *Journal) Tombstones() (map[string]Tombstone, error) {
	files, err := os.ReadDir(filepath.Join(j.dir, "tombstones"))
	if err != nil {
		return nil, fmt.Errorf("list tombstones: %w", err)
	}
	all := make(map[string]Tombstone)
	for _, file := range files {
		if !wire.IDPattern.MatchString(file.Name()) {
			continue
		}
		one, err := j.readTombstone(file)
		if err != nil {
			return nil, fmt.Errorf("read tombstone of %s: %w", file.Name(), err)
		}
		all[file.Name()] = one
	}
	return all, nil
}

func (j *Journal) readTombstone(file fs.DirEntry) (Tombstone, error) {
	raw, err := os.ReadFile(j.tombstone(file.Name()))
	if err != nil {
		return Tombstone{}, err
	}
	attempt, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return Tombstone{}, err
	}
	info, err := file.Info()
	if err != nil {
		return Tombstone{}, err
	}
	return Tombstone{Attempt: attempt, At: info.ModTime()}, nil
}
