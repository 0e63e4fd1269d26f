package authz

import (
	"fmt"
	"math"
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// risks are the risks of app actions, the least first.
var risks = []lifecycle.ActionRisk{lifecycle.RiskRead, lifecycle.RiskWrite, lifecycle.RiskDestructive}

// RequireRisk refuses an app action that is riskier than the actor's limit: FORBIDDEN with ACCOUNT_LIMIT. A risk that
// this build does not know is the highest.
func (a *Actor) RequireRisk(risk lifecycle.ActionRisk) error {
	if a.Limits.permit(risk) {
		return nil
	}
	return fault.New(fault.Forbidden, "the service account may not request actions of risk %s: its limit is %s", risk,
		a.Limits.MaxRisk).
		With(fault.Reason{Code: fault.AccountLimit, Message: "limits.maxRisk"})
}

// Within returns the limits of an account that acts for one instance alone: that, and of the allocations that it is
// limited to, these. It is false where the limits leave the instance out.
func (l Limits) Within(instance ids.ID) (Limits, bool) {
	if len(l.Objects) > 0 && !slices.Contains(l.Objects, instance) {
		return Limits{}, false
	}
	objects := []ids.ID{instance}
	for _, id := range l.Objects {
		if id.Is(ids.Allocation) {
			objects = append(objects, id)
		}
	}
	l.Objects = objects
	return l, true
}

// permit reports whether the limits leave actions of the risk to the account.
func (l *Limits) permit(risk lifecycle.ActionRisk) bool {
	at := slices.Index(risks, risk)
	return l.MaxRisk == "" || at >= 0 && at <= slices.Index(risks, l.MaxRisk)
}

// told describes the other limits of an account that holds a key; empty without any.
func (l *Limits) told() string {
	text := ""
	if l.MaxRisk != "" {
		text += fmt.Sprintf("; of app actions, those of risk up to %s", l.MaxRisk)
	}
	if l.OperationsPerHour > 0 {
		text += fmt.Sprintf("; at most %d operations an hour", l.OperationsPerHour)
	}
	return text
}

// Compare returns which limits of the next ones let an account do more than these, and which less, by the names that
// refusals use. A change of objects can do both.
func (l Limits) Compare(next Limits) (wider, narrower []string) {
	note := func(name string, widens, narrows bool) {
		if widens {
			wider = append(wider, name)
		}
		if narrows {
			narrower = append(narrower, name)
		}
	}
	note("objectIds", beyond(next.Objects, l.Objects), beyond(l.Objects, next.Objects))
	most, will := riskRank(l.MaxRisk), riskRank(next.MaxRisk)
	note("maxRisk", will > most, will < most)
	hourly, becomes := perHour(l), perHour(next)
	note("operationsPerHour", becomes > hourly, becomes < hourly)
	return wider, narrower
}

// beyond reports whether objects reach one that the others do not; none reach everything.
func beyond(objects, others []ids.ID) bool {
	if len(others) == 0 {
		return false
	}
	return len(objects) == 0 || slices.ContainsFunc(objects, func(id ids.ID) bool {
		return !slices.Contains(others, id)
	})
}

// riskRank orders highest risks; none is the highest of all.
func riskRank(most lifecycle.ActionRisk) int {
	if at := slices.Index(risks, most); at >= 0 {
		return at
	}
	return len(risks)
}

// perHour is how many operations an hour the limits leave.
func perHour(l Limits) int {
	if l.OperationsPerHour == 0 {
		return math.MaxInt
	}
	return l.OperationsPerHour
}
