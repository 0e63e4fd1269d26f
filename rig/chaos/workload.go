package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	deadline = 120              // seconds that an operation of a member or of a change may take
	patience = 20 * time.Second // that the next change waits for the one before
	tries    = 6                // asked at most for each change to be accepted
)

// ask is a change that may be requested.
type ask struct {
	what   string
	weight int
	// fits says whether it makes sense for an instance with so many members; nil: always.
	fits func(one *ship, members int) bool
	send func(ctx context.Context, one *ship, target gql.Member, key string) (operation string, err error)
}

// asks is the table of changes. The client sends each again under its key until it is answered.
var asks = []ask{
	{"addMembers", 22, func(_ *ship, members int) bool { return members < 3 },
		func(ctx context.Context, one *ship, _ gql.Member, key string) (string, error) {
			got, err := gql.AddMembers(ctx, one.client, gql.AddMembersInput{
				InstanceId: one.id, ComponentKey: "unit", Count: 1,
				AllocationIds:  one.allocations[one.rng.IntN(2):][:1],
				IdempotencyKey: key, DeadlineSeconds: deadline,
			})
			if err != nil {
				return "", err
			}
			return got.AddMembers.Operation.Id, nil
		}},
	{"removeMember", 14, func(_ *ship, members int) bool { return members > 1 },
		func(ctx context.Context, one *ship, target gql.Member, key string) (string, error) {
			got, err := gql.RemoveMember(ctx, one.client, gql.RemoveMemberInput{
				MemberId: target.Id, Reason: "chaos", IdempotencyKey: key, DeadlineSeconds: deadline,
				Force: one.rng.IntN(4) == 0,
			})
			if err != nil {
				return "", err
			}
			return got.RemoveMember.Operation.Id, nil
		}},
	{"replaceMember", 8, nil, func(ctx context.Context, one *ship, target gql.Member, key string) (string, error) {
		got, err := gql.ReplaceMember(ctx, one.client,
			gql.ReplaceMemberInput{MemberId: target.Id, Reason: "chaos", IdempotencyKey: key,
				DeadlineSeconds: deadline})
		if err != nil {
			return "", err
		}
		return got.ReplaceMember.Operation.Id, nil
	}},
	{"drainMember", 10, nil, func(ctx context.Context, one *ship, target gql.Member, key string) (string, error) {
		got, err := gql.DrainMember(ctx, one.client, gql.DrainMemberInput{MemberId: target.Id, Reason: "chaos",
			IdempotencyKey: key, DeadlineSeconds: deadline})
		if err != nil {
			return "", err
		}
		return got.DrainMember.Operation.Id, nil
	}},
	{"uncordonMember", 12, nil, func(ctx context.Context, one *ship, target gql.Member, key string) (string, error) {
		got, err := gql.UncordonMember(ctx, one.client,
			gql.MemberInput{MemberId: target.Id, Reason: "chaos", IdempotencyKey: key, DeadlineSeconds: deadline})
		if err != nil {
			return "", err
		}
		return got.UncordonMember.Operation.Id, nil
	}},
	{"cordonMember", 8, nil, func(ctx context.Context, one *ship, target gql.Member, key string) (string, error) {
		got, err := gql.CordonMember(ctx, one.client, gql.MemberInput{MemberId: target.Id, Reason: "chaos",
			IdempotencyKey: key, DeadlineSeconds: deadline})
		if err != nil {
			return "", err
		}
		return got.CordonMember.Operation.Id, nil
	}},
	{"labelMember", 10, nil, func(ctx context.Context, one *ship, target gql.Member, key string) (string, error) {
		labels := json.RawMessage(fmt.Sprintf(`{"draw":"%d"}`, one.rng.IntN(1000)))
		got, err := gql.LabelMember(ctx, one.client, gql.LabelMemberInput{MemberId: target.Id, Labels: labels,
			Reason: "chaos", IdempotencyKey: key})
		if err != nil {
			return "", err
		}
		return got.LabelMember.Operation.Id, nil
	}},
	{"upgradeInstance", 8, nil, func(ctx context.Context, one *ship, _ gql.Member, key string) (string, error) {
		config := json.RawMessage(fmt.Sprintf(`{"mark":%d}`, one.rng.IntN(1000)))
		got, err := gql.UpgradeInstance(ctx, one.client,
			gql.UpgradeInstanceInput{InstanceId: one.id, Config: config, IdempotencyKey: key,
				DeadlineSeconds: deadline})
		if err != nil {
			return "", err
		}
		return got.UpgradeInstance.Operation.Id, nil
	}},
	{"retryOperation", 14, func(one *ship, _ int) bool { return one.canceled != "" },
		func(ctx context.Context, one *ship, _ gql.Member, key string) (string, error) {
			got, err := gql.RetryOperation(ctx, one.client,
				gql.RetryOperationInput{OperationId: one.canceled, Reason: "chaos", IdempotencyKey: key})
			one.canceled = ""
			if err != nil {
				return "", err
			}
			return got.RetryOperation.Operation.Id, nil
		}},
}

