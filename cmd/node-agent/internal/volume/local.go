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

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/loop"
)

const (
	imageSuffix = ".img"
	// probeSize is the size of the image that a storage is tried with, in bytes.
	probeSize = 16 << 20
	// detachPatience is how long the kernel may take to detach the device of a volume whose last mount has just ended,
	// and growPatience how long one that is to grow is waited for.
	detachPatience, growPatience = 5 * time.Second, time.Second
)

// local keeps volumes as images on the node's disk, each with a file system of its own.
type local struct {
	dir string

	mu    sync.Mutex
	tried bool
	// idle are measures of volumes that nothing has mounted since.
	idle map[string]Measure
}

func (l *local) path(id string) string { return filepath.Join(l.dir, id+imageSuffix) }

// probe makes an image and mounts it, once; later only the folder is looked at.
func (l *local) probe(ctx context.Context, users string) error {
	l.mu.Lock()
	tried := l.tried
	l.mu.Unlock()
	if tried {
		return unix.Access(l.dir, unix.W_OK)
	}
	l.sweep()
	image, err := build(ctx, l.dir, probeID, probeSize)
	if err != nil {
		return err
	}
	defer image.Close()
	defer os.Remove(image.Name())
	tree, err := mountAt(image.Name())
	if err := probeMount(tree, err, users); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = true
	return nil
}

// sweep deletes images that a killed agent left incomplete. An image that is being created is locked.
func (l *local) sweep() {
	left, _ := filepath.Glob(filepath.Join(l.dir, newPrefix+"*"))
	for _, path := range left {
		if image, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			if lock(image, unix.LOCK_EX|unix.LOCK_NB) == nil {
				_ = os.Remove(path)
			}
			_ = image.Close()
		}
	}
}

func (*local) enforces() bool { return true }

// make builds the image beside its place and gives it its name when it is whole.
func (l *local) make(ctx context.Context, id string, size int64) error {
	if _, err := os.Lstat(l.path(id)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	image, err := build(ctx, l.dir, id, size)
	if err != nil {
		return err
	}
	defer image.Close()
	defer os.Remove(image.Name())
	if err := os.Link(image.Name(), l.path(id)); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("name the image: %w", err)
	}
	return durable.SyncDir(l.dir)
}

// hold opens an image and locks it against others that attach or delete it. The lock is of another open file than the
// one that the loop device keeps.
func (l *local) hold(id string) (image, held *os.File, err error) {
	if held, err = os.OpenFile(l.path(id), os.O_RDONLY|unix.O_NOFOLLOW, 0); err != nil {
		return nil, nil, err
	}
	if err = lock(held, unix.LOCK_EX); err == nil {
		image, err = loop.Open(l.path(id))
	}
	if err != nil {
		_ = held.Close()
		return nil, nil, err
	}
	return image, held, nil
}

func (l *local) open(id string) (*os.File, error) {
	image, held, err := l.hold(id)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	defer image.Close()
	l.mu.Lock()
	delete(l.idle, id)
	l.mu.Unlock()
	return mount(image)
}

// grow enlarges the image, its device and its file system, as far as each is smaller than wanted: an earlier try may
// have ended between them.
func (l *local) grow(ctx context.Context, id string, size int64) error {
	image, held, err := l.hold(id)
	if err != nil {
		return err
	}
	defer held.Close()
	defer image.Close()
	if err := reserve(image, size); err != nil {
		return err
	}
	if have, err := superblockBytes(image); err != nil || have >= whole(size) {
		return err
	}
	err = growMounted(image, size)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	if err := awaitDetached(ctx, image, growPatience); err != nil {
		return fmt.Errorf("it can grow only when no member has it, as the agent lacks CAP_SYS_RESOURCE: %w", err)
	}
	return growIdle(ctx, image, held)
}

// measure reads the file system, which it mounts for that, unless the volume was idle since it was last read.
func (l *local) measure(_ context.Context, id string) (found Measure, err error) {
	image, held, err := l.hold(id)
	if err != nil {
		return found, err
	}
	defer held.Close()
	defer image.Close()
	device, err := loop.Find(image)
	if err != nil {
		return found, err
	}
	busy := device.File != nil
	if busy {
		defer device.Close()
	}
	l.mu.Lock()
	known, idle := l.idle[id]
	l.mu.Unlock()
	if idle && !busy {
		return known, nil
	}
	size, err := superblockBytes(image)
	if err != nil {
		return found, err
	}
	tree, err := mount(image)
	if err != nil {
		return found, err
	}
	defer tree.Close()
	var at unix.Statfs_t
	if err := unix.Fstatfs(int(tree.Fd()), &at); err != nil {
		return found, fmt.Errorf("measure volume %s: %w", id, err)
	}
	found = Measure{SizeBytes: size, UsedBytes: int64(at.Blocks-at.Bfree) * at.Bsize} // #nosec G115 -- a disk's size
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle == nil {
		l.idle = map[string]Measure{}
	}
	delete(l.idle, id)
	if !busy {
		l.idle[id] = found
	}
	return found, nil
}

// remove deletes an image that no device has.
func (l *local) remove(ctx context.Context, id string) error {
	l.sweep()
	image, held, err := l.hold(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close()
	defer image.Close()
	if err := awaitDetached(ctx, image, detachPatience); err != nil {
		return err
	}
	l.mu.Lock()
	delete(l.idle, id)
	l.mu.Unlock()
	if err := errors.Join(os.Remove(l.path(id)), durable.SyncDir(l.dir)); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	return awaitDetached(ctx, image, detachPatience)
}

// awaitDetached waits for the kernel to detach the image's device, and returns ErrBusy when it does not.
func awaitDetached(ctx context.Context, image *os.File, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		device, err := loop.Find(image)
		if err != nil || device.File == nil {
			return err
		}
		name := device.Name()
		_ = device.Close()
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: it is mounted through %s", ErrBusy, name)
		}
	}
}

func (l *local) left(id string) ([]string, error) { return named(l.dir, id) }

// mount attaches an image and mounts its file system nowhere. What of it is mounted already is the same one.
func mount(image *os.File) (*os.File, error) {
	device, err := loop.Attach(image)
	if err != nil {
		return nil, err
	}
	defer device.Close() // the mount keeps it
	if err := device.Fit(image); err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(image.Name()), imageSuffix)
	return device.Mount("ext4", name, [2]string{"errors", "remount-ro"})
}
