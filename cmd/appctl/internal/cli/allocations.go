package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const maxAllocations = 10000

func (t *tool) allocationsCommand() *cobra.Command {
	return group("allocations", "Capacity that the project rents", t.allocationsList(), t.allocationsRequest(), t.allocationsRelease())
}

func (t *tool) allocationsList() *cobra.Command {
	var statuses []string
	var limit int
	list := t.command("list", "List the project's allocations, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		wanted, err := enums("status", statuses, gql.AllAllocationStatus)
		if err != nil {
			return err
		}
		found, err := listAllocations(ctx, c, project, wanted, limit)
		if err != nil {
			return err
		}
		return t.showAllocations(found, found)
	})
	list.Flags().StringSliceVar(&statuses, "status", nil, "only these statuses, such as ready")
	limitFlag(list, &limit)
	return list
}

func listAllocations(ctx context.Context, c *client.Client, project string, statuses []gql.AllocationStatus, limit int) ([]gql.Allocation, error) {
	return collect[gql.Allocation](client.All[gql.Allocation](limit, func(first int, after string) (*gql.AllocationPage, error) {
		answer, err := gql.ListAllocations(ctx, c, project, statuses, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.Allocations, nil
	}))
}

func (t *tool) showAllocations(answer any, found []gql.Allocation) error {
	var rows [][]string
	var ids []string
	for _, allocation := range found {
		node, instance := "", ""
		if allocation.Node != nil {
			node = allocation.Node.Name
		}
		if allocation.Instance != nil {
			instance = allocation.Instance.Name
		}
		rows = append(rows, []string{
			allocation.Id, allocation.Name, string(allocation.Shape), fmt.Sprint(allocation.GpuCount),
			string(allocation.Status), node, instance,
		})
		ids = append(ids, allocation.Id)
	}
	return t.show(view{JSON: answer, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "NAME", "SHAPE", "GPUS", "STATUS", "NODE", "INSTANCE"}, rows)
	}})
}

func (t *tool) allocationsRequest() *cobra.Command {
	var input gql.RequestAllocationInput
	var shape string
	request := t.command("request", "Rent capacity", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		shapes, err := enums("shape", []string{shape}, gql.AllCapacityShape)
		if err != nil {
			return err
		}
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		input.ProjectId, input.Shape, input.IdempotencyKey = project, shapes[0], key(input.IdempotencyKey)
		answer, err := gql.RequestAllocation(ctx, c, input)
		if err != nil {
			return err
		}
		return t.showAllocations(answer.RequestAllocation.Allocations, answer.RequestAllocation.Allocations)
	})
	flags := request.Flags()
	flags.StringVar(&shape, "shape", "baremetal", "baremetal (whole nodes) or gpu_slice (some GPUs of a node)")
	flags.IntVar(&input.Count, "count", 1, "how many allocations, all or none")
	flags.IntVar(&input.GpuCount, "gpus", 0, "GPUs of each, for gpu_slice")
	flags.StringVar(&input.Name, "name", "", "name for people")
	flags.StringVar(&input.Sku, "sku", "", "only this SKU")
	flags.StringVar(&input.Region, "region", "", "only this region")
	keyFlag(request, &input.IdempotencyKey)
	return request
}

func (t *tool) allocationsRelease() *cobra.Command {
	var input gql.ReleaseAllocationInput
	var wait waitFlags
	release := t.command("release ALLOCATION", "Give an allocation back; an instance that uses it is stopped first", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			ids, err := t.allocationIDs(ctx, c, args)
			if err != nil {
				return err
			}
			input.AllocationId, input.IdempotencyKey = ids[0], key(input.IdempotencyKey)
			answer, err := gql.ReleaseAllocation(ctx, c, input)
			if err != nil {
				return err
			}
			made := answer.ReleaseAllocation
			return t.finish(ctx, c, wait, started{
				operation: made.Operation, JSON: made, IDs: []string{made.Operation.Id}, what: "release of " + made.Allocation.Name,
				ended: func(_ context.Context, op *gql.OperationDetail) (view, error) {
					return view{
						JSON: map[string]any{"allocation": made.Allocation, "operation": op}, IDs: []string{op.Id},
						Page: func(p *render.Page) { pageOperation(p, op) },
					}, nil
				},
			})
		})
	release.Flags().StringVar(&input.Reason, "reason", "", "why, kept in the audit")
	wait.register(release)
	keyFlag(release, &input.IdempotencyKey)
	return release
}

// allocationIDs turns ids and names of the project's live allocations into ids.
func (t *tool) allocationIDs(ctx context.Context, c *client.Client, given []string) ([]string, error) {
	if !slices.ContainsFunc(given, func(one string) bool { return !strings.HasPrefix(one, "alc_") }) {
		return given, nil
	}
	project, err := t.projectID(ctx, c)
	if err != nil {
		return nil, err
	}
	live := []gql.AllocationStatus{gql.AllocationStatusRequested, gql.AllocationStatusReady, gql.AllocationStatusReleasing}
	known, err := listAllocations(ctx, c, project, live, maxAllocations)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, one := range given {
		id, err := allocationID(known, one)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func allocationID(known []gql.Allocation, given string) (string, error) {
	var found []string
	for _, allocation := range known {
		if allocation.Id == given || allocation.Name == given {
			found = append(found, allocation.Id)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", usagef("several allocations are called %q, give an id: %s", given, strings.Join(found, ", "))
	case strings.HasPrefix(given, "alc_"):
		return given, nil
	default:
		return "", notFoundf("there is no live allocation %q in the project", given)
	}
}
