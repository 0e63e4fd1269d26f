// Package volume holds what is true of volumes: files that outlast members, the storage that nodes serve them from, and
// who may use which. See docs/adr/0119.
package volume

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Kind is how far the files of a storage reach.
type Kind string

// The kinds.
const (
	// Shared is a file system that every node which serves it mounts: members on any of them use a volume at once.
	Shared Kind = "SHARED"
	// Local is a node's own disk: a volume is on the node of its first use, and only members there use it.
	Local Kind = "LOCAL"
)

// Values lists every Kind as it is stored and published.
func (Kind) Values() []string { return []string{string(Shared), string(Local)} }

// Status is the state of a volume.
type Status string

// The states of a volume.
const (
	// Ready is a volume that instances may use. Its files come to be with the first member.
	Ready Status = "READY"
	// Deleting is one that takes no more users, until a node has proved that nothing is left of it.
	Deleting Status = "DELETING"
	// Deleted is the end.
	Deleted Status = "DELETED"
)

// Values lists every Status as it is stored and published.
func (Status) Values() []string { return []string{string(Ready), string(Deleting), string(Deleted)} }

// Access is what members may do with a volume.
type Access string

// The kinds of access.
const (
	ReadWrite Access = "READ_WRITE"
	ReadOnly  Access = "READ_ONLY"
)

// Values lists every Access as it is published.
func (Access) Values() []string { return []string{string(ReadWrite), string(ReadOnly)} }

// Bounds of volumes.
const (
	// MaxSlots bounds the volumes of an instance.
	MaxSlots = 8
	// MaxSizeGiB bounds a volume: 1 PiB.
	MaxSizeGiB = 1 << 20
	// MaxStorages bounds what a node serves.
	MaxStorages = 16
	// MaxReason is the longest reason of a node, in bytes.
	MaxReason = 500
)

// namePattern is the name of a storage, a storage class or a volume.
var namePattern = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)

// NameRule says in words what a name is.
const NameRule = "must be 1 to 40 lower-case letters, digits and hyphens, starting with a letter and not ending with " +
	"a hyphen"

// ValidName reports whether a text names a storage, a storage class or a volume.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// Storage is what a node serves volumes from, as its agent reports it.
type Storage struct {
	// Name is what the node's operator calls it; the storage class of the same name is served by it.
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// TotalBytes and FreeBytes are its file system's: whole numbers, which the API has as floats.
	TotalBytes float64 `json:"totalBytes"`
	FreeBytes  float64 `json:"freeBytes"`
	// SizeEnforced is true where a volume cannot hold more than its size; else its use is measured and shown.
	SizeEnforced bool `json:"sizeEnforced"`
	// Reason says why the node offers no volumes of it; empty where it does.
	Reason string `json:"reason"`
}

// Serves returns why a node that reports the storages serves no volume of a class: empty where it does. Nil storages
// are those of a node that has reported none.
func Serves(storages []Storage, class string, kind Kind) string {
	for _, one := range storages {
		switch {
		case one.Name != class:
		case one.Kind != kind:
			return fmt.Sprintf("it serves %q as %s, and the storage class is %s", class, one.Kind, kind)
		case one.Reason != "":
			return one.Reason
		default:
			return ""
		}
	}
	return fmt.Sprintf("it serves no storage %q", class)
}

// Mount is a volume of a member, as its tasks carry it to the node.
type Mount struct {
	ID ids.ID `json:"id"`
	// Storage is the node's name for what it lies in.
	Storage string `json:"storage"`
	// Path is where the member has it.
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly"`
	// SizeBytes is how much it is to hold: a whole number, which the API has as a float.
	SizeBytes float64 `json:"sizeBytes"`
}

// reserved are folders of a member that the platform mounts things in.
var reserved = []string{"/proc", "/sys", "/dev", "/run", "/scratch", "/tmp", "/etc", "/usr", "/bin", "/sbin", "/lib",
	"/lib64", "/boot"}

// PathRule says in words where a volume may be mounted.
const PathRule = "must be an absolute path of at most 200 characters without empty, . or .. parts, and not / nor one " +
	"of the system's folders"

// pathPattern is an absolute path of parts that need no quoting.
var pathPattern = regexp.MustCompile(`^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$`)

// ValidPath reports whether a volume may be mounted there.
func ValidPath(path string) bool {
	if len(path) > 200 || !pathPattern.MatchString(path) {
		return false
	}
	for _, dir := range reserved {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return false
		}
	}
	return true
}

// Binding is a volume that an instance uses, in a slot of its manifest.
type Binding struct {
	Slot     string `json:"slot"`
	VolumeID ids.ID `json:"volumeId"`
	// Path, ReadOnly and Components are the slot's: where the members of which components have it; none for all.
	Path       string   `json:"path"`
	ReadOnly   bool     `json:"readOnly"`
	Components []string `json:"components"`
}

// Of reports whether members of a component have the volume.
func (b Binding) Of(component string) bool {
	return len(b.Components) == 0 || slices.Contains(b.Components, component)
}

// Equal reports whether two bindings are the same.
func (b Binding) Equal(other Binding) bool {
	return b.Slot == other.Slot && b.VolumeID == other.VolumeID && b.Path == other.Path &&
		b.ReadOnly == other.ReadOnly &&
		slices.Equal(b.Components, other.Components)
}

// Of returns the volumes that members of a component have.
func Of(bound []Binding, component string) (out []Binding) {
	for _, one := range bound {
		if one.Of(component) {
			out = append(out, one)
		}
	}
	return out
}

// IDs returns the volumes of bindings.
func IDs(bound []Binding) []ids.ID {
	out := make([]ids.ID, len(bound))
	for i, one := range bound {
		out[i] = one.VolumeID
	}
	return out
}
