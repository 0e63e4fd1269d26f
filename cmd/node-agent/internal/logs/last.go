package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
)

const (
	// lastDir holds, in the state directory, the last lines of members that are being removed.
	lastDir = "last-lines"
	// maxLast bounds the last lines of a member, in bytes of JSON: they are a part of a task's result.
	maxLast = 96 << 10
	// lastTail bounds the last lines of a process before their bytes are counted.
	lastTail = 500
)

// Keep keeps the last lines of a member, which is about to be removed, until Drop.
func (s *Store) Keep(ctx context.Context, memberID string) error {
	found, err := s.Processes(memberID)
	if errors.Is(err, ErrNoMember) || err == nil && len(found) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	kept, err := s.Last(memberID)
	if err != nil {
		return err
	}
	for _, process := range found {
		last, readErr := s.lastOf(ctx, memberID, process, maxLast/len(found))
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		kept = join(kept, last)
	}
	if mkdirErr := os.MkdirAll(filepath.Join(s.options.StateDir, lastDir), 0o700); mkdirErr != nil {
		return errors.Join(err, mkdirErr)
	}
	return errors.Join(err, durable.WriteJSON(s.lastPath(memberID), kept))
}

func (s *Store) lastPath(memberID string) string {
	return filepath.Join(s.options.StateDir, lastDir, memberID+".json")
}

// lastOf reads the last lines of a process within a bound in bytes of JSON.
func (s *Store) lastOf(ctx context.Context, memberID, process string, limit int) (Last, error) {
	last := Last{Process: process, Lines: []Line{}}
	err := s.Read(ctx, Query{Member: memberID, Process: process, Tail: lastTail}, func(line Line) error {
		if !line.Mark {
			last.Lines = append(last.Lines, line)
		}
		return nil
	})
	if err != nil {
		return last, err
	}
	size, from := 0, len(last.Lines)
	for ; from > 0; from-- {
		raw, err := json.Marshal(last.Lines[from-1])
		if err != nil {
			return last, fmt.Errorf("keep the last lines: %w", err)
		}
		if size += len(raw) + 1; size > limit-128 {
			break
		}
	}
	last.Lines = last.Lines[from:]
	last.Earlier = len(last.Lines) > 0 && last.Lines[0].First() > 1
	return last, nil
}

// join keeps, of each process, what goes further: a removal that was broken off may have deleted some of the lines.
func join(kept []Last, one Last) []Last {
	at := slices.IndexFunc(kept, func(old Last) bool { return old.Process == one.Process })
	if at < 0 {
		return append(kept, one)
	}
	if old := kept[at]; end(one) > end(old) || end(one) == end(old) && len(one.Lines) > len(old.Lines) {
		kept[at] = one
	}
	return kept
}

func end(l Last) int64 {
	if len(l.Lines) == 0 {
		return 0
	}
	return l.Lines[len(l.Lines)-1].Number
}

// Last returns the last lines of a member that was removed, or is being removed; empty without any.
func (s *Store) Last(memberID string) ([]Last, error) {
	if !memberForm.MatchString(memberID) {
		return nil, nil
	}
	raw, err := os.ReadFile(s.lastPath(memberID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var kept []Last
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil {
		return nil, fmt.Errorf("read the last lines: %w", err)
	}
	return kept, nil
}

// Drop deletes the last lines of a member whose removal is reported.
func (s *Store) Drop(memberID string) {
	if memberForm.MatchString(memberID) {
		_ = os.Remove(s.lastPath(memberID))
	}
}

// dropOld deletes what an agent that was killed in the middle has not dropped.
func (s *Store) dropOld() {
	files, _ := filepath.Glob(filepath.Join(s.options.StateDir, lastDir, "*.json"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) > lastKept {
			_ = os.Remove(file)
		}
	}
}
