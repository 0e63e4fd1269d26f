package verdict

import (
	"errors"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/scaling"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// ErrMoved says that a component has another number of wanted members than when its scaling was settled: the request
// has to begin again.
var ErrMoved = errors.New("the desired number of members has changed")

// scale checks a scaling against what there is now, and chooses the members that leave.
func (v *Verdicts) scale() error {
	if v.Scale == nil {
		return nil
	}
	if _, known := v.Manifest.Component(v.ComponentKey); !known {
		return v.unknownComponent()
	}
	switch {
	case v.Wanted[v.ComponentKey] != v.Scale.From:
		return ErrMoved
	case v.Count == 0:
		return fault.New(fault.FailedPrecondition, "component %q already has %d desired members", v.ComponentKey,
			v.Scale.To).At("input.count")
	case v.Kind == lifecycle.MemberRemove:
		return v.chooseGoing()
	}
	return v.CheckScale()
}

func (v *Verdicts) unknownComponent() error {
	return fault.New(fault.InvalidArgument, "the app has no component %q", v.ComponentKey).
		With(fault.Reason{Code: fault.UnknownComponent, Message: "is not a component of this app",
			Path: "input.componentKey"})
}

// chooseGoing chooses the members that a scaling takes out, among those that no open operation excludes.
func (v *Verdicts) chooseGoing() error {
	candidates, inTheWay := v.candidates()
	if len(candidates) < v.Count {
		if inTheWay != nil {
			return operation.InTheWay(inTheWay)
		}
		return fault.New(fault.FailedPrecondition, "%d members are to be removed from component %q, and only %d can be",
			v.Count, v.ComponentKey, len(candidates)).At("input.count")
	}
	var chosen []ids.ID
	for _, one := range scaling.Order(candidates, v.Scale.Preferred)[:v.Count] {
		chosen = append(chosen, one.ID)
	}
	for _, member := range v.Members {
		if slices.Contains(chosen, member.ID) {
			v.Going = append(v.Going, member)
		}
	}
	slices.SortFunc(v.Going, func(a, b *db.Member) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return nil
}

// candidates returns the members of the component that may be removed now, and an operation that excludes another one.
func (v *Verdicts) candidates() (list []scaling.Candidate, inTheWay *db.Operation) {
	for _, member := range v.Members {
		if member.ComponentKey != v.ComponentKey || !slices.Contains(v.Rule.Member, member.Status) {
			continue
		}
		if op, _ := operation.Clash(v.Kind, []ids.ID{member.ID}, v.Open); op != nil {
			inTheWay = op
			continue
		}
		list = append(list, scaling.Candidate{
			ID: member.ID, Index: member.Ordinal, Status: member.Status, Health: member.Health,
			Cordoned: member.Cordoned,
		})
	}
	return list, inTheWay
}

// Choosable returns the members among whom the app's adapter chooses those that leave; empty when it does not choose,
// or there is nothing to choose.
func (v *Verdicts) Choosable() (may []ids.ID) {
	if v.Scale == nil || v.Kind != lifecycle.MemberRemove || v.Refused() != nil ||
		!change.Described(v.Adapter, v.Instance.AppSlug).ChoosesLeaving {
		return nil
	}
	candidates, _ := v.candidates()
	if len(candidates) <= v.Count {
		return nil
	}
	for _, one := range candidates {
		may = append(may, one.ID)
	}
	return may
}

// Leaves returns how many of the members that leave are of each component.
func (v *Verdicts) Leaves() map[string]int {
	counts := make(map[string]int)
	for _, member := range v.Going {
		counts[member.ComponentKey]++
	}
	return counts
}
