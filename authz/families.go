package authz

import (
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Families lists the permission families a manifest may name.
func Families() []string { return slices.Clone(families) }

// FamilyKey is the key of a family and a suffix, such as "scheduler" and "queue.submit". It fails with
// INVALID_ARGUMENT when the family or the suffix is unknown.
func FamilyKey(family, suffix string) (Key, error) {
	if !slices.Contains(families, family) {
		return 0, fault.New(fault.InvalidArgument, "%.40q is not a permission family: want %s", family,
			strings.Join(families, " or "))
	}
	return ParseKey(family + "." + suffix)
}

// FamilyKeys is the keys of a suffix in every family: any of them lets a caller see what is of no one family.
// It is empty for an unknown suffix.
func FamilyKeys(suffix string) []Key {
	var keys []Key
	for _, family := range families {
		if key, ok := byName[family+"."+suffix]; ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// AllocationFamily is the family of events of allocations that no instance uses. No manifest names it.
const AllocationFamily = "allocation"

// VolumeFamily is the family of events of volumes. No manifest names it.
const VolumeFamily = "volume"

// EventFamilies lists the families that an event can be of: those of apps, AllocationFamily and VolumeFamily.
func EventFamilies() []string { return append(Families(), AllocationFamily, VolumeFamily) }

// EventKey is the key that reading a family's events requires. INVALID_ARGUMENT when the family is unknown.
func EventKey(family string) (Key, error) {
	switch family {
	case AllocationFamily:
		return AllocationRead, nil
	case VolumeFamily:
		return VolumeRead, nil
	}
	return FamilyKey(family, "instance.read")
}
