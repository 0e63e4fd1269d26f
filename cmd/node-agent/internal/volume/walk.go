package volume

import (
	"context"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// walkLimit bounds the time of a walk, which costs the file server more than the node.
	walkLimit = time.Minute
	// maxLinked bounds the files with several names that are remembered.
	maxLinked = 100_000
	// blockSize is the unit of a file's blocks, whatever the file system's own is.
	blockSize = 512
)

// walk counts what the files of a folder take on the disk, each once, and reports whether it saw all of it in time.
func walk(ctx context.Context, dir string, limit time.Duration) (used int64, whole bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	linked := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			return nil //nolint:nilerr // it vanished meanwhile
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // it vanished meanwhile
		}
		stat, known := info.Sys().(*syscall.Stat_t)
		if !known || linked[stat.Ino] {
			return nil
		}
		if stat.Nlink > 1 && !info.IsDir() && len(linked) < maxLinked {
			linked[stat.Ino] = true
		}
		used += stat.Blocks * blockSize
		return nil
	})
	return used, err == nil && ctx.Err() == nil
}
