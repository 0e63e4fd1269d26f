package policy

import (
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// fill makes the things of a scene from its rows, and counts what each project has.
func (s *scene) fill(found *facts) {
	known := make(map[ids.ID]*db.Project, len(s.projects))
	used := make(map[ids.ID]*overlay.Usage, len(s.projects))
	for _, project := range s.projects {
		known[project.ID], used[project.ID] = project, &overlay.Usage{}
	}
	for i := range found.overlays {
		s.overlays[found.overlays[i].at] = &found.overlays[i].Level
	}
	for _, row := range found.instances {
		if project := known[row.ProjectID]; project != nil {
			used[project.ID].Instances, used[project.ID].Members = used[project.ID].Instances+1,
				used[project.ID].Members+row.Members
			s.things = append(s.things, thing{project: project, id: &row.ID, name: row.Name, ask: row.ask})
		}
	}
	for _, row := range found.allocations {
		if project := known[row.ProjectID]; project != nil {
			used[project.ID].GPUs += row.GPUs
			used[project.ID].Spend(row.SKU, row.Currency, row.Hourly)
			s.things = append(s.things, thing{project: project, id: &row.ID, name: row.Name, ask: row.ask})
		}
	}
	for _, row := range found.volumes {
		if project := known[row.ProjectID]; project != nil {
			used[project.ID].VolumeGiB += row.SizeGiB
			if row.Currency != "" { // a class without a price is in no sum
				used[project.ID].Spend(row.Class, row.Currency, row.Hourly)
			}
			s.things = append(s.things, thing{project: project, id: &row.ID, name: row.Name,
				ask: func(e *policy.Effective) error { return e.StorageClass(row.Class, "") }})
		}
	}
	for _, row := range found.entitlements {
		if project := known[row.ProjectID]; project != nil {
			s.things = append(s.things, thing{project: project, name: "entitlement to " + row.AppSlug,
				ask: func(e *policy.Effective) error { return e.App(row.AppSlug, "") }})
		}
	}
	for _, project := range s.projects {
		s.things = append(s.things, thing{project: project, name: "all that the project has",
			ask: used[project.ID].Within})
	}
}

// ask checks whether the instance could be launched as it is.
func (row *instanceFact) ask(e *policy.Effective) error {
	answers := []error{
		e.App(row.AppSlug, ""), e.Version(row.AppSlug, row.Version, ""), e.MembersOfInstance(row.Members, ""),
		e.Mode(lifecycle.OperatingMode(row.OperatingMode), lifecycle.ControlPlaneScope(row.PlaneKind), ""),
	}
	for _, ref := range row.Refs {
		answers = append(answers, e.Source(ref, ""))
	}
	return policy.Join(answers...)
}

// ask checks whether the allocation could be rented again.
func (row *allocationFact) ask(e *policy.Effective) error {
	return policy.Join(e.Region(row.Region, ""), e.SKU(row.SKU, ""))
}
