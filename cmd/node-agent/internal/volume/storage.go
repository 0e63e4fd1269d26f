package volume

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// The kinds of storage, as the platform names them.
const (
	// Shared lies on a file system that every node with a storage of the name mounts.
	Shared = "SHARED"
	// Local lies on the node's own disk.
	Local = "LOCAL"
)

// maxStorages bounds the storages of a node.
const maxStorages = 16

// Storage is where a node keeps volumes. The platform knows it by its name alone.
type Storage struct{ Name, Kind, Dir string }

// State is a storage as it is reported to the platform.
type State struct {
	Name, Kind            string
	TotalBytes, FreeBytes int64
	// SizeEnforced says that a volume cannot grow beyond its size.
	SizeEnforced bool
	// Reason says why the storage is not offered; empty where it is.
	Reason string
}

// Volume is a volume as a member uses it.
type Volume struct {
	ID, Storage string
	// Path is the folder of the member that it is mounted over.
	Path      string
	ReadOnly  bool
	SizeBytes int64
}

var (
	nameForm = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)
	idForm   = regexp.MustCompile(`^vol_[0-9a-z]{1,64}$`)
	kinds    = map[string]string{"shared": Shared, "local": Local}
)

// Parse reads storages as they are given to the agent, each NAME=KIND:DIR.
func Parse(given []string) (storages []Storage, err error) {
	if len(given) > maxStorages {
		return nil, fmt.Errorf("storage: %d are more than %d", len(given), maxStorages)
	}
	known := map[string]bool{}
	for _, text := range given {
		name, rest, _ := strings.Cut(text, "=")
		kind, dir, _ := strings.Cut(rest, ":")
		switch {
		case !nameForm.MatchString(name):
			return nil, fmt.Errorf(
				"storage: %q is not NAME=KIND:DIR with a name of 1 to 40 lower-case letters, digits and hyphens", text)
		case kinds[kind] == "":
			return nil, fmt.Errorf("storage: %q has the kind %q, which is not shared or local", text, kind)
		case !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || dir == "/":
			return nil, fmt.Errorf("storage: %q names %q, which is not an absolute, clean path of a folder", text, dir)
		case known[name] || known[dir]:
			return nil, fmt.Errorf("storage: %q has the name or the folder of an earlier one", text)
		}
		known[name], known[dir] = true, true
		storages = append(storages, Storage{Name: name, Kind: kinds[kind], Dir: dir})
	}
	return storages, nil
}

// hidden are the folders of a member that other mounts cover, and those that the agent keeps for itself.
var hidden = []string{"/proc", "/sys", "/dev", "/run", "/tmp", "/" + rootfs.ScratchDir, "/" + rootfs.MemberDir}

// within reports whether a path is a folder or lies in it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// checkPaths refuses volumes that cannot be mounted where they are to be.
func checkPaths(volumes []Volume) error {
	for i, one := range volumes {
		if !filepath.IsAbs(one.Path) || filepath.Clean(one.Path) != one.Path || one.Path == "/" {
			return unavailable(one, "%q is not an absolute, clean path of a folder", one.Path)
		}
		for _, folder := range hidden {
			if within(one.Path, folder) {
				return unavailable(one, "nothing can be mounted at %s: %s is reserved for the node", one.Path, folder)
			}
		}
		for _, other := range volumes[:i] {
			if within(one.Path, other.Path) || within(other.Path, one.Path) {
				return unavailable(one, "%s and %s of volume %s overlap: choose separate folders",
					one.Path, other.Path, other.ID)
			}
		}
	}
	return nil
}

func unavailable(volume Volume, format string, args ...any) *wire.Error {
	return wire.Errorf(wire.CodeVolumeUnavailable, "volume %s of storage %s: %s", volume.ID, volume.Storage,
		fmt.Sprintf(format, args...))
}
