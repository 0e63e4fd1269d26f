package triage

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
)

// action is a mutation that a report can name, with the documents by which a caller carries it out.
type action struct {
	// mutation and plan are the fields of the API; plan is empty for a mutation without one.
	mutation, plan string
	// argument names the object in the inputs of both.
	argument string
	// input and planInput are the types of the inputs; planInput is empty where the plan takes the object by itself.
	input, planInput string
	// answer is what the mutation's document selects, and shown what the plan's does.
	answer, shown string
	// repeatable: the input takes an idempotency key. forcible: it and the plan's input take force.
	repeatable, forcible bool
}

// What the documents select: of a mutation enough to follow what it began, and of a plan enough to agree to it.
const (
	began    = `operation { id kind state }`
	itself   = `id kind state`
	released = `__typename hash allowed code reasons { path code message } allocation { id name } instance { id name }
    cost { totals { currency before after delta left } unpriced
      capacity { effect count shape gpuCount sku region hourly { amount currency } } }`
	planned = `__typename hash kind allowed instance { id name } force reversible reversal deadlineSeconds onDeadline
    keepFailed
    members { action componentKey reachable profile isolationClass
      member { id componentKey index status node { id name } }
      allocation { id name } capacity { sku region shape hourlyPrice { amount currency } } }
    workLost { kind id workId name memberId owner since message } workLostTotal
    workAtRisk { kind id workId name memberId owner since message } workAtRiskTotal
    verdicts { source outcome code reasons { path code message } } supersedes { id kind state } change
    impact { instanceId controlPlaneScope attachedTotal membersTotal openOperations
      projects { projectId displayName attachedAt subjects recentActions } }
    cost { totals { currency before after delta left } unpriced
      capacity { effect count shape gpuCount sku region hourly { amount currency } } }`
)

// actions are all that a report can name. A test checks each of their documents against the SDL.
var actions = []action{
	{mutation: "cancelOperation", argument: "operationId", input: "CancelOperationInput", answer: began},
	{mutation: "breakGlassEndOperation", argument: "operationId", input: "BreakGlassEndOperationInput", answer: itself},
	{mutation: "retryOperation", argument: "operationId", input: "RetryOperationInput", answer: began, repeatable: true,
		plan: "planRetryOperation", planInput: "PlanRetryOperationInput", shown: planned},
	{mutation: "decommissionInstance", argument: "instanceId", input: "DecommissionInstanceInput", answer: began,
		plan: "planDecommissionInstance", planInput: "PlanDecommissionInstanceInput", shown: planned,
		repeatable: true, forcible: true},
	{mutation: "releaseAllocation", argument: "allocationId", input: "ReleaseAllocationInput", answer: began,
		plan: "planReleaseAllocation", shown: released, repeatable: true},
	{mutation: "drainMember", argument: "memberId", input: "DrainMemberInput", answer: began,
		plan: "planDrainMember", planInput: "PlanMemberInput", shown: planned, repeatable: true, forcible: true},
	{mutation: "removeMember", argument: "memberId", input: "RemoveMemberInput", answer: began,
		plan: "planRemoveMember", planInput: "PlanMemberInput", shown: planned, repeatable: true, forcible: true},
	{mutation: "replaceMember", argument: "memberId", input: "ReplaceMemberInput", answer: began,
		plan: "planReplaceMember", planInput: "PlanReplaceMemberInput", shown: planned, repeatable: true,
		forcible: true},
	{mutation: "recoverMember", argument: "memberId", input: "MemberInput", answer: began, repeatable: true},
}

// find returns the action of a mutation. It panics for one that is not in the table: no caller could carry it out.
func find(mutation string) action {
	for _, one := range actions {
		if one.mutation == mutation {
			return one
		}
	}
	panic("triage names " + mutation + ", which is not in its table of actions")
}

// ready fills in the documents and variables of an action on an object.
func ready(mutation string, value ids.ID, force bool, why, key string) *Next {
	one := find(mutation)
	next := &Next{Mutation: one.mutation, Plan: one.plan, Argument: one.argument, Value: value, Force: force,
		Document: fmt.Sprintf("mutation Triage($input: %s!) {\n  %s(input: $input) {\n    %s\n  }\n}", one.input,
			one.mutation, one.answer)}
	input := map[string]any{one.argument: value, "reason": why}
	if force {
		input["force"] = true
	}
	if one.repeatable {
		input["idempotencyKey"] = key
	}
	next.Variables = document(map[string]any{"input": input})
	switch {
	case one.plan == "":
	case one.planInput == "":
		next.PlanDocument = fmt.Sprintf("query TriagePlan($%[1]s: ID!) {\n  %[2]s(%[1]s: $%[1]s) {\n    %[3]s\n  }\n}",
			one.argument, one.plan, one.shown)
		next.PlanVariables = document(map[string]any{one.argument: value})
	default:
		next.PlanDocument = fmt.Sprintf("query TriagePlan($input: %s!) {\n  %s(input: $input) {\n    %s\n  }\n}",
			one.planInput, one.plan, one.shown)
		planned := map[string]any{one.argument: value}
		if force {
			planned["force"] = true
		}
		next.PlanVariables = document(map[string]any{"input": planned})
	}
	return next
}

// document encodes strings and booleans, which cannot fail.
func document(value map[string]any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
