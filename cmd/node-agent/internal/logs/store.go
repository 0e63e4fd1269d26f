package logs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

// The reasons for which nothing is read.
var (
	ErrNoMember  = &nodelogs.Error{Code: nodelogs.MemberUnknown, Message: "the node has no logs of this member"}
	ErrNoProcess = &nodelogs.Error{Code: nodelogs.ProcessUnknown,
		Message: "the member has started no process by this name"}
	ErrAhead = &nodelogs.Error{Code: nodelogs.CursorAhead, Message: "the cursor is beyond the last line"}
)

var memberForm = regexp.MustCompile(`^[a-z]{1,8}_[0-9a-z]{1,64}$`)

// Options say where lines are and how much of them is kept.
type Options struct {
	// StateDir is the agent's state directory.
	StateDir string
	// Masks has what is hidden.
	Masks *masks.Keeper
	// NodeBytes bounds the lines of all members together, in bytes.
	NodeBytes int64
	Log       *slog.Logger
}

// Store is what one agent's members have printed. Its methods may be called by many goroutines.
type Store struct {
	options Options
	notices *notices
}

// New makes a store.
func New(options Options) (*Store, error) {
	told, err := newNotices()
	if err != nil {
		return nil, err
	}
	return &Store{options: options, notices: told}, nil
}

// Close ends the waiting of followers.
func (s *Store) Close() { s.notices.close() }

// state opens the folder that a member's init writes to.
func (s *Store) state(memberID string) (*os.Root, error) {
	if !memberForm.MatchString(memberID) {
		return nil, ErrNoMember
	}
	state, err := os.OpenRoot(filepath.Join(s.options.StateDir, roster.Dir, memberID, memberinit.DirState))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoMember
	}
	if err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	return state, nil
}

// folder opens the folder of a member's logs.
func (s *Store) folder(memberID string) (*os.Root, error) {
	state, err := s.state(memberID)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	folder, err := state.OpenRoot(memberinit.DirLogs)
	if errors.Is(err, fs.ErrNotExist) { // its init is one of an earlier agent
		return nil, ErrNoMember
	}
	if err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	return folder, nil
}

// Processes returns the names of the processes of a member of which there are lines.
func (s *Store) Processes(memberID string) ([]string, error) {
	folder, err := s.folder(memberID)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return names(folder)
}

// names lists the processes in a folder of logs.
func names(folder *os.Root) ([]string, error) {
	dir, err := folder.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	defer dir.Close()
	found, err := dir.Readdirnames(nodelogs.MaxProcesses)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	found = slices.DeleteFunc(found, func(name string) bool {
		info, err := folder.Lstat(name)
		return err != nil || !info.IsDir() || !nodelogs.IsProcess(name)
	})
	slices.Sort(found)
	return found, nil
}
