package logs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

const (
	// boundEvery is how often the bound of the node is kept. Between two times each process keeps its own.
	boundEvery = 30 * time.Second
	// lastKept is how long the last lines of a removed member wait for the task that reports them.
	lastKept = 7 * 24 * time.Hour
)

// KeepBound keeps the node's bound until ctx ends.
func (s *Store) KeepBound(ctx context.Context) error {
	tick := time.NewTicker(boundEvery)
	defer tick.Stop()
	for {
		if err := s.Trim(); err != nil {
			s.options.Log.WarnContext(ctx, "the logs' bound is not kept", "error", err)
		}
		s.dropOld()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// held is what one process holds on the disk.
type held struct {
	member, process string
	files           []heldFile // by their order; the last one is being written
	total           int64
}

type heldFile struct {
	name string
	size int64
}

// Trim deletes the oldest lines of those processes that hold most, until all lines together are within the node's
// bound. The file that a process writes to is left.
func (s *Store) Trim() error {
	all, err := s.held()
	total := int64(0)
	for _, one := range all {
		total += one.total
	}
	for total > s.options.NodeBytes {
		var most *held
		for _, one := range all {
			if len(one.files) > 1 && (most == nil || one.total > most.total) {
				most = one
			}
		}
		if most == nil {
			return err
		}
		oldest := most.files[0]
		err = errors.Join(err, s.remove(most, oldest.name))
		most.files = most.files[1:]
		most.total -= oldest.size
		total -= oldest.size
	}
	return err
}

func (s *Store) held() (all []*held, err error) {
	for _, known := range roster.List(filepath.Join(s.options.StateDir, roster.Dir)) {
		folder, folderErr := s.folder(known.MemberID)
		if folderErr != nil {
			continue // removed meanwhile, or without logs
		}
		list, listErr := names(folder)
		for _, name := range list {
			if one := heldBy(folder, name); one != nil {
				one.member = known.MemberID
				all = append(all, one)
			}
		}
		err = errors.Join(err, listErr, folder.Close())
	}
	return all, err
}

func heldBy(folder *os.Root, name string) *held {
	dir, err := folder.Open(name)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(4 * nodelogs.MaxProcesses)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	one := &held{process: name}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		one.files = append(one.files, heldFile{entry.Name(), info.Size()})
		one.total += info.Size()
	}
	return one
}

func (s *Store) remove(of *held, name string) error {
	folder, err := s.folder(of.member)
	if errors.Is(err, ErrNoMember) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Remove(filepath.Join(of.process, name)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
