package volume

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/mounts"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/spaces"
)

// probeID is the volume that a storage is tried with.
const probeID = "vol_probe"

// errAway says that a storage did not answer in time. It is not tried again before it has.
var errAway = errors.New("its file system does not answer")

// try finds out what a storage is now, in bounded time.
func (s *Store) try(ctx context.Context, storage Storage) State {
	found := State{Name: storage.Name, Kind: storage.Kind}
	s.mu.Lock()
	stuck := s.stuck[storage.Name]
	s.stuck[storage.Name] = true
	s.mu.Unlock()
	if stuck {
		found.Reason = errAway.Error()
		return found
	}
	tried := make(chan State, 1)
	go func() {
		tried <- s.tryNow(ctx, storage)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stuck[storage.Name] = false
	}()
	bounded, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	select {
	case found = <-tried:
	case <-bounded.Done():
		found.Reason = errAway.Error()
	}
	return found
}

func (s *Store) tryNow(ctx context.Context, storage Storage) State {
	found := State{Name: storage.Name, Kind: storage.Kind}
	var at unix.Statfs_t
	err := s.tryAll(ctx, storage)
	if err == nil {
		err = unix.Statfs(storage.Dir, &at)
	}
	if err != nil {
		found.Reason = storage.hide(err).Error()
		return found
	}
	found.TotalBytes = int64(at.Blocks) * at.Bsize // #nosec G115 -- a disk's size
	found.FreeBytes = int64(at.Bavail) * at.Bsize  // #nosec G115 -- a disk's size
	found.SizeEnforced = s.kept[storage.Name].enforces()
	return found
}

// tryAll has the storage do all that volumes need.
func (s *Store) tryAll(ctx context.Context, storage Storage) error {
	if os.Geteuid() != 0 {
		return errors.New("the agent is not root")
	}
	if err := errors.Join(os.MkdirAll(storage.Dir, 0o700), os.Chmod(storage.Dir, 0o700)); err != nil {
		return fmt.Errorf("its folder: %w", err)
	}
	space, err := spaces.Open(idrange.Range{First: idrange.DefaultFirst}, false)
	if err != nil {
		return err
	}
	defer space.Close()
	return s.kept[storage.Name].probe(ctx, space.Path("user"))
}

// probeMount maps the ids of a volume as they are mapped for a member.
func probeMount(tree *os.File, err error, users string) error {
	if err != nil {
		return err
	}
	defer tree.Close()
	return mounts.Map(tree, users, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}
