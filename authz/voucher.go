package authz

import (
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Vouched returns those of the keys, by name, that the maker of a thing may still give in the project: all of them if
// the maker may give any role, else those that the maker holds there. So what rests on a person's rights can do no more
// than the person could give now.
func Vouched(maker *Actor, names []string, tenantID, projectID ids.ID) []string {
	if maker.Allows(BindingGrant, "", "") {
		return names
	}
	held := maker.Holds(tenantID, projectID)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		key, ok := byName[name]
		return !ok || !held.Has(key)
	})
}

// Lasts returns the first moment at which a binding of the person ends without which can is false; zero for never. The
// caller has checked that can is true now.
func Lasts(subject Subject, bindings []Binding, now time.Time, can func(*Actor) bool) time.Time {
	var ends []time.Time
	for _, b := range bindings {
		if b.ExpiresAt.After(now) {
			ends = append(ends, b.ExpiresAt)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	for _, end := range ends {
		if !can(NewActor(subject, bindings, nil, end)) {
			return end
		}
	}
	return time.Time{}
}
