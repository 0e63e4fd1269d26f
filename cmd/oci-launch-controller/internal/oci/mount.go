package oci

import (
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// mount is a folder that the container has: of a volume, of an artifact, or of the member's own.
type mount struct {
	Volume

	artifact adapter.Artifact
	volume   *adapter.MemberVolume // nil where the instance has none for it
}

// mountsOf are what a member's container has of its profile's volumes and of the member's. A volume whose slot the
// profile does not name is where the member has it.
func mountsOf(instance adapter.Instance, p Profile, member adapter.Member) (all []mount) {
	for _, wanted := range p.Volumes {
		one := mount{Volume: wanted}
		one.artifact, _ = instance.Artifact(wanted.Artifact)
		at := slices.IndexFunc(member.Volumes, func(v adapter.MemberVolume) bool { return v.Slot == wanted.Slot })
		if at >= 0 {
			one.volume = &member.Volumes[at]
		}
		all = append(all, one)
	}
	for _, had := range member.Volumes {
		if !slices.ContainsFunc(p.Volumes, func(v Volume) bool { return v.Slot == had.Slot }) {
			all = append(all, mount{Volume: Volume{Name: had.Slot, Path: had.Path, Slot: had.Slot}, volume: &had})
		}
	}
	return all
}

// fetched are the mounts whose files the node fetches.
func (r *release) fetched() []mount {
	return slices.DeleteFunc(slices.Clone(r.mounts), func(m mount) bool { return m.volume != nil || m.Artifact == "" })
}

// folder is an artifact's name below /srv/oci/artifacts.
func (m mount) folder() string { return m.Name + "-" + hexOf(m.artifact.Digest)[:12] }

// source is where the member has the files.
func (m mount) source() string {
	switch {
	case m.volume != nil:
		return m.volume.Path
	case m.Artifact != "":
		return top + "artifacts/" + m.folder()
	default:
		return top + "volumes/" + m.Name
	}
}

// option is podman's for it. A folder of the member's own is given to the container's user with all that is in it;
// what is on a volume may be others', and stays theirs.
func (m mount) option() string {
	mode := ":U"
	switch {
	case m.ReadOnly, m.volume != nil && m.volume.ReadOnly, m.volume == nil && m.Artifact != "":
		mode = ":ro"
	case m.volume != nil:
		mode = ":rw"
	}
	return "--volume=" + m.source() + ":" + m.Path + mode
}

// made returns the lines of the script that prepare the folder before the container is created.
func (m mount) made() string {
	switch {
	case m.volume != nil && !m.ReadOnly && !m.volume.ReadOnly:
		return "give " + quote(m.source()) + "\n"
	case m.volume == nil && m.Artifact == "":
		return "mkdir -p " + quote(m.source()) + "\n"
	default:
		return ""
	}
}
