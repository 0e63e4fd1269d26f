// Package storage is what the local nodes of a demonstration serve volumes from: a folder of the machine as the file
// system that all of them share, and a folder of each as its own disk.
package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/Khan/genqlient/graphql"

	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
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
	return lab.Bind{Source: shared, Target: sharedPath}, errors.Join(os.MkdirAll(shared, 0o700),
		os.MkdirAll(filepath.Join(state, own), 0o700))
}

// Flags returns the flags of a node's agent, which sees the node's state at a path.
func Flags(state string) []string {
	return []string{"--storage", Shared + "=shared:" + sharedPath, "--storage",
		Local + "=local:" + filepath.Join(state, own)}
}

// classes are the storage classes of a demonstration.
var classes = []gql.CreateStorageClassInput{
	{Name: Shared, Kind: gql.StorageKindShared, Title: "Shared file system",
		Description: "Files that members on all nodes share."},
	{Name: Local, Kind: gql.StorageKindLocal, Title: "A node's own disk",
		Description: "Fast, of a fixed size, and lost with its node."},
}

// Seed returns what makes the storage classes of a demonstration that are not there.
func Seed(operator graphql.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		known, err := gql.ListStorageClasses(ctx, operator)
		if err != nil {
			return err
		}
		for _, class := range classes {
			if slices.ContainsFunc(known.StorageClasses, func(c gql.StorageClass) bool {
				return c.Name == class.Name
			}) {
				continue
			}
			if _, err := gql.CreateStorageClass(ctx, operator, class); err != nil {
				return err
			}
		}
		return nil
	}
}
