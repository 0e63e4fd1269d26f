package isolation

import (
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Startless returns why the node can start no member now; empty when it can, or when it has reported nothing.
func (v *Walls) Startless() string {
	if v == nil || len(v.Classes) > 0 {
		return ""
	}
	for _, gap := range v.Gaps {
		if gap.Wall == WallRuntime && gap.Reason != "" {
			return gap.Reason
		}
	}
	return "it offers no isolation class"
}

// lacks is that the node does not offer something.
func (v *Walls) lacks(code fault.Code, path, what string) fault.Reason {
	return fault.Reason{Code: code, Path: path,
		Message: "the node does not offer " + what + "; it offers " + v.offers() +
			": request an allocation that demands it"}
}

// offers lists what the node offers.
func (v *Walls) offers() string {
	list := make([]string, 0, len(v.Classes)+len(v.Profiles))
	for _, class := range v.Classes {
		list = append(list, string(class))
	}
	for _, profile := range v.Profiles {
		list = append(list, string(profile))
	}
	return strings.Join(list, ", ")
}

// Text names the classes that will do.
func (w Want) Text(exclusive bool) string {
	names := names(w.Classes(exclusive)...)
	if len(names) == 0 {
		return "an isolation class that is both demanded and allowed"
	}
	return "the isolation class " + strings.Join(names, " or ")
}

// unreported is why a node with an older agent does not do.
func (w Want) unreported(exclusive bool, path string) []fault.Reason {
	if !w.Demanding() {
		return nil
	}
	return []fault.Reason{{Code: fault.ClassUnavailable, Path: path, Message: fmt.Sprintf(
		"the node's agent does not report isolation classes, and %s is demanded: upgrade it", w.Text(exclusive))}}
}
