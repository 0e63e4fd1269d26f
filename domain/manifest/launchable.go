package manifest

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/gpuaas/app-platform/domain/fault"
)

// launchable is what lint reads of the runtime profile of a manifest of artifactKind "launchable", whose shape
// the document's schema has checked. Everything else in it is its adapter's to act on.
type launchable struct {
	Image string `json:"image"`
	Ports []struct {
		Name string `json:"name"`
		Port int    `json:"port"`
	} `json:"ports"`
	Volumes []struct {
		Name     string `json:"name"`
		Path     string `json:"path"`
		Artifact string `json:"artifact"`
		Slot     string `json:"slot"`
	} `json:"volumes"`
	Usage *struct {
		Port     int `json:"port"`
		Counters []struct {
			Metric    string `json:"metric"`
			Dimension string `json:"dimension"`
		} `json:"counters"`
	} `json:"usage"`
}

// profile checks a launchable manifest's runtime profile against its artifacts, and its parts against each other.
func (l *linter) profile(m *Manifest) {
	if m.ArtifactKind != launchableKind || len(m.RuntimeProfile) == 0 {
		return
	}
	var p launchable
	if err := json.Unmarshal(m.RuntimeProfile, &p); err != nil {
		l.add(fault.BadValue, "runtimeProfile", "cannot be read as a runtime profile")
		return
	}
	names := make(map[string]bool, len(m.Artifacts))
	for _, artifact := range m.Artifacts {
		names[artifact.Name] = true
	}
	const text = "is not the name of an artifact of this manifest"
	if !names[p.Image] {
		l.add(fault.UnknownValue, "runtimeProfile.image", text)
	}
	l.unique(len(p.Ports), func(i int) string { return p.Ports[i].Name }, at("runtimeProfile.ports", "name"))
	l.unique(len(p.Ports), func(i int) string { return strconv.Itoa(p.Ports[i].Port) },
		at("runtimeProfile.ports", "port"))
	l.unique(len(p.Volumes), func(i int) string { return p.Volumes[i].Name }, at("runtimeProfile.volumes", "name"))
	l.unique(len(p.Volumes), func(i int) string { return p.Volumes[i].Path }, at("runtimeProfile.volumes", "path"))
	for i, volume := range p.Volumes {
		if volume.Artifact != "" && !names[volume.Artifact] {
			l.add(fault.UnknownValue, at("runtimeProfile.volumes", "artifact")(i), text)
		}
	}
	l.slots(m, &p)
	l.counters(m, &p)
}

// slots checks what a container has of slots against the manifest's. A slot that the profile does not name is at its
// own path, where nothing else may be.
func (l *linter) slots(m *Manifest, p *launchable) {
	named := make(map[string]bool)
	for i, volume := range p.Volumes {
		_, known := m.VolumeSlot(volume.Slot)
		switch {
		case volume.Slot == "":
			continue
		case !known:
			l.add(fault.UnknownValue, at("runtimeProfile.volumes", "slot")(i), "is not one of the manifest's volumes")
		case named[volume.Slot]:
			l.add(fault.Duplicate, at("runtimeProfile.volumes", "slot")(i), "is already named by another volume")
		}
		named[volume.Slot] = true
	}
	for i, volume := range p.Volumes {
		for _, slot := range m.Volumes {
			if !named[slot.Name] && slot.Path == volume.Path {
				l.add(fault.Duplicate, at("runtimeProfile.volumes", "path")(i), "is the path of volume slot "+slot.Name)
			}
		}
	}
}

// counters checks what a container counts against the manifest's ports and dimensions.
func (l *linter) counters(m *Manifest, p *launchable) {
	if p.Usage == nil {
		return
	}
	known := false
	for _, port := range p.Ports {
		known = known || port.Port == p.Usage.Port
	}
	if !known {
		l.add(fault.UnknownValue, "runtimeProfile.usage.port", "is not one of the profile's ports")
	}
	counters := p.Usage.Counters
	l.unique(len(counters), func(i int) string { return counters[i].Metric },
		at("runtimeProfile.usage.counters", "metric"))
	for i, one := range counters {
		if !slices.ContainsFunc(m.UsageDimensions, func(d UsageDimension) bool { return d.Name == one.Dimension }) {
			l.add(fault.UnknownValue, at("runtimeProfile.usage.counters", "dimension")(i),
				"is not one of the manifest's usageDimensions")
		}
	}
}
