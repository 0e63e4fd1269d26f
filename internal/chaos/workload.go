package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// ship is an instance under the suite's hands.
type ship struct {
	number      int
	id          string
	allocations []string
	client      *client.Client
	rng         *rand.Rand
}

// launch rents capacity and launches the instances, before anything is killed.
func (s *Suite) launch(ctx context.Context) ([]*ship, error) {
	fleet := make([]*ship, s.Instances)
	for i := range fleet {
		c, err := s.client(i)
		if err != nil {
			return nil, err
		}
		rented, err := gql.RequestAllocation(ctx, c, gql.RequestAllocationInput{
			ProjectId: s.stack.Demo.ProjectID, Shape: gql.CapacityShapeGpuSlice, Count: 2, GpuCount: 1, IdempotencyKey: client.NewKey(),
		})
		if err != nil {
			return nil, fmt.Errorf("rent for instance %d: %w", i, err)
		}
		one := &ship{number: i, client: c, rng: s.rng(uint64(100 + i))}
		for _, allocation := range rented.RequestAllocation.Allocations {
			one.allocations = append(one.allocations, allocation.Id)
		}
		launched, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{
			ProjectId: s.stack.Demo.ProjectID, AppSlug: "chaos", Name: fmt.Sprintf("chaos-%d", i),
			AllocationIds: one.allocations[:1], IdempotencyKey: client.NewKey(),
		})
		if err != nil {
			return nil, fmt.Errorf("launch instance %d: %w", i, err)
		}
		one.id = launched.LaunchInstance.Instance.Id
		s.accept(launched.LaunchInstance.Operation.Id, "launchInstance")
		fleet[i] = one
	}
	for operation := range s.accepted {
		ended, err := fleet[0].client.WaitOperation(ctx, operation, nil)
		if err != nil {
			return nil, fmt.Errorf("wait for the launch %s: %w", operation, err)
		}
		if ended.State != gql.OperationStateSucceeded {
			return nil, fmt.Errorf("the launch %s is %s: %s", operation, ended.State, ended.Message)
		}
	}
	return fleet, nil
}

// work asks each instance for its changes, while others are asked for theirs.
func (s *Suite) work(ctx context.Context, fleet []*ship) {
	var hands sync.WaitGroup
	for _, one := range fleet {
		hands.Go(func() {
			for range s.Changes {
				s.change(ctx, one)
			}
		})
	}
	hands.Wait()
}

// change asks for one thing at random, and mostly waits for its end.
func (s *Suite) change(ctx context.Context, one *ship) {
	members, err := one.members(ctx)
	if err != nil || len(members) == 0 {
		s.refused("members", err)
		return
	}
	target := members[one.rng.IntN(len(members))]
	operation, what, err := one.ask(ctx, one.rng.IntN(100), target, len(members))
	if err != nil {
		s.refused(what, err)
		return
	}
	s.accept(operation, what)
	switch draw := one.rng.IntN(10); {
	case draw < 2: // the next change is asked while this one runs
	case draw < 3:
		stopped, err := gql.CancelOperation(ctx, one.client, gql.CancelOperationInput{OperationId: operation, Reason: "chaos"})
		if err != nil || stopped == nil {
			s.refused("cancelOperation", err)
		}
	default:
		s.await(ctx, one, operation)
	}
}

// await waits for an operation for a while; what takes longer is looked at when all has settled.
func (s *Suite) await(ctx context.Context, one *ship, operation string) {
	bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, _ = one.client.WaitOperation(bounded, operation, nil)
}

