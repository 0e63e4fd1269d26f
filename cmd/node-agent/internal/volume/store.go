package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/mounts"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// ErrBusy says that a volume is in use and was not deleted.
var ErrBusy = errors.New("the volume is in use")

// Measure is what is known of a volume that is there.
type Measure struct {
	UsedBytes, SizeBytes int64
	// Message says what keeps the measure from being whole.
	Message string
}

// backend keeps the volumes of one storage.
type backend interface {
	// probe tries what the storage needs; users is the path of a user namespace.
	probe(ctx context.Context, users string) error
	// enforces reports whether a volume cannot grow beyond its size.
	enforces() bool
	// make creates a volume that is missing. What is incomplete is not a volume.
	make(ctx context.Context, id string, size int64) error
	// grow makes a volume that is there as large as it must be; a larger one stays as it is.
	grow(ctx context.Context, id string, size int64) error
	// open returns a mount of a volume that is nowhere yet.
	open(id string) (*os.File, error)
	// measure returns fs.ErrNotExist for one that is not there, and errMeasured for one that another node has measured.
	measure(ctx context.Context, id string) (Measure, error)
	// remove deletes a volume, and returns ErrBusy for one in use.
	remove(ctx context.Context, id string) error
	// left names what of a volume is on the node.
	left(id string) ([]string, error)
}

// Store keeps the volumes of a node. A nil one has no storage. It is for use by many goroutines.
type Store struct {
	order []Storage
	kept  map[string]backend
	log   *slog.Logger

	mu     sync.Mutex
	states map[string]State
	stuck  map[string]bool // storages whose last probe has not come back
	made   chan<- struct{}
	gone   map[string]bool // volumes that were deleted here
}

// Open returns the store of a node's storages, each after a try of all that it needs.
func Open(ctx context.Context, storages []Storage, log *slog.Logger) *Store {
	s := &Store{order: storages, kept: map[string]backend{}, states: map[string]State{}, stuck: map[string]bool{},
		log: log}
	for _, one := range storages {
		s.states[one.Name] = State{Name: one.Name, Kind: one.Kind, Reason: "it was not tested yet"}
		if one.Kind == Local {
			s.kept[one.Name] = &local{dir: one.Dir}
		} else {
			s.kept[one.Name] = &shared{dir: one.Dir}
		}
	}
	s.Probe(ctx)
	return s
}

// Storages lists the storages as they were when they were last tried.
func (s *Store) Storages() (states []State) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.order {
		states = append(states, s.states[one.Name])
	}
	return states
}

// Refuses says why volumes cannot be had here, without a look at them.
func (s *Store) Refuses(volumes []Volume) error {
	if err := checkPaths(volumes); err != nil {
		return err
	}
	for _, one := range volumes {
		if _, err := s.backendOf(one); err != nil {
			return err
		}
	}
	return nil
}

// backendOf returns what keeps a volume. It checks the id before any path is built from it.
func (s *Store) backendOf(volume Volume) (backend, error) {
	if !idForm.MatchString(volume.ID) {
		return nil, wire.Errorf(wire.CodeVolumeUnavailable, "volume %q: it is not an id", volume.ID)
	}
	if s == nil {
		return nil, unavailable(volume, "the node was started without storage")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state, served := s.states[volume.Storage]
	switch {
	case !served:
		return nil, unavailable(volume, "the node has no storage with that name")
	case state.Reason != "":
		return nil, unavailable(volume, "the storage cannot be used: %s", state.Reason)
	}
	return s.kept[volume.Storage], nil
}

// Tell sets the channel that Make sends to when it has created volumes; a send that would block is skipped.
func (s *Store) Tell(made chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = made
}

// Make creates volumes that are missing. A nil store, of a node without storage, refuses them.
func (s *Store) Make(ctx context.Context, volumes []Volume) error {
	if len(volumes) == 0 {
		return nil
	}
	for _, one := range volumes {
		kept, err := s.backendOf(one)
		if err == nil {
			err = s.alive(one)
		}
		if err != nil {
			return err
		}
		if err := kept.make(ctx, one.ID, one.SizeBytes); err != nil {
			return unavailable(one, "%v", s.hide(one, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.made <- struct{}{}:
	default: // nobody asked for it, or is told already
	}
	return nil
}

// Mount returns a mount of a volume that is attached nowhere yet, with its ids mapped by the user namespace at users.
// Its files grant no privilege, and its device nodes do not work. The caller must be able to see the storage.
func (s *Store) Mount(volume Volume, users string) (*os.File, error) {
	kept, err := s.backendOf(volume)
	if err != nil {
		return nil, err
	}
	tree, err := kept.open(volume.ID)
	if err != nil {
		return nil, unavailable(volume, "%v", s.hide(volume, err))
	}
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if volume.ReadOnly {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	if err := mounts.Map(tree, users, attributes); err != nil {
		_ = tree.Close()
		return nil, unavailable(volume, "%v", s.hide(volume, err))
	}
	return tree, nil
}

// Measure returns how large a volume is; nil when it is not there, or another node measures it.
func (s *Store) Measure(ctx context.Context, volume Volume) (*Measure, error) {
	kept, err := s.backendOf(volume)
	if err != nil {
		return nil, err
	}
	found, err := kept.measure(ctx, volume.ID)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errMeasured) {
		return nil, nil
	}
	return &found, s.hide(volume, err)
}

// Grow makes a volume as large as it shall be; one that is not there stays so.
func (s *Store) Grow(ctx context.Context, volume Volume) error {
	kept, err := s.backendOf(volume)
	if err == nil {
		err = kept.grow(ctx, volume.ID, volume.SizeBytes)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return s.hide(volume, err)
}

// Delete deletes a volume, and proves it: nothing of its name is in the storage's folder, and no loop device has it.
// One that was never here is deleted.
func (s *Store) Delete(ctx context.Context, volume Volume) error {
	kept, err := s.backendOf(volume)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.deleted(volume.ID)
	s.mu.Unlock()
	if err := kept.remove(ctx, volume.ID); err != nil {
		return s.hide(volume, err)
	}
	left, err := kept.left(volume.ID)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("volume %s still has %v", volume.ID, left)
	}
	return s.hide(volume, err)
}

// probeLimit bounds a try of a storage: a call to a file server that is away does not return.
const probeLimit = 20 * time.Second

// Probe tries every storage, and reports whether what the node offers has changed.
func (s *Store) Probe(ctx context.Context) (changed bool) {
	if s == nil {
		return false
	}
	for _, one := range s.order {
		now := s.try(ctx, one)
		s.mu.Lock()
		before := s.states[one.Name]
		s.states[one.Name] = now
		s.mu.Unlock()
		changed = changed || before != now
		if before.Reason != now.Reason {
			s.log.InfoContext(ctx, "a storage was tested", "storage", one.Name, "kind", one.Kind, "not_offered_because",
				now.Reason)
		}
	}
	return changed
}
