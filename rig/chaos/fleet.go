package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// ship is an instance under the suite's hands. One goroutine at a time has it.
type ship struct {
	number      int
	id          string
	wreck       bool // one of its nodes is lost; nothing else is asked of it
	gone        bool // a teardown of it was accepted
	allocations []string
	client      *client.Client
	rng         *rand.Rand
	last        string // the latest accepted operation
	canceled    string // the latest operation that somebody asked to stop
	past        string // the cursor up to which all members are gone
}

// launch rents capacity and launches the instances, before anything is killed, with every subscriber
// in its place.
func (s *Suite) launch(ctx context.Context) ([]*watcher, []*ship, error) {
	first, err := s.client(0)
	if err != nil {
		return nil, nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, firstEvent)
	defer cancel()
	began := make(chan *gql.Event, 1)
	failed := make(chan error, 1)
	go func() {
		event, err := firstOf(bounded, first.ProjectActivity(bounded, s.stack.Demo.ProjectID, ""))
		if err != nil {
			failed <- err
			return
		}
		began <- event
	}()
	fleet, err := s.launchAll(ctx)
	if err != nil {
		return nil, nil, err
	}
	watched, err := s.watchTimelines(ctx, fleet)
	if err != nil {
		return nil, nil, err
	}
	select {
	case event := <-began:
		s.first = event.Id
		project, err := s.watchProject(ctx, event.Cursor)
		return append(watched, project...), fleet, err
	case err := <-failed:
		return nil, nil, fmt.Errorf("wait for the project's first event: %w", err)
	}
}

func (s *Suite) launchAll(ctx context.Context) ([]*ship, error) {
	fleet := make([]*ship, s.Instances+1)
	for i := range fleet {
		var err error
		if fleet[i], err = s.launchOne(ctx, i); err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
	}
	for _, one := range fleet {
		ended, err := one.client.WaitOperation(ctx, one.last, nil)
		if err != nil {
			return nil, fmt.Errorf("wait for the launch %s: %w", one.last, err)
		}
		if ended.State != gql.OperationStateSucceeded {
			return nil, fmt.Errorf("the launch %s is %s: %s", one.last, ended.State, ended.Message)
		}
	}
	return fleet, nil
}

// launchOne rents two allocations and launches an instance in the first, the last instance of the fleet
// in both.
func (s *Suite) launchOne(ctx context.Context, number int) (*ship, error) {
	c, err := s.client(number)
	if err != nil {
		return nil, err
	}
	rented, err := gql.RequestAllocation(ctx, c, gql.RequestAllocationInput{
		ProjectId: s.stack.Demo.ProjectID, Shape: gql.CapacityShapeGpuSlice, Count: 2, GpuCount: 1,
		IdempotencyKey: client.NewKey(),
	})
	if err != nil {
		return nil, fmt.Errorf("rent: %w", err)
	}
	made := &ship{number: number, client: c, rng: s.rng(uint64(100 + number)), wreck: number == s.Instances}
	for _, allocation := range rented.RequestAllocation.Allocations {
		made.allocations = append(made.allocations, allocation.Id)
	}
	input := gql.LaunchInstanceInput{
		ProjectId: s.stack.Demo.ProjectID, AppSlug: "chaos", Name: fmt.Sprintf("chaos-%d", number),
		AllocationIds: made.allocations[:1], IdempotencyKey: client.NewKey(),
	}
	if made.wreck {
		input.AllocationIds, input.Components = made.allocations, []gql.ComponentInput{{Key: "unit", Count: 2}}
	}
	launched, err := gql.LaunchInstance(ctx, c, input)
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	made.id, made.last = launched.LaunchInstance.Instance.Id, launched.LaunchInstance.Operation.Id
	s.accept(ctx, c, made.last, "launchInstance")
	return made, nil
}

// members returns the members that are not removed. A page of removed members alone is not read again: none comes back.
func (one *ship) members(ctx context.Context) ([]gql.Member, error) {
	var present []gql.Member
	for after := one.past; ; {
		page, err := gql.ListMembers(ctx, one.client, one.id, 100, after)
		if err != nil {
			return nil, err
		}
		for _, edge := range page.Instance.Members.Edges {
			if edge.Node.Status != gql.MemberStatusRemoved {
				present = append(present, edge.Node)
			}
		}
		end := page.Instance.Members.PageInfo
		if !end.HasNextPage || end.EndCursor == nil {
			if len(present) == 0 {
				one.past = "" // ids begin with a time, by the clock of a server that may have been turned
			}
			return present, nil
		}
		after = *end.EndCursor
		if len(present) == 0 {
			one.past = after
		}
	}
}

