package onboarding

import (
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// required are the events that every instance's timeline has, each with when it is due.
var required = []struct {
	of  lifecycle.EventType
	due func(*Instance) bool
}{
	{lifecycle.EventInstanceRequested, func(*Instance) bool { return true }},
	{lifecycle.EventInstanceRunning, func(i *Instance) bool { return i.Ran }},
	{lifecycle.EventInstanceDeleting, func(i *Instance) bool { return i.Gone }},
	{lifecycle.EventInstanceDeleted, func(i *Instance) bool { return i.Gone }},
}

// RequiredEvents are the types that a timeline is read for: those that are always due, and the one of a failure.
func RequiredEvents() []string {
	out := []string{string(lifecycle.EventInstanceFailed)}
	for _, one := range required {
		out = append(out, string(one.of))
	}
	return out
}

// events checks the timelines of the version's instances against what is required of them.
func events(f *Facts) *Check {
	const remedy = "launch the version, let it run and decommission it; where an event of a timeline lacks a field, " +
		"raise a gap"
	var bad, good []*Evidence
	complete := 0
	for _, instance := range f.Instances {
		for _, one := range instance.Events {
			if len(one.Lacks) > 0 {
				bad = append(bad, &Evidence{ID: &one.ID, What: one.Type,
					State: "lacks " + strings.Join(one.Lacks, ", "), At: one.At,
					Of: instance.Of})
			}
		}
		for _, need := range required {
			has := slices.ContainsFunc(instance.Events, func(e *Event) bool { return e.Type == string(need.of) })
			if need.due(instance) && !has {
				bad = append(bad, &Evidence{ID: &instance.ID, What: string(need.of), State: "missing", At: instance.At,
					Of: instance.Of})
			}
		}
		if !instance.Ran || !instance.Gone {
			continue
		}
		if complete++; complete == 1 {
			for _, one := range instance.Events {
				good = append(good, &Evidence{ID: &one.ID, What: one.Type, At: one.At, Of: instance.Of})
			}
		}
	}
	switch {
	case len(bad) > 0:
		return verdict(LifecycleEvents, Failed, bad, remedy, "%s missing or without a field of context",
			count(len(bad), "required event"))
	case complete == 0:
		return verdict(LifecycleEvents, NotKnown, nil, remedy, "no instance of this version has run and been deleted")
	}
	return verdict(LifecycleEvents, Passed, good, remedy, "every required event of %s that ran and was deleted has "+
		"correlation_id, org_id, project_id, app_slug and app_instance_id", count(complete, "instance"))
}
