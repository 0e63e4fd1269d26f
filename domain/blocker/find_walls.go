package blocker

import (
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// wallCodes are the codes with which a node agent refuses a member before it starts anything of it.
var wallCodes = []fault.Code{
	fault.RuntimeMissing, fault.RuntimeTooOld, fault.ClassUnavailable, fault.ProfileUnavailable,
	fault.DeviceNotAllocated,
	fault.DeviceMissing, fault.MemberIDsExhausted, fault.VolumeUnavailable,
}

// nodeStartless returns the nodes that report but can start no member, each with the first touched member there.
func nodeStartless(f *Facts) []finding {
	var found []finding
	for _, member := range f.Members {
		node := member.Node
		if node == nil || node.Startless == "" || node.lost(f.Now) || !f.touched(member) {
			continue
		}
		if slices.ContainsFunc(found, func(one finding) bool { return one.subject == node.ID }) {
			continue
		}
		found = append(found, finding{subject: node.ID, since: node.Seen, next: f.next(),
			words: []string{"node", node.Name, "member", member.Name, "detail", node.Startless}})
	}
	return found
}

// nodeRefuses returns the newest task, when its node could not build the member's walls. The catalogue's text of the
// code is the remedy.
func nodeRefuses(f *Facts) []finding {
	if len(f.Open) > 0 || len(f.Ended) == 0 || f.Ended[0].State != lifecycle.TaskFailed ||
		!slices.Contains(wallCodes, f.Ended[0].Code) {
		return nil
	}
	last := f.Ended[0]
	last.Detail = fault.Lookup(last.Code).Text
	return []finding{f.task(last, last.Ended)}
}
