package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// offlineMost bounds how long a silent node may count as online, with servers killed all the while.
const offlineMost = 2 * time.Minute

// loseNode cuts a node off until it counts as lost and removes a member on it by force. The member must be removed
// although its node cannot prove that it has ended, and what may be left of it must be listed. Then the node comes
// back.
func (s *Suite) loseNode(ctx context.Context, wreck *ship) error {
	members, err := wreck.members(ctx)
	if err != nil {
		return fmt.Errorf("list its members: %w", err)
	}
	at := slices.IndexFunc(members, func(m gql.Member) bool { return m.Node != nil })
	if at < 0 {
		return fmt.Errorf("none of %d members is on a node", len(members))
	}
	target := members[at]
	number := slices.IndexFunc(s.stack.Nodes, func(node *stack.Node) bool { return node.Name() == target.Node.Name })
	if number < 0 {
		return fmt.Errorf("there is no node %s", target.Node.Name)
	}
	node := s.stack.Nodes[number]
	s.lose(node.Name())
	defer func() {
		s.lose("")
		if err := node.RestoreNetwork(context.WithoutCancel(ctx)); err != nil {
			s.wrong("restore the network of %s: %v", node.Name(), err)
		}
	}()
	if err := node.CutNetwork(ctx); err != nil {
		return err
	}
	if err := s.awaitOffline(ctx, target.Node.Id); err != nil {
		return err
	}
	s.say("%s node %s counts as lost", time.Now().Format(time.TimeOnly), node.Name())
	return s.removeUnproved(ctx, wreck, target)
}

func (s *Suite) lose(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = name
}

func (s *Suite) awaitOffline(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, offlineMost)
	defer cancel()
	for {
		page, err := gql.ListNodes(ctx, s.stack.Operator, 100, "")
		if err == nil {
			for _, edge := range page.Nodes.Edges {
				if edge.Node.Id == id && edge.Node.Status == gql.NodeStatusOffline {
					return nil
				}
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the node is cut off and does not count as lost: %w", ctx.Err())
		}
		pause(ctx, 250*time.Millisecond)
	}
}

// removeUnproved takes the member out by force.
func (s *Suite) removeUnproved(ctx context.Context, wreck *ship, target gql.Member) error {
	got, err := gql.RemoveMember(ctx, wreck.client, gql.RemoveMemberInput{
		MemberId: target.Id, Force: true, Reason: "its node is lost", IdempotencyKey: client.NewKey(),
		DeadlineSeconds: deadline,
	})
	if err != nil {
		return fmt.Errorf("remove by force: %w", err)
	}
	operation := got.RemoveMember.Operation.Id
	s.accept(ctx, wreck.client, operation, "removeMember by force")
	ended, err := wreck.client.WaitOperation(ctx, operation, nil)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", operation, err)
	}
	if ended.State != gql.OperationStateSucceeded || ended.Outcome == nil || *ended.Outcome != gql.OutcomeUnverified {
		return fmt.Errorf("%s is %s with outcome %v and not UNVERIFIED: %s", operation, ended.State, ended.Outcome,
			ended.Message)
	}
	open, err := s.orphans(ctx, wreck.client)
	if err != nil {
		return fmt.Errorf("list orphans: %w", err)
	}
	if !slices.ContainsFunc(open, func(o gql.Orphan) bool { return o.Member != nil && o.Member.Id == target.Id }) {
		return fmt.Errorf("%s is UNVERIFIED and no orphan is listed for %s", operation, target.Id)
	}
	return nil
}