// draw chooses an ask that fits, by weight.
func (one *ship) draw(members int) ask {
	var fit []ask
	total := 0
	for _, each := range asks {
		if each.fits == nil || each.fits(one, members) {
			fit, total = append(fit, each), total+each.weight
		}
	}
	left := one.rng.IntN(total)
	for _, each := range fit {
		if left -= each.weight; left < 0 {
			return each
		}
	}
	return fit[len(fit)-1]
}

// work requests each instance's changes, all instances side by side, and goes on until each fault was done and enough
// operations were accepted. The first instance is torn down half-way, in the middle of what it does.
func (s *Suite) work(ctx context.Context, fleet []*ship) {
	var hands sync.WaitGroup
	for _, one := range fleet {
		if one.wreck {
			continue
		}
		hands.Go(func() {
			for done, asked := 0, 0; asked < tries*s.Changes && ctx.Err() == nil &&
				(done < s.Changes || !s.enough()); asked++ {
				if s.change(ctx, one) {
					done++
				}
				if one.number == 0 && 2*done >= s.Changes {
					s.refused("decommissionInstance", s.tearDown(ctx, one))
					return
				}
			}
		})
	}
	hands.Wait()
}

// enough reports whether each fault was done and as many operations were accepted as must be.
func (s *Suite) enough() bool { return s.harmed() && s.Accepted() >= s.Operations }

// change requests one change at random, mostly waits for its end, and reports whether it was accepted.
func (s *Suite) change(ctx context.Context, one *ship) bool {
	members, err := one.members(ctx)
	if err != nil || len(members) == 0 {
		s.refused("members", err)
		return false
	}
	target := members[one.rng.IntN(len(members))]
	next := one.draw(len(members))
	operation, err := next.send(ctx, one, target, client.NewKey())
	if err != nil {
		s.refused(next.what, err)
		s.await(ctx, one)
		return false
	}
	one.last = operation
	s.accept(ctx, one.client, operation, next.what)
	switch draw := one.rng.IntN(10); {
	case draw < 2: // the next change is asked while this one runs
	case draw < 4:
		_, err := gql.CancelOperation(ctx, one.client, gql.CancelOperationInput{OperationId: operation,
			Reason: "chaos"})
		s.refused("cancelOperation", err)
		one.canceled = operation
	default:
		s.await(ctx, one)
	}
	return true
}

// await waits for the latest operation for a while; what takes longer is looked at when all has settled.
func (s *Suite) await(ctx context.Context, one *ship) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, _ = one.client.WaitOperation(bounded, one.last, nil)
}

// refused counts a refusal by its code, and ignores a nil error. A change that clashes with another is not a fault of
// the suite.
func (s *Suite) refused(what string, err error) {
	if err == nil {
		return
	}
	code := "unanswered"
	if found, ok := client.AsError(err); ok {
		code = found.Code
		if code == client.CodeInvalidArgument || code == client.CodeInternal {
			s.wrong("%s: %v", what, err) // the suite asks nothing that is malformed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[what+" "+code]++
}
