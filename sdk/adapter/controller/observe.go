package controller

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// atOnce bounds the members that are observed at once.
const atOnce = 16

// Observe observes members at once and judges the instance by them: unknown as long as it may be better or worse than
// it seems. what names what a healthy member does, such as "peers run", for the message. The error is that of ctx.
func Observe(
	ctx context.Context, members []adapter.Member, what string,
	one func(ctx context.Context, member adapter.Member) adapter.MemberObservation,
) (adapter.Observation, error) {
	seen := adapter.Observation{Members: make([]adapter.MemberObservation, len(members))}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, member := range members {
		group.Go(func() error {
			seen.Members[i] = one(ctx, member)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	seen.Health, seen.Message = whole(seen.Members, what)
	seen.Roles = byComponent(members, seen.Members, what)
	return seen, ctx.Err()
}

// byComponent sums up what was observed of each component's members, in the order of the members.
func byComponent(members []adapter.Member, observed []adapter.MemberObservation,
	what string) (list []adapter.RoleObservation) {
	of := make(map[string][]adapter.MemberObservation)
	for i, member := range members {
		of[member.ComponentKey] = append(of[member.ComponentKey], observed[i])
	}
	for _, member := range members {
		part, left := of[member.ComponentKey]
		if !left {
			continue
		}
		delete(of, member.ComponentKey)
		health, summary := whole(part, what)
		list = append(list, adapter.RoleObservation{ComponentKey: member.ComponentKey, Health: health,
			Summary: summary})
	}
	return list
}

// whole judges an instance by its members.
func whole(members []adapter.MemberObservation, what string) (adapter.Health, string) {
	count := map[adapter.Health]int{}
	for _, member := range members {
		count[member.Health]++
	}
	message := fmt.Sprintf("%d of %d %s", count[adapter.Healthy], len(members), what)
	if count[adapter.HealthUnknown] > 0 {
		message += fmt.Sprintf(", %d unknown", count[adapter.HealthUnknown])
	}
	switch {
	case len(members) > 0 && count[adapter.Healthy] == len(members):
		return adapter.Healthy, message
	case count[adapter.Healthy] > 0:
		return adapter.Degraded, message
	case count[adapter.HealthUnknown] > 0:
		return adapter.HealthUnknown, message
	}
	return adapter.Unhealthy, message
}
