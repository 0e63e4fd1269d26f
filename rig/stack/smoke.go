package stack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// smoke launches the version in the lab project and tears it down again: the evidence of its
// promotion. The capacity is given back whatever happens.
func (s *Stack) smoke(ctx context.Context, app App, version string) (instanceID string, err error) {
	ctx, cancel := context.WithTimeout(ctx, smokeTimeout)
	defer cancel()
	if err := s.entitle(ctx, app, s.Demo.LabProjectID); err != nil {
		return "", err
	}
	if err := s.clearLab(ctx); err != nil {
		return "", err
	}
	wanted := gql.RequestAllocationInput{
		ProjectId: s.Demo.LabProjectID, Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: 1, Name: "smoke",
		IdempotencyKey: client.NewKey(),
	}
	if app.Whole {
		wanted.Shape, wanted.Count, wanted.GpuCount, wanted.Sku = gql.CapacityShapeBaremetal, 1, 0, WholeSKU
	}
	rented, err := gql.RequestAllocation(ctx, s.Operator, wanted)
	if err != nil {
		return "", err
	}
	allocation := rented.RequestAllocation.Allocations[0].Id
	defer func() { err = errors.Join(err, s.giveBack(ctx, allocation)) }()
	launch, err := gql.LaunchInstance(ctx, s.Operator, gql.LaunchInstanceInput{
		ProjectId: s.Demo.LabProjectID, AppSlug: app.Slug, Version: version, Components: app.Smoke,
		Name:          "smoke-" + strings.ToLower(client.NewKey()[:8]),
		AllocationIds: []string{allocation}, DeadlineSeconds: 120, Smoke: true, Reason: "smoke test",
		IdempotencyKey: client.NewKey(),
	})
	if err != nil {
		return "", err
	}
	instanceID = launch.LaunchInstance.Instance.Id
	runErr := s.succeed(ctx, launch.LaunchInstance.Operation.Id)
	end, err := gql.DecommissionInstance(ctx, s.Operator, gql.DecommissionInstanceInput{
		InstanceId: instanceID, DeadlineSeconds: 120, Reason: "smoke test is over", IdempotencyKey: client.NewKey(),
	})
	if err != nil {
		return "", errors.Join(runErr, err)
	}
	return instanceID, errors.Join(runErr, s.succeed(ctx, end.DecommissionInstance.Operation.Id))
}

// clearLab gives back what a smoke test that was cut short still holds. Releasing stops its instance.
func (s *Stack) clearLab(ctx context.Context) error {
	held, err := gql.ListAllocations(ctx, s.Operator, s.Demo.LabProjectID,
		[]gql.AllocationStatus{gql.AllocationStatusReady}, 100, "")
	if err != nil {
		return err
	}
	for _, edge := range held.Allocations.Edges {
		if err := s.giveBack(ctx, edge.Node.Id); err != nil {
			return fmt.Errorf("give back what an earlier smoke test holds: %w", err)
		}
	}
	return nil
}

// giveBack releases an allocation and waits for the proof, also when the smoke test has run out of
// time.
func (s *Stack) giveBack(ctx context.Context, allocation string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	release, err := gql.ReleaseAllocation(ctx, s.Operator, gql.ReleaseAllocationInput{
		AllocationId: allocation, Reason: "smoke test is over", IdempotencyKey: client.NewKey(),
	})
	if err != nil {
		return err
	}
	return s.succeed(ctx, release.ReleaseAllocation.Operation.Id)
}

// succeed waits for an operation and says why it failed.
func (s *Stack) succeed(ctx context.Context, operation string) error {
	ended, err := s.Operator.WaitOperation(ctx, operation, nil)
	if err != nil {
		return err
	}
	if ended.State == gql.OperationStateSucceeded {
		return nil
	}
	reason := ended.Message
	if ended.Error != nil {
		reason = ended.Error.Code + ": " + ended.Error.Message
	}
	return fmt.Errorf("operation %s is %s: %s", operation, ended.State, reason)
}
