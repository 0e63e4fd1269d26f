// Package lookup turns what a person names into ids, and completes names for a shell. Nothing is read for what is an
// id already.
package lookup

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Bounds of what is read to find one object by its name.
const (
	maxNamesakes   = 1000
	maxAllocations = 10000
)

// Tenant returns the id of a tenant that was given, or of the caller's own.
func Tenant(ctx context.Context, t *command.Tool, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	answer, err := gql.GetViewer(ctx, t)
	if err != nil {
		return "", err
	}
	if answer.Viewer.Tenant == nil {
		return "", command.Usagef("you do not belong to a tenant: give --tenant")
	}
	return answer.Viewer.Tenant.Id, nil
}

// Apps reads at most limit apps whose slug or name contains a text.
func Apps(ctx context.Context, t *command.Tool, search string, limit int) ([]gql.App, error) {
	return command.All[gql.App](limit, func(first int, after string) (*gql.AppPage, error) {
		answer, err := gql.ListApps(ctx, t, search, first, after)
		return &answer.Apps, err
	})
}

// SystemApps reads at most limit apps that the operator runs for the platform.
func SystemApps(ctx context.Context, t *command.Tool, limit int) ([]gql.App, error) {
	return command.All[gql.App](limit, func(first int, after string) (*gql.AppPage, error) {
		answer, err := gql.ListSystemApps(ctx, t, first, after)
		return &answer.Apps, err
	})
}

// Instances reads at most limit instances of a project, newest first.
func Instances(
	ctx context.Context, t *command.Tool, project string, filter gql.InstanceFilter, limit int,
) ([]gql.Instance, error) {
	return command.All[gql.Instance](limit, func(first int, after string) (*gql.InstancePage, error) {
		answer, err := gql.ListInstances(ctx, t, project, &filter, first, after)
		return &answer.Instances, err
	})
}

// Instance returns the id of an instance given by id or name. Among instances of one name the live one is meant, else
// the newest. It connects first.
func Instance(ctx context.Context, t *command.Tool, given string) (string, error) {
	if _, err := t.Connect(); err != nil || strings.HasPrefix(given, "ins_") {
		return given, err
	}
	project, err := t.ProjectID(ctx)
	if err != nil {
		return "", err
	}
	found, err := Instances(ctx, t, project, gql.InstanceFilter{Search: given}, maxNamesakes)
	if err != nil {
		return "", err
	}
	newest := ""
	for _, instance := range found {
		if instance.Name != given {
			continue
		}
		if instance.ReleasedAt == nil {
			return instance.Id, nil
		}
		newest = cmp.Or(newest, instance.Id)
	}
	if newest == "" {
		return "", command.NotFoundf("there is no instance %q in the project", given)
	}
	return newest, nil
}

// OfInstance returns what finds the instance that the first argument names.
func OfInstance(t *command.Tool) func(context.Context, []string) (string, error) {
	return func(ctx context.Context, args []string) (string, error) { return Instance(ctx, t, args[0]) }
}

// InstanceDetail reads an instance given by id or name.
func InstanceDetail(ctx context.Context, t *command.Tool, given string) (*gql.InstanceDetail, error) {
	id, err := Instance(ctx, t, given)
	if err != nil {
		return nil, err
	}
	answer, err := gql.GetInstance(ctx, t, id)
	return &answer.Instance, err
}

// Allocations reads at most limit allocations of a project, newest first.
func Allocations(
	ctx context.Context, t *command.Tool, project string, statuses []gql.AllocationStatus, limit int,
) ([]gql.Allocation, error) {
	return command.All[gql.Allocation](limit, func(first int, after string) (*gql.AllocationPage, error) {
		answer, err := gql.ListAllocations(ctx, t, project, statuses, first, after)
		return &answer.Allocations, err
	})
}

// AllocationIDs returns the ids of live allocations of the project that are given by id or name. It connects first.
func AllocationIDs(ctx context.Context, t *command.Tool, given []string) ([]string, error) {
	named := func(one string) bool { return !strings.HasPrefix(one, "alc_") }
	if _, err := t.Connect(); err != nil || !slices.ContainsFunc(given, named) {
		return given, err
	}
	project, err := t.ProjectID(ctx)
	if err != nil {
		return nil, err
	}
	live := []gql.AllocationStatus{
		gql.AllocationStatusRequested, gql.AllocationStatusReady, gql.AllocationStatusReleasing,
	}
	known, err := Allocations(ctx, t, project, live, maxAllocations)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, one := range given {
		id, err := allocation(known, one)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// allocation returns the id of the allocation with an id or a name that no other has.
func allocation(known []gql.Allocation, given string) (string, error) {
	var found []string
	for _, one := range known {
		if one.Id == given || one.Name == given {
			found = append(found, one.Id)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", command.Usagef("several allocations are called %q, give an id: %s", given, strings.Join(found, ", "))
	case strings.HasPrefix(given, "alc_"):
		return given, nil
	default:
		return "", command.NotFoundf("there is no live allocation %q in the project", given)
	}
}
