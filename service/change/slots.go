package change

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/capacity"
)

// BindVolumes binds the volumes that a launch chooses to the slots of its manifest. Known are those of the project.
//
// Faults: INVALID_ARGUMENT for a slot that the manifest does not have, that is named twice, or that must have a volume
// and has none; NOT_FOUND for a volume that is not in the project; FAILED_PRECONDITION for one being deleted.
func BindVolumes(m *manifest.Manifest, choices []VolumeChoice, known map[ids.ID]*Volume) (bound []volume.Binding,
	err error) {
	for i, choice := range choices {
		slot, ok := m.VolumeSlot(choice.Slot)
		path, chosen := fmt.Sprintf("input.volumes.%d", i), known[choice.VolumeID]
		switch {
		case !ok:
			return nil, fault.New(fault.InvalidArgument, "version %s has no volume slot %q: %s", m.Version, choice.Slot,
				slotsOf(m)).
				At(path + ".slot")
		case inSlot(bound, choice.Slot):
			return nil, fault.New(fault.InvalidArgument, "slot %q is named twice: a slot takes one volume",
				choice.Slot).
				At(path + ".slot")
		case chosen == nil || chosen.Status == volume.Deleted:
			return nil, fault.New(fault.NotFound, "there is no volume %s in the project", choice.VolumeID).
				At(path + ".volumeId")
		case chosen.Status != volume.Ready:
			return nil, fault.New(fault.FailedPrecondition, "volume %s is being deleted: choose another", chosen.Name).
				At(path + ".volumeId")
		}
		bound = append(bound, slot.Bind(volume.Binding{VolumeID: choice.VolumeID}))
	}
	for _, slot := range m.Volumes {
		if slot.Required && !inSlot(bound, slot.Name) {
			message := fmt.Sprintf("the app needs a volume in its slot %q (%s): create one and name it", slot.Name,
				slot.Title)
			return nil, fault.New(fault.InvalidArgument, "%s", message).
				With(fault.Reason{Code: fault.Required, Message: message, Path: "input.volumes"})
		}
	}
	return bound, nil
}

func inSlot(bound []volume.Binding, slot string) bool {
	return slices.ContainsFunc(bound, func(b volume.Binding) bool { return b.Slot == slot })
}

// slotsOf names the slots of a manifest.
func slotsOf(m *manifest.Manifest) string {
	if len(m.Volumes) == 0 {
		return "it has no slots"
	}
	names := make([]string, len(m.Volumes))
	for i, slot := range m.Volumes {
		names[i] = slot.Name
	}
	return "it has the slots " + strings.Join(names, ", ")
}

// KeptVolumes returns why a version does not keep the volumes of an instance as its members have them: what is mounted
// is mounted when a member is seated, and never changed under it.
func KeptVolumes(bound []volume.Binding, next *manifest.Manifest) (reasons []fault.Reason) {
	refuse := func(format string, slot string) {
		reasons = append(reasons, fault.Reason{Code: fault.VolumeUnavailable, Path: "input.version",
			Message: fmt.Sprintf(format, slot) + ": launch it as another instance"})
	}
	for _, one := range bound {
		if slot, known := next.VolumeSlot(one.Slot); !known {
			refuse("the version has no slot %q, in which the instance has a volume", one.Slot)
		} else if !slot.Bind(volume.Binding{VolumeID: one.VolumeID}).Equal(one) {
			refuse("the version has slot %q at another path, with other access or for other components", one.Slot)
		}
	}
	for _, slot := range next.Volumes {
		if slot.Required && !inSlot(bound, slot.Name) {
			refuse("the version needs a volume in its slot %q, and the instance has none there", slot.Name)
		}
	}
	return reasons
}

// Homes are the nodes that local volumes are on, or come to be on with the first member that is seated.
type Homes map[ids.ID]ids.ID

// Serve refuses a member with volumes that its node does not serve: INCOMPATIBLE with a reason VOLUME_UNAVAILABLE at
// the path; path is called only then. A local volume that is on no node yet is settled on this one. A volume or a node
// that is not known is not judged.
func (h Homes) Serve(bound []volume.Binding, known map[ids.ID]*Volume, node *db.ComputeNode,
	path func() string) error {
	for _, one := range bound {
		wanted := known[one.VolumeID]
		if wanted == nil || node == nil {
			continue
		}
		if why := h.unserved(wanted, node); why != "" {
			return fault.New(fault.Incompatible, "a volume is not available on a member's node").
				With(fault.Reason{Code: fault.VolumeUnavailable, Message: why, Path: path()})
		}
	}
	return nil
}

// Lodging returns what the node of a requested allocation must serve for one of so many members with volumes.
func (h Homes) Lodging(bound []volume.Binding, known map[ids.ID]*Volume, members int) (out capacity.Lodging) {
	for _, one := range bound {
		wanted := known[one.VolumeID]
		if wanted == nil {
			continue
		}
		out.Volumes = append(out.Volumes, fmt.Sprintf("%s of class %s", wanted.Name, wanted.Class))
		out.Storages = append(out.Storages, volume.Storage{Name: wanted.Class, Kind: wanted.Kind})
		if wanted.Kind != volume.Local {
			continue
		}
		if home := h.of(wanted); home != "" {
			out.Node = home
		}
		out.Together = members
	}
	if out.Node != "" {
		out.Together = 0 // it is settled where
	}
	return out
}

// Settle notes that a member with volumes comes to live on a node.
func (h Homes) Settle(bound []volume.Binding, known map[ids.ID]*Volume, node ids.ID) {
	for _, one := range bound {
		if wanted := known[one.VolumeID]; wanted != nil && wanted.Kind == volume.Local && h.of(wanted) == "" {
			h[wanted.ID] = node
		}
	}
}

// of is the node that a local volume is on, or comes to be on; empty while that is open.
func (h Homes) of(wanted *Volume) ids.ID {
	if wanted.NodeID != nil {
		return *wanted.NodeID
	}
	return h[wanted.ID]
}

// unserved returns why a member on a node cannot have a volume; empty where it can.
func (h Homes) unserved(wanted *Volume, node *db.ComputeNode) string {
	if why := volume.Serves(node.Storage, wanted.Class, wanted.Kind); why != "" {
		return fmt.Sprintf("volume %s of class %s: node %s does not serve it: %s", wanted.Name, wanted.Class,
			node.Name, why)
	}
	if wanted.Kind != volume.Local {
		return ""
	}
	switch h.of(wanted) {
	case "":
		h[wanted.ID] = node.ID
		return ""
	case node.ID:
		return ""
	}
	return fmt.Sprintf("volume %s of class %s is on the disk of one node, and node %s is another one: use a volume of "+
		"a shared class, or an allocation on the volume's node", wanted.Name, wanted.Class, node.Name)
}
