package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// smoke launches the version in the app's lab and tears it down again: the evidence of its
// promotion. The capacity is given back whatever happens.
func (s *Stack) smoke(ctx context.Context, app App, version string) (instanceID string, err error) {
	if err := s.entitle(ctx, app, s.lab(app)); err != nil {
		return "", err
	}
	if err := s.clearLab(ctx, app); err != nil {
		return "", err
	}
	instance, err := s.try(ctx, app, gql.LaunchInstanceInput{Version: version, Smoke: true, Reason: "smoke test"}, nil)
	if err != nil {
		return "", err
	}
	return instance.Id, nil
}

// Walk takes the active version of an app through its ways: launch, a change of the configuration, back, and deletion.
// It returns the version. What onboarding asks of an app is recorded by it as of any other launch.
func (s *Stack) Walk(ctx context.Context, app App, change json.RawMessage) (version string, err error) {
	instance, err := s.try(ctx, app, gql.LaunchInstanceInput{Reason: walking},
		func(ctx context.Context, id string) error {
			there, err := gql.UpgradeInstance(ctx, s.Operator, gql.UpgradeInstanceInput{InstanceId: id, Config: change,
				DeadlineSeconds: tryDeadline, Reason: walking, IdempotencyKey: client.NewKey()})
			if err != nil {
				return err
			}
			if err := s.succeed(ctx, there.UpgradeInstance.Operation.Id); err != nil {
				return fmt.Errorf("upgrade: %w", err)
			}
			back, err := gql.RollbackInstance(ctx, s.Operator, gql.RollbackInstanceInput{InstanceId: id,
				DeadlineSeconds: tryDeadline, Reason: walking, IdempotencyKey: client.NewKey()})
			if err != nil {
				return err
			}
			if err := s.succeed(ctx, back.RollbackInstance.Operation.Id); err != nil {
				return fmt.Errorf("rollback: %w", err)
			}
			return nil
		})
	return instance.AppVersion, err
}

const (
	walking = "a walk through launch, upgrade, rollback and deletion"
	// tryDeadline bounds each operation of a try, in seconds.
	tryDeadline = 180
)

// try launches in the app's lab on capacity of its own, does what there is to do with the instance, and tears it
// down and gives the capacity back whatever happens.
func (s *Stack) try(ctx context.Context, app App, in gql.LaunchInstanceInput,
	do func(ctx context.Context, instanceID string) error) (instance gql.Instance, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	allocation, err := s.rent(ctx, app, s.lab(app), smokeName(app))
	if err != nil {
		return instance, err
	}
	defer func() { err = errors.Join(err, s.giveBack(ctx, allocation)) }()
	in.ProjectId, in.AppSlug, in.Components = s.lab(app), app.Slug, app.Smoke
	in.AllocationIds = []string{allocation}
	in.Name, in.DeadlineSeconds = "try-"+strings.ToLower(client.NewKey()[:8]), tryDeadline
	in.IdempotencyKey = client.NewKey()
	launch, err := gql.LaunchInstance(ctx, s.Operator, in)
	if err != nil {
		return instance, err
	}
	instance = launch.LaunchInstance.Instance
	runErr := s.succeed(ctx, launch.LaunchInstance.Operation.Id)
	if runErr == nil && do != nil {
		runErr = do(ctx, instance.Id)
	}
	end, err := gql.DecommissionInstance(ctx, s.Operator, gql.DecommissionInstanceInput{
		InstanceId: instance.Id, DeadlineSeconds: tryDeadline, Reason: in.Reason + " has ended",
		IdempotencyKey: client.NewKey(),
	})
	if err != nil {
		return instance, errors.Join(runErr, err)
	}
	return instance, errors.Join(runErr, s.succeed(ctx, end.DecommissionInstance.Operation.Id))
}

// rent takes what one instance of the app needs, in a project.
func (s *Stack) rent(ctx context.Context, app App, project, name string) (allocation string, err error) {
	wanted := gql.RequestAllocationInput{
		ProjectId: project, Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: 1, Name: name,
		IdempotencyKey: client.NewKey(),
	}
	if app.Whole {
		wanted.Shape, wanted.Count, wanted.GpuCount, wanted.Sku = gql.CapacityShapeBaremetal, 1, 0, WholeSKU
	}
	rented, err := gql.RequestAllocation(ctx, s.Operator, wanted)
	if err != nil {
		return "", err
	}
	return rented.RequestAllocation.Allocations[0].Id, nil
}

// smokeName is what the capacity of an app's tries is called.
func smokeName(app App) string { return "smoke-" + app.Slug }

// clearLab gives back what a smoke test of the app that was cut short still holds in its lab. Releasing stops its
// instance. Other apps may be tried there at once.
func (s *Stack) clearLab(ctx context.Context, app App) error {
	held, err := gql.ListAllocations(ctx, s.Operator, s.lab(app),
		[]gql.AllocationStatus{gql.AllocationStatusReady}, 100, "")
	if err != nil {
		return err
	}
	for _, edge := range held.Allocations.Edges {
		if edge.Node.Name != smokeName(app) {
			continue
		}
		if err := s.giveBack(ctx, edge.Node.Id); err != nil {
			return fmt.Errorf("release what an earlier smoke test has: %w", err)
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
		AllocationId: allocation, Reason: "smoke test has ended", IdempotencyKey: client.NewKey(),
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
