package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// smokeFlags are the flags of a smoke launch.
type smokeFlags struct {
	allocations, components, set []string
	config, name, shape          string
	rent                         gql.RequestAllocationInput
	deadline, timeout            time.Duration
}

func (t *tool) manifestSmoke() *cobra.Command {
	var flags smokeFlags
	smoke := t.command("smoke MANIFEST", "Launch a version that is not active yet and tear it down again: the proof that its promotion to staged asks for", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error { return t.smoke(ctx, args[0], &flags) })
	smoke.Long = `Rents capacity in the project, unless allocations are given, launches the version as a smoke test, waits until it runs, tears
it down with proof, and gives back what was rented, whatever happens. With --quiet it writes the instance's id alone:

  instance=$(appctl manifest smoke hello@1.2.0 --quiet)
  appctl promote manifest hello@1.2.0 --to staged --smoke-instance "$instance" --reason "smoke test passed"`
	set := smoke.Flags()
	set.StringSliceVar(&flags.allocations, "allocation", nil, "allocation by id or name instead of renting; repeat or separate by commas")
	set.StringVar(&flags.shape, "shape", "gpu_slice", "what is rented: baremetal (whole nodes) or gpu_slice (some GPUs of a node)")
	set.IntVar(&flags.rent.Count, "count", 1, "how many allocations are rented")
	set.IntVar(&flags.rent.GpuCount, "gpus", 1, "GPUs of each, for gpu_slice")
	set.StringVar(&flags.rent.Sku, "sku", "", "rent only this SKU")
	set.StringVar(&flags.rent.Region, "region", "", "rent only in this region")
	set.StringVar(&flags.name, "name", "", "name of the instance; a fresh one if not given")
	set.StringArrayVar(&flags.components, "component", nil, "members of a component, key=count; repeat for more")
	set.StringArrayVar(&flags.set, "set", nil, "a value of the config, path.to.key=value; repeat for more")
	set.StringVar(&flags.config, "config", "", `JSON file with the config; "-" reads standard input`)
	set.DurationVar(&flags.deadline, "deadline", 0, "time after which the launch counts as failed, 30s to 24h; 15m if not given")
	set.DurationVar(&flags.timeout, "timeout", 30*time.Minute, "stop waiting for the launch after this time (exit code 7); it is torn down all the same")
	return smoke
}

// cleanupTimeout bounds the teardown and the giving back of a smoke test that was cut short.
const cleanupTimeout = 10 * time.Minute

func (t *tool) smoke(ctx context.Context, given string, flags *smokeFlags) error {
	input := gql.LaunchInstanceInput{Smoke: true, Reason: "smoke test"}
	var err error
	if input.Components, err = components(flags.components); err != nil {
		return err
	}
	if input.Config, err = t.document("--config", flags.config, flags.set); err != nil {
		return err
	}
	if input.DeadlineSeconds, err = seconds(flags.deadline); err != nil {
		return err
	}
	shapes, err := enums("shape", []string{flags.shape}, gql.AllCapacityShape)
	if err != nil {
		return err
	}
	c, project, err := t.scope(ctx)
	if err != nil {
		return err
	}
	manifest, err := manifestOf(ctx, c, given)
	if err != nil {
		return err
	}
	input.ProjectId, input.AppSlug, input.Version = project, manifest.AppSlug, manifest.Version
	input.Name = firstOf(flags.name, "smoke-"+strings.ToLower(client.NewKey()[:8]))
	if input.AllocationIds, err = t.allocationIDs(ctx, c, flags.allocations); err != nil {
		return err
	}
	if flags.rent.Shape = shapes[0]; flags.rent.Shape != gql.CapacityShapeGpuSlice {
		flags.rent.GpuCount = 0
	}
	instance, err := t.smokeOn(ctx, c, input, flags)
	if err != nil {
		return err
	}
	answer, err := gql.GetInstance(ctx, c, instance)
	if err != nil {
		return err
	}
	return t.show(view{JSON: answer.Instance, IDs: []string{instance}, Page: func(p *render.Page) {
		p.Line(fmt.Sprintf("%s %s ran as %s (%s) and was torn down with proof", manifest.AppSlug, manifest.Version, answer.Instance.Name, instance))
	}})
}

// smokeOn runs the smoke test on the allocations of the input, or on rented ones that it gives back.
func (t *tool) smokeOn(ctx context.Context, c *client.Client, input gql.LaunchInstanceInput, flags *smokeFlags) (instance string, err error) {
	if len(input.AllocationIds) == 0 {
		flags.rent.ProjectId, flags.rent.Name, flags.rent.IdempotencyKey = input.ProjectId, input.Name, client.NewKey()
		rented, err := gql.RequestAllocation(ctx, c, flags.rent)
		if err != nil {
			return "", err
		}
		for _, allocation := range rented.RequestAllocation.Allocations {
			input.AllocationIds = append(input.AllocationIds, allocation.Id)
			defer func() { err = errors.Join(err, t.giveBack(ctx, c, allocation)) }()
		}
	}
	input.IdempotencyKey = client.NewKey()
	answer, err := gql.LaunchInstance(ctx, c, input)
	if err != nil {
		return "", err
	}
	made := answer.LaunchInstance
	launched := t.ended(ctx, c, made.Operation.Id, flags.timeout)
	if launched != nil {
		t.Remark("the launch of %s (%s) failed, it is torn down", made.Instance.Name, made.Instance.Id)
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	gone, err := gql.DecommissionInstance(rest, c, gql.DecommissionInstanceInput{
		InstanceId: made.Instance.Id, Reason: "smoke test is over", IdempotencyKey: client.NewKey(),
	})
	if err != nil {
		return made.Instance.Id, errors.Join(launched, err)
	}
	return made.Instance.Id, errors.Join(launched, t.ended(rest, c, gone.DecommissionInstance.Operation.Id, cleanupTimeout))
}

// ended follows an operation to its end and answers why it was not a good one.
func (t *tool) ended(ctx context.Context, c *client.Client, operation string, timeout time.Duration) error {
	op, err := t.follow(ctx, c, operation, timeout, t.progress())
	if err != nil {
		return err
	}
	return failure(op)
}

// giveBack releases what was rented, also when the run was interrupted. An instance that is still there is stopped first.
func (t *tool) giveBack(ctx context.Context, c *client.Client, allocation gql.Allocation) error {
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	answer, err := gql.ReleaseAllocation(rest, c, gql.ReleaseAllocationInput{
		AllocationId: allocation.Id, Reason: "smoke test is over", IdempotencyKey: client.NewKey(),
	})
	if err == nil {
		err = t.ended(rest, c, answer.ReleaseAllocation.Operation.Id, cleanupTimeout)
	}
	if err != nil {
		return fmt.Errorf("allocation %s was not given back: %w", allocation.Id, err)
	}
	return nil
}
