package change

import (
	"slices"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Rule is what holds for every change of one kind. testdata/rules.golden shows all of them.
type Rule struct {
	Kind lifecycle.OperationKind
	// Noun is the change in a sentence.
	Noun string
	// Instance are the states that the instance may be in.
	Instance []lifecycle.InstanceStatus
	// Member are the states that the member may be in; nil when no member is named.
	Member []lifecycle.MemberStatus
	// Places marks kinds that put members into allocations.
	Places bool
	// More is the change of the component's desired members, for each member of the request.
	More int
	// Reason is when a reason must be given, force aside; empty for never.
	Reason string
	// Disturbs marks kinds that take something away from users of the instance, or may.
	Disturbs bool
	// Touches is what happens to the member, or to each member of the instance.
	Touches lifecycle.PlanAction
	// Reversible reports whether the change can be taken back, and Reversal how, or why not.
	Reversible bool
	Reversal   string
}

var (
	running  = []lifecycle.InstanceStatus{lifecycle.InstanceRunning}
	anyState = []lifecycle.InstanceStatus{
		lifecycle.InstanceCreated, lifecycle.InstanceStarting, lifecycle.InstanceRunning, lifecycle.InstanceStopping,
		lifecycle.InstanceFailed,
	}
	inService = []lifecycle.MemberStatus{lifecycle.MemberActive, lifecycle.MemberDraining, lifecycle.MemberDrained}
	unremoved = []lifecycle.MemberStatus{
		lifecycle.MemberPending, lifecycle.MemberJoining, lifecycle.MemberActive, lifecycle.MemberDraining,
		lifecycle.MemberDrained,
		lifecycle.MemberRemoving, lifecycle.MemberFailed,
	}
)

// rules is the table of kinds. A member in JOINING or REMOVING always has its operation, unless that
// has failed: then it may be taken out or replaced.
var rules = []Rule{
	{Kind: lifecycle.MembersAdd, Noun: "addition of members", Instance: running, Places: true, More: 1,
		Touches:    lifecycle.PlanAdd,
		Reversible: true, Reversal: "remove the new members"},
	{Kind: lifecycle.MemberDrain, Noun: "drain", Disturbs: true, Instance: running, Member: inService[:2],
		Touches:    lifecycle.PlanDrain,
		Reversible: true, Reversal: "cancel the drain, or uncordon the member"},
	{Kind: lifecycle.MemberCordon, Noun: "cordon", Instance: running, Member: inService[:1],
		Touches: lifecycle.PlanChange, Reversible: true, Reversal: "uncordon the member"},
	{Kind: lifecycle.MemberUncordon, Noun: "uncordon", Instance: running, Member: inService,
		Touches: lifecycle.PlanChange, Reversible: true, Reversal: "cordon the member"},
	{Kind: lifecycle.MemberLabel, Noun: "change of labels", Instance: running, Member: inService,
		Touches:    lifecycle.PlanChange,
		Reversible: true, Reversal: "set its former labels again"},
	{Kind: lifecycle.MemberRemove, Noun: "removal", Disturbs: true, Instance: running, Member: unremoved, More: -1,
		Touches:  lifecycle.PlanRemove,
		Reversal: "what a removed member stored outside of volumes is deleted; a new member can be added"},
	{Kind: lifecycle.MemberReplace, Noun: "replacement", Disturbs: true, Instance: running,
		Member: []lifecycle.MemberStatus{
			lifecycle.MemberActive, lifecycle.MemberDraining, lifecycle.MemberDrained, lifecycle.MemberRemoving,
			lifecycle.MemberFailed},
		Places: true, Reason: "the member is ACTIVE and HEALTHY", Touches: lifecycle.PlanReplace,
		Reversal: "what the old member stored outside of volumes is deleted when it is removed"},
	{Kind: lifecycle.MemberRecover, Noun: "recovery", Instance: running,
		Member:  []lifecycle.MemberStatus{lifecycle.MemberFailed},
		Touches: lifecycle.PlanRecover, Reversible: true, Reversal: "remove the member"},
	{Kind: lifecycle.InstanceUpgrade, Noun: "upgrade", Disturbs: true, Instance: running, Touches: lifecycle.PlanChange,
		Reversible: true, Reversal: "roll back to the previous generation"},
	{Kind: lifecycle.InstanceRollback, Noun: "rollback", Disturbs: true, Instance: running,
		Touches: lifecycle.PlanChange, Reversible: true, Reversal: "upgrade, or roll back to another generation"},
	{Kind: lifecycle.InstanceDecommission, Noun: "decommission", Disturbs: true, Instance: anyState,
		Touches:  lifecycle.PlanRemove,
		Reversal: "what the instance stored outside of volumes is deleted; a new instance can be launched"},
}

// launchRule is apart from the table: a launch has no instance whose state a rule could check.
var launchRule = Rule{Kind: lifecycle.InstanceCreate, Noun: "launch", Places: true, Touches: lifecycle.PlanAdd,
	Reversible: true, Reversal: "decommission the instance"}

// Rules returns the rule of every kind of change but a launch.
func Rules() []Rule { return slices.Clone(rules) }

func ruleOf(kind lifecycle.OperationKind) Rule {
	if kind == lifecycle.InstanceCreate {
		return launchRule
	}
	at := slices.IndexFunc(rules, func(r Rule) bool { return r.Kind == kind })
	return rules[at]
}
