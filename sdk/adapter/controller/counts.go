package controller

import (
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// CheckCounts checks the counts of a change against the bounds of an app's components, for an app's Check. It refuses
// with UNKNOWN_COMPONENT, BELOW_MINIMUM or ABOVE_MAXIMUM. The texts name the app and its members, such as "peers".
func CheckCounts(app, members string, bounds []adapter.Component, counts []adapter.ComponentCount) error {
	for i, count := range counts {
		path := fmt.Sprintf("instance.components[%d]", i)
		at := slices.IndexFunc(bounds, func(c adapter.Component) bool { return c.Key == count.Key })
		switch {
		case at < 0:
			return adapter.Reject("UNKNOWN_COMPONENT", path+".key", "%s has no component %q", app, count.Key)
		case count.Count < bounds[at].Min:
			return adapter.Reject("BELOW_MINIMUM", path+".count", "%d %s would be left: the minimum is %d",
				count.Count, members, bounds[at].Min)
		case count.Count > bounds[at].Max:
			return adapter.Reject("ABOVE_MAXIMUM", path+".count", "%d %s: the maximum is %d",
				count.Count, members, bounds[at].Max)
		}
	}
	return nil
}