// clear tears down what is still there, and gives the capacity back.
func (s *Suite) clear(ctx context.Context, fleet []*ship) error {
	for _, one := range fleet {
		seen, err := gql.GetInstance(ctx, one.client, one.id)
		if err != nil {
			return fmt.Errorf("read instance %d: %w", one.number, err)
		}
		if seen.Instance.Status == gql.InstanceStatusStopped {
			continue
		}
		if err := s.tearDown(ctx, one); err != nil {
			return err
		}
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	for _, one := range fleet {
		for _, allocation := range one.allocations {
			got, err := gql.ReleaseAllocation(ctx, one.client,
				gql.ReleaseAllocationInput{AllocationId: allocation, IdempotencyKey: client.NewKey()})
			if err != nil {
				return fmt.Errorf("release allocation %s: %w", allocation, err)
			}
			s.accept(ctx, one.client, got.ReleaseAllocation.Operation.Id, "releaseAllocation")
		}
	}
	return s.settle(ctx)
}

func (s *Suite) tearDown(ctx context.Context, one *ship) error {
	got, err := gql.DecommissionInstance(ctx, one.client,
		gql.DecommissionInstanceInput{InstanceId: one.id, IdempotencyKey: client.NewKey()})
	if err != nil {
		return fmt.Errorf("tear instance %d down: %w", one.number, err)
	}
	one.gone = true
	s.accept(ctx, one.client, got.DecommissionInstance.Operation.Id, "decommissionInstance")
	return nil
}

// settle waits until every accepted operation has ended.
func (s *Suite) settle(ctx context.Context) error {
	open, err := s.open(ctx)
	if err != nil {
		return err
	}
	c, err := s.client(0)
	if err != nil {
		return err
	}
	for _, operation := range open {
		last := ""
		_, err := c.WaitOperation(ctx, operation, func(op *gql.OperationDetail) {
			last = fmt.Sprintf("%s %s %q, blockers %+v", op.Kind, op.State, op.Message, op.Blockers)
		})
		if err != nil {
			return fmt.Errorf("operation %s (%s) does not end: %w", operation, last, err)
		}
		s.mu.Lock()
		s.ended[operation] = true
		s.mu.Unlock()
	}
	return nil
}

// open returns the accepted operations whose end was not observed. Most have ended long ago: one query finds all those.
func (s *Suite) open(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	var unseen []string
	for operation := range s.accepted {
		if !s.ended[operation] {
			unseen = append(unseen, operation)
		}
	}
	s.mu.Unlock()
	conn, err := pgx.Connect(ctx, s.stack.AdminDSN())
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	ended, err := list(ctx, conn, `SELECT id FROM operation WHERE id = ANY($1) AND ended_at IS NOT NULL`, unseen)
	if err != nil {
		return nil, fmt.Errorf("list operations that have ended: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, operation := range ended {
		s.ended[operation] = true
	}
	return slices.DeleteFunc(unseen, func(operation string) bool { return s.ended[operation] }), nil
}

// orphans returns the project's orphans that are not taken back yet.
func (s *Suite) orphans(ctx context.Context, on *client.Client) ([]gql.Orphan, error) {
	page, err := gql.ListOrphans(ctx, on, s.stack.Demo.ProjectID, false, 100, "")
	if err != nil {
		return nil, err
	}
	var open []gql.Orphan
	for _, edge := range page.Orphans.Edges {
		open = append(open, edge.Node)
	}
	return open, nil
}

// awaitOrphans waits until the platform has taken back everything that was left behind: every node is there. Like an
// operator, it requests a retry now where the next one is far off.
func (s *Suite) awaitOrphans(ctx context.Context) error {
	c, err := s.client(0)
	if err != nil {
		return err
	}
	for {
		open, err := s.orphans(ctx, c)
		if err != nil {
			return fmt.Errorf("list orphans: %w", err)
		}
		if len(open) == 0 {
			return nil
		}
		for _, orphan := range open {
			if time.Until(orphan.NextTryAt) > 5*time.Second {
				_, err := gql.RetryOrphan(ctx, c, orphan.Id)
				s.refused("retryOrphan", err)
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("left behind and not cleaned up: %+v: %w", open[0], ctx.Err())
		}
		pause(ctx, time.Second)
	}
}
