package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/instances"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// cleanupTimeout bounds the teardown and the release of a smoke test that was cut short.
const cleanupTimeout = 10 * time.Minute

// A smokeTest is a launch of a version that is not active yet.
type smokeTest struct {
	t           *command.Tool
	launch      instances.Shape
	allocations []string
	name, shape string
	rent        gql.RequestAllocationInput
	timeout     time.Duration
}

// smoke returns the command that proves a version by running it once.
func smoke(t *command.Tool) *cobra.Command {
	s := smokeTest{t: t}
	cmd := command.Verb(t, "smoke MANIFEST",
		"Launch a version that is not active yet and tear it down again: the proof that its promotion to staged needs",
		func(ran *gql.InstanceDetail) command.View {
			text := fmt.Sprintf("%s %s ran as %s (%s) and was torn down with proof", ran.AppSlug,
				ran.AppVersion, ran.Name, ran.Id)
			return command.Line(ran, text, ran.Id)
		},
		func(ctx context.Context, args []string) (*gql.InstanceDetail, error) { return s.run(ctx, args[0]) })
	cmd.Long = `Rent capacity in the project, unless allocations are given, launch the version as a smoke test, wait
until it runs, tear it down with proof, and release what was rented, whatever happens. With --quiet only the
instance's id is written:

  instance=$(appctl manifest smoke hello@1.2.0 --quiet)
  appctl manifest promote hello@1.2.0 --to staged --smoke-instance "$instance" --reason "smoke test passed"`
	flags := cmd.Flags()
	flags.StringSliceVar(&s.allocations, "allocation", nil,
		"allocation by id or name instead of renting; repeat or separate by commas")
	flags.StringVar(&s.shape, "shape", "gpu_slice",
		"what is rented: baremetal (whole nodes) or gpu_slice (some GPUs of a node)")
	flags.IntVar(&s.rent.Count, "count", 1, "how many allocations are rented")
	flags.IntVar(&s.rent.GpuCount, "gpus", 1, "GPUs of each, for gpu_slice")
	flags.StringVar(&s.rent.Sku, "sku", "", "rent only this SKU")
	flags.StringVar(&s.rent.Region, "region", "", "rent only in this region")
	flags.StringVar(&s.name, "name", "", "name of the instance; a new one if not given")
	s.launch.Register(cmd)
	flags.DurationVar(&s.timeout, "timeout", 30*time.Minute,
		"stop waiting for the launch after this time (exit code 7); it is torn down all the same")
	return cmd
}

// run reads the flags, runs the smoke test, and returns the instance as it was left.
func (s *smokeTest) run(ctx context.Context, given string) (_ *gql.InstanceDetail, err error) {
	input := gql.LaunchInstanceInput{Smoke: true, Reason: "smoke test"}
	if err := s.launch.Into(s.t, &input); err != nil {
		return nil, err
	}
	if s.rent.Shape, err = command.Enum("shape", s.shape, gql.AllCapacityShape); err != nil {
		return nil, err
	}
	if s.rent.Shape != gql.CapacityShapeGpuSlice {
		s.rent.GpuCount = 0
	}
	if input.ProjectId, err = s.t.ProjectID(ctx); err != nil {
		return nil, err
	}
	manifest, err := detail(ctx, s.t, given)
	if err != nil {
		return nil, err
	}
	input.AppSlug, input.Version = manifest.AppSlug, manifest.Version
	input.Name = cmp.Or(s.name, "smoke-"+strings.ToLower(client.NewKey()[:8]))
	if input.AllocationIds, err = lookup.AllocationIDs(ctx, s.t, s.allocations); err != nil {
		return nil, err
	}
	instance, err := s.on(ctx, input)
	if err != nil {
		return nil, err
	}
	answer, err := gql.GetInstance(ctx, s.t, instance)
	return &answer.Instance, err
}

// on runs the smoke test on the allocations of the input, or on rented ones that it gives back.
func (s *smokeTest) on(ctx context.Context, input gql.LaunchInstanceInput) (instance string, err error) {
	if len(input.AllocationIds) == 0 {
		rented, failed := s.rented(ctx, input)
		if failed != nil {
			return "", failed
		}
		for _, allocation := range rented {
			input.AllocationIds = append(input.AllocationIds, allocation.Id)
			defer func() { err = errors.Join(err, s.giveBack(ctx, allocation)) }()
		}
	}
	input.IdempotencyKey = client.NewKey()
	answer, err := gql.LaunchInstance(ctx, s.t, input)
	if err != nil {
		return "", err
	}
	made := answer.LaunchInstance
	launched := operations.Ended(ctx, s.t, made.Operation.Id, s.timeout)
	if launched != nil {
		s.t.Remark("the launch of %s (%s) failed: tearing it down", made.Instance.Name, made.Instance.Id)
	}
	return made.Instance.Id, errors.Join(launched, s.tearDown(ctx, made.Instance.Id))
}

// rented requests the capacity that the flags describe.
func (s *smokeTest) rented(ctx context.Context, input gql.LaunchInstanceInput) ([]gql.Allocation, error) {
	s.rent.ProjectId, s.rent.Name, s.rent.IdempotencyKey = input.ProjectId, input.Name, client.NewKey()
	answer, err := gql.RequestAllocation(ctx, s.t, s.rent)
	if err != nil {
		return nil, err
	}
	return answer.RequestAllocation.Allocations, nil
}

// tearDown ends the instance, also when the run was interrupted.
func (s *smokeTest) tearDown(ctx context.Context, instance string) error {
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	answer, err := gql.DecommissionInstance(rest, s.t, gql.DecommissionInstanceInput{
		InstanceId: instance, Reason: "the smoke test has ended", IdempotencyKey: client.NewKey(),
	})
	if err != nil {
		return err
	}
	return operations.Ended(rest, s.t, answer.DecommissionInstance.Operation.Id, cleanupTimeout)
}

// giveBack releases what was rented, also when the run was interrupted. An instance that is still there is stopped
// first.
func (s *smokeTest) giveBack(ctx context.Context, allocation gql.Allocation) error {
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	answer, err := gql.ReleaseAllocation(rest, s.t, gql.ReleaseAllocationInput{
		AllocationId: allocation.Id, Reason: "the smoke test has ended", IdempotencyKey: client.NewKey(),
	})
	if err == nil {
		err = operations.Ended(rest, s.t, answer.ReleaseAllocation.Operation.Id, cleanupTimeout)
	}
	if err != nil {
		s.t.Remark("allocation %s was not released: release it with appctl allocations release %[1]s", allocation.Id)
	}
	return err
}
