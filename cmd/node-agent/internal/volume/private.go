package volume

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/mounts"
)

// Private returns a mount of a volume that is nowhere, for the agent itself, and makes the volume when it is not there.
// Ids are the volume's own. It ends with the last descriptor of it.
func (s *Store) Private(ctx context.Context, volume Volume, write bool) (*os.File, error) {
	kept, err := s.backendOf(volume)
	if err == nil {
		err = s.alive(volume)
	}
	if err != nil {
		return nil, err
	}
	tree, err := kept.open(volume.ID)
	if errors.Is(err, os.ErrNotExist) {
		if err := s.Make(ctx, []Volume{volume}); err != nil {
			return nil, err
		}
		tree, err = kept.open(volume.ID)
	}
	if err != nil {
		return nil, unavailable(volume, "%v", s.hide(volume, err))
	}
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC)
	if !write {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	if err := mounts.Set(tree, attributes); err != nil {
		_ = tree.Close()
		return nil, unavailable(volume, "%v", s.hide(volume, err))
	}
	return tree, nil
}

// maxDeleted bounds the ids of deleted volumes that are remembered.
const maxDeleted = 10_000

// deleted remembers that a volume was deleted here. Ids never come back, so that a request which was on its way
// meanwhile must not make the volume again. With s.mu held.
func (s *Store) deleted(id string) {
	if s.gone == nil || len(s.gone) >= maxDeleted {
		s.gone = map[string]bool{}
	}
	s.gone[id] = true
}

// alive refuses a volume that was deleted here.
func (s *Store) alive(volume Volume) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone[volume.ID] {
		return unavailable(volume, "it was deleted")
	}
	return nil
}
