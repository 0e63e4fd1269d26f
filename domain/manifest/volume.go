package manifest

import (
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/volume"
)

// VolumeSlot is a place for a volume of the project: files that outlast the members which have them.
type VolumeSlot struct {
	// Name is unique in the manifest.
	Name string `json:"name"`
	// Title and Description are for people.
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	// Components are those whose members have it; none for all.
	Components []string `json:"components,omitempty"`
	// Path is where they have it: absolute, not one of the system's folders, and not below another slot's.
	Path string `json:"path"`
	// Access is volume.ReadWrite, which is the default, or volume.ReadOnly.
	Access volume.Access `json:"access,omitempty"`
	// Required reports whether no instance is launched without it.
	Required bool `json:"required,omitempty"`
}

// Bind returns how an instance uses a volume in the slot.
func (s *VolumeSlot) Bind(b volume.Binding) volume.Binding {
	b.Slot, b.Path, b.ReadOnly = s.Name, s.Path, s.Access == volume.ReadOnly
	b.Components = append([]string{}, s.Components...)
	return b
}

// VolumeSlot finds a slot by its name.
func (m *Manifest) VolumeSlot(name string) (*VolumeSlot, bool) {
	for i := range m.Volumes {
		if m.Volumes[i].Name == name {
			return &m.Volumes[i], true
		}
	}
	return nil, false
}

// volumes checks each slot against the components and the other slots.
func (l *linter) volumes(m *Manifest) {
	l.unique(len(m.Volumes), func(i int) string { return m.Volumes[i].Name }, at("volumes", "name"))
	for i, slot := range m.Volumes {
		for _, key := range slot.Components {
			l.known(m, key, at("volumes", "components")(i))
		}
		if !volume.ValidPath(slot.Path) {
			l.add(fault.BadValue, at("volumes", "path")(i), volume.PathRule)
		}
		for _, other := range m.Volumes[:i] {
			if within(slot.Path, other.Path) || within(other.Path, slot.Path) {
				l.add(fault.BadValue, at("volumes", "path")(i), "is or contains the path of "+other.Name)
			}
		}
	}
}

// within reports whether a path is a folder or lies in it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