// ask sends a change. The client sends it again under the same key until it is answered.
func (one *ship) ask(ctx context.Context, draw int, target gql.Member, count int) (operation, what string, err error) {
	key := client.NewKey()
	short := gql.MemberInput{MemberId: target.Id, Reason: "chaos", IdempotencyKey: key, DeadlineSeconds: 120}
	switch {
	case draw < 22 && count < 3:
		got, err := gql.AddMembers(ctx, one.client, gql.AddMembersInput{
			InstanceId: one.id, ComponentKey: "unit", Count: 1, AllocationIds: one.allocations, IdempotencyKey: key, DeadlineSeconds: 120,
		})
		return first(got, err, func() string { return got.AddMembers.Operation.Id }), "addMembers", err
	case draw < 40 && count > 1:
		got, err := gql.RemoveMember(ctx, one.client, gql.RemoveMemberInput{MemberId: target.Id, Reason: "chaos", IdempotencyKey: key, DeadlineSeconds: 120})
		return first(got, err, func() string { return got.RemoveMember.Operation.Id }), "removeMember", err
	case draw < 48:
		got, err := gql.ReplaceMember(ctx, one.client, gql.ReplaceMemberInput{MemberId: target.Id, Reason: "chaos", IdempotencyKey: key, DeadlineSeconds: 120})
		return first(got, err, func() string { return got.ReplaceMember.Operation.Id }), "replaceMember", err
	case draw < 58:
		got, err := gql.DrainMember(ctx, one.client, gql.DrainMemberInput{MemberId: target.Id, Reason: "chaos", IdempotencyKey: key, DeadlineSeconds: 120})
		return first(got, err, func() string { return got.DrainMember.Operation.Id }), "drainMember", err
	case draw < 70:
		got, err := gql.UncordonMember(ctx, one.client, short)
		return first(got, err, func() string { return got.UncordonMember.Operation.Id }), "uncordonMember", err
	case draw < 78:
		got, err := gql.CordonMember(ctx, one.client, short)
		return first(got, err, func() string { return got.CordonMember.Operation.Id }), "cordonMember", err
	case draw < 88:
		labels := json.RawMessage(fmt.Sprintf(`{"draw":"%d"}`, draw))
		got, err := gql.LabelMember(ctx, one.client, gql.LabelMemberInput{MemberId: target.Id, Labels: labels, Reason: "chaos", IdempotencyKey: key})
		return first(got, err, func() string { return got.LabelMember.Operation.Id }), "labelMember", err
	default:
		config := json.RawMessage(fmt.Sprintf(`{"mark":%d}`, one.rng.IntN(1000)))
		got, err := gql.UpgradeInstance(ctx, one.client, gql.UpgradeInstanceInput{InstanceId: one.id, Config: config, IdempotencyKey: key, DeadlineSeconds: 120})
		return first(got, err, func() string { return got.UpgradeInstance.Operation.Id }), "upgradeInstance", err
	}
}

func first(_ any, err error, id func() string) string {
	if err != nil {
		return ""
	}
	return id()
}

// members are those that are not gone.
func (one *ship) members(ctx context.Context) ([]gql.Member, error) {
	page, err := gql.ListMembers(ctx, one.client, one.id, 100, "")
	if err != nil {
		return nil, err
	}
	var present []gql.Member
	for _, edge := range page.Instance.Members.Edges {
		if edge.Node.Status != gql.MemberStatusRemoved {
			present = append(present, edge.Node)
		}
	}
	return present, nil
}

// refused counts a refusal by its code: a change that clashes with another is none of the suite's faults.
func (s *Suite) refused(what string, err error) {
	code := "none"
	if found, ok := client.AsError(err); ok {
		code = found.Code
		if code == client.CodeInvalidArgument || code == client.CodeInternal {
			s.say("%s: %v", what, err) // the suite asks nothing that is malformed
		}
	} else if err != nil {
		code = "unanswered"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[what+" "+code]++
}

// clear tears everything down, and gives the capacity back.
func (s *Suite) clear(ctx context.Context, fleet []*ship) error {
	for _, one := range fleet {
		got, err := gql.DecommissionInstance(ctx, one.client, gql.DecommissionInstanceInput{InstanceId: one.id, IdempotencyKey: client.NewKey()})
		if err != nil {
			return fmt.Errorf("tear instance %d down: %w", one.number, err)
		}
		s.accept(got.DecommissionInstance.Operation.Id, "decommissionInstance")
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	for _, one := range fleet {
		for _, allocation := range one.allocations {
			got, err := gql.ReleaseAllocation(ctx, one.client, gql.ReleaseAllocationInput{AllocationId: allocation, IdempotencyKey: client.NewKey()})
			if err != nil {
				return fmt.Errorf("give allocation %s back: %w", allocation, err)
			}
			s.accept(got.ReleaseAllocation.Operation.Id, "releaseAllocation")
		}
	}
	return s.settle(ctx)
}

// settle waits until every accepted operation has ended.
func (s *Suite) settle(ctx context.Context) error {
	s.mu.Lock()
	open := make([]string, 0, len(s.accepted))
	for operation := range s.accepted {
		open = append(open, operation)
	}
	s.mu.Unlock()
	c, err := s.client(0)
	if err != nil {
		return err
	}
	for _, operation := range open {
		last := ""
		_, err := c.WaitOperation(ctx, operation, func(op *gql.OperationDetail) { last = fmt.Sprintf("%s %s %q", op.Kind, op.State, op.Message) })
		if err != nil {
			return fmt.Errorf("operation %s (%s) does not end: %w", operation, last, err)
		}
	}
	return nil
}
