// Package storage is what the local nodes of a demonstration serve volumes from: a folder of the machine as the file
// system that all of them share, and a folder of each as its own disk.
package storage

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/rig/lab"
)

// The names of the storages, and so of their classes.
const (
	Shared = "shared"
	Local  = "local"
)

// sharedPath is where a node sees the shared file system.
const sharedPath = "/srv/shared"

// own is the folder of a node's own disk, in its state.
const own = "volumes"

// Prepare makes the shared file system of an installation and the disk of a node, whose state is a folder of the
// machine, and returns how the node mounts what is shared.
func Prepare(installation, state string) (lab.Bind, error) {
	shared := filepath.Join(installation, "storage", Shared)
	return lab.Bind{Source: shared, Target: sharedPath}, errors.Join(os.MkdirAll(shared, 0o700), os.MkdirAll(filepath.Join(state, own), 0o700))
}

// Flags returns the flags of a node's agent, which sees the node's state at a path.
func Flags(state string) []string {
	return []string{"--storage", Shared + "=shared:" + sharedPath, "--storage", Local + "=local:" + filepath.Join(state, own)}
}
