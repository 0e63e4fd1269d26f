package shape

import (
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/instance"
)

// LaunchOptions returns the options of a launch as the contract shows them.
func LaunchOptions(options *instance.Options) *model.LaunchOptions {
	out := &model.LaunchOptions{
		Manifest: options.Manifest, Entitled: options.Entitled, Profile: options.Profile,
		Allocations: []*model.AllocationVerdict{},
	}
	for _, one := range options.Versions {
		out.Versions = append(out.Versions, &model.LaunchVersion{
			Version: one.Version, Stage: one.Stage, Chosen: one.Chosen, Reasons: Pointers(one.Reasons),
		})
	}
	for _, verdict := range options.Allocations {
		reasons := Pointers(verdict.Reasons)
		shown := &model.AllocationVerdict{Allocation: verdict.Allocation, Compatible: len(reasons) == 0,
			Reasons: reasons}
		if verdict.Class != "" {
			shown.IsolationClass = &verdict.Class
		}
		out.Allocations = append(out.Allocations, shown)
	}
	return out
}

// Pointers returns the elements of a list as the generated types hold them.
func Pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
