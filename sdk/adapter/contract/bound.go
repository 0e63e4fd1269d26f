package contract

import (
	"encoding/json"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

const (
	// MaxWorkText and maxWorkMessage are the longest fields of a piece of work, in bytes; longer
	// ones are cut.
	MaxWorkText    = 200
	maxWorkMessage = 500
)

// MembersOf returns the members of one component, in the order of their indexes.
func MembersOf(members []Member, component string) []Member {
	var list []Member
	for _, member := range members {
		if member.ComponentKey == component {
			list = append(list, member)
		}
	}
	slices.SortFunc(list, func(a, b Member) int { return a.Index - b.Index })
	return list
}

// TargetsOf returns the members that are targets.
func TargetsOf(members []Member, targets []string) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !slices.Contains(targets, m.ID) })
}

// DecodeChange reads a desired change into out; an absent one changes nothing. The error is a refusal.
func DecodeChange(change json.RawMessage, out any) error {
	if wire.IsNull(change) {
		return nil
	}
	if err := json.Unmarshal(change, out); err != nil {
		return Reject(CodeInvalid, "change", "the change cannot be read: %v", err)
	}
	return nil
}

// BoundWork returns the first [MaxWork] pieces with their texts cut; never nil.
func BoundWork(list []Work) []Work {
	bounded := append([]Work{}, list[:min(len(list), MaxWork)]...)
	for i, work := range bounded {
		work.Kind, work.ID, work.Name = wire.Clip(work.Kind, MaxWorkText), wire.Clip(work.ID, MaxWorkText),
			wire.Clip(work.Name, MaxWorkText)
		work.Owner, work.Message = wire.Clip(work.Owner, MaxWorkText), wire.Clip(work.Message, maxWorkMessage)
		bounded[i] = work
	}
	return bounded
}
