// Package roster keeps what a node notes of each member's sandbox, a file in the member's directory.
package roster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
)

const (
	// Dir holds a directory for each member, in the agent's state directory.
	Dir = "members"
	// File is a member's record, in the member's directory.
	File = "sandbox.json"
)

// Record is what is noted of a member's sandbox.
type Record struct {
	MemberID   string `json:"memberId"`
	InstanceID string `json:"instanceId"`
	Epoch      string `json:"epoch"`
	Mode       string `json:"mode"`
	// InitPID and InitStart identify the init among the node's processes.
	InitPID   int    `json:"initPid"`
	InitStart uint64 `json:"initStart"`
	// PIDNamespace is the inode of the member's PID namespace while its init lives.
	PIDNamespace uint64 `json:"pidNamespace,omitempty"`
	// Class is that of its walls.
	Class string `json:"class,omitempty"`
	// Root is the version of the curated root, and Group the cgroup.
	Root  string `json:"root,omitempty"`
	Group string `json:"group,omitempty"`
	// AllocationID and Devices, by UUID, are whose devices these are.
	AllocationID string   `json:"allocationId,omitempty"`
	Devices      []string `json:"devices,omitempty"`
	// Volumes are mounted in it, by id.
	Volumes   []string  `json:"volumes,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}

// Alive reports whether the member's init lives.
func (r Record) Alive() bool { return procfs.Running(r.InitPID, r.InitStart) }

// Load returns the record of a member's directory; nil when the member has no sandbox.
func Load(dir string) (*Record, error) {
	raw, err := os.ReadFile(filepath.Join(dir, File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read sandbox record: %w", err)
	}
	var known Record
	if err := json.Unmarshal(raw, &known); err != nil {
		return nil, fmt.Errorf("read sandbox record: %w", err)
	}
	return &known, nil
}

// Read returns the record of a member's directory; nil when it does not exist or cannot be read.
func Read(dir string) *Record {
	known, err := Load(dir)
	if err != nil {
		return nil
	}
	return known
}

// Store writes the record of a member's directory.
func Store(dir string, known Record) error { return durable.WriteJSON(filepath.Join(dir, File), known) }

// Remove deletes a member's directory, also folders in it that their owner may not enter, which needs root otherwise.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
			if entry != nil && entry.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove the member's directory: %w", err)
	}
	return nil
}

// List returns the records in a directory of members, by member.
func List(members string) (list []Record) {
	files, _ := filepath.Glob(filepath.Join(members, "*", File))
	for _, file := range files {
		if known := Read(filepath.Dir(file)); known != nil {
			list = append(list, *known)
		}
	}
	return list
}

// Sharing returns the members below a state directory whose init is in the calling process's own network: an agent that
// gave them none has started them.
func Sharing(stateDir string) (ids []string) {
	files, _ := filepath.Glob(filepath.Join(stateDir, Dir, "*", File))
	own := procfs.Namespace(os.Getpid(), "net")
	for _, file := range files {
		known := Read(filepath.Dir(file))
		if known != nil && known.Alive() && procfs.Namespace(known.InitPID, "net") == own {
			ids = append(ids, known.MemberID)
		}
	}
	return ids
}
