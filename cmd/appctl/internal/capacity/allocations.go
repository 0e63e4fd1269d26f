// Package capacity is the commands about capacity: allocations, what operations left behind, prices and nodes.
package capacity

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Commands returns the commands about capacity.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		command.Group("allocations", "Capacity that the project rents", list(t), devices(t), request(t), release(t)),
		command.Group("orphans", "What operations left behind and could not clean up", listOrphans(t), retryOrphan(t)),
		command.Group("prices", "List prices by SKU, and the price book", listPrices(t), setPrice(t), book(t),
			addPrice(t), rerate(t)),
		usage(t),
		nodes(t),
	}
}

// list returns the command that lists the project's allocations.
func list(t *command.Tool) *cobra.Command {
	var statuses []string
	cmd := command.List(t, "list", "List the project's allocations, newest first", table,
		func(ctx context.Context, _ []string, limit int) ([]gql.Allocation, error) {
			project, err := t.ProjectID(ctx)
			if err != nil {
				return nil, err
			}
			wanted, err := command.Enums("status", statuses, gql.AllAllocationStatus)
			if err != nil {
				return nil, err
			}
			return lookup.Allocations(ctx, t, project, wanted, limit)
		})
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only these statuses, such as ready")
	return cmd
}

var table = command.Table[gql.Allocation]{
	Heading: []string{"ID", "NAME", "SHAPE", "GPUS", "STATUS", "NODE", "INSTANCE"},
	Row: func(allocation *gql.Allocation) []string {
		instance := ""
		if allocation.Instance != nil {
			instance = allocation.Instance.Name
		}
		return []string{
			allocation.Id, allocation.Name, string(allocation.Shape), fmt.Sprint(allocation.GpuCount),
			string(allocation.Status), parts.NodeName(allocation.Node), instance,
		}
	},
}

// request returns the command that rents capacity in the project, all of it or none.
func request(t *command.Tool) *cobra.Command {
	var input gql.RequestAllocationInput
	var shape, isolation, profile string
	cmd := command.Verb(t, "request", "Rent capacity", table.View,
		func(ctx context.Context, _ []string) (_ []gql.Allocation, err error) {
			if input.Shape, err = command.Enum("shape", shape, gql.AllCapacityShape); err != nil {
				return nil, err
			}
			if err := walls(&input, isolation, profile); err != nil {
				return nil, err
			}
			if input.ProjectId, err = t.ProjectID(ctx); err != nil {
				return nil, err
			}
			answer, err := gql.RequestAllocation(ctx, t, input)
			return answer.RequestAllocation.Allocations, err
		})
	flags := cmd.Flags()
	flags.StringVar(&shape, "shape", "baremetal", "baremetal (whole nodes) or gpu_slice (some GPUs of a node)")
	flags.IntVar(&input.Count, "count", 1, "how many allocations, all or none")
	flags.IntVar(&input.GpuCount, "gpus", 0, "GPUs of each, for gpu_slice")
	flags.StringVar(&input.Name, "name", "", "display name")
	flags.StringVar(&input.Sku, "sku", "", "only this SKU")
	flags.StringVar(&input.Region, "region", "", "only this region")
	flags.StringVar(&isolation, "isolation", "",
		"weakest isolation class of its members: container, sandbox, vm or whole_node")
	flags.StringVar(&profile, "profile", "", "only nodes that offer this profile: service or nesting")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

// release returns the command that gives an allocation back.
func release(t *command.Tool) *cobra.Command {
	var input gql.ReleaseAllocationInput
	var wait operations.WaitFlags
	var plan bool
	cmd := t.Command("release ALLOCATION", "Give an allocation back; an instance that uses it is stopped first",
		func(ctx context.Context, args []string) error {
			ids, err := lookup.AllocationIDs(ctx, t, args)
			if err != nil {
				return err
			}
			input.AllocationId = ids[0]
			if plan {
				answer, err := gql.PlanReleaseAllocation(ctx, t, ids[0])
				if err != nil {
					return err
				}
				if err := t.Show(operations.ReleasePlanView(&answer.PlanReleaseAllocation)); err != nil {
					return err
				}
				return operations.RefusedRelease(&answer.PlanReleaseAllocation)
			}
			answer, err := gql.ReleaseAllocation(ctx, t, input)
			if err != nil {
				return err
			}
			made := &answer.ReleaseAllocation
			return operations.Finish(ctx, t, wait, operations.Started{
				Operation: made.Operation, JSON: made, What: "release of " + made.Allocation.Name,
				Ended: func(_ context.Context, op *gql.OperationDetail) (command.View, error) {
					return operations.EndedView("allocation", made.Allocation, op), nil
				},
			})
		})
	cmd.Flags().BoolVar(&plan, "plan", false, "show what it would do and how much an hour that saves; release nothing")
	cmd.Flags().StringVar(&input.PlanHash, "plan-hash", "",
		"release only if nothing has changed since the plan of this hash")
	command.ReasonFlag(cmd, &input.Reason)
	wait.Register(cmd)
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}
