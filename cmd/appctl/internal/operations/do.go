package operations

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Khan/genqlient/graphql"
	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// commands are the commands that carry actions out by hand.
var commands = map[string]string{
	"cancelOperation": "ops cancel", "retryOperation": "ops retry", "decommissionInstance": "decommission",
	"releaseAllocation": "allocations release", "drainMember": "members drain", "removeMember": "members remove",
	"replaceMember": "members replace", "recoverMember": "members recover",
	"breakGlassEndOperation": "break-glass end-operation",
}

// byHand is the command of an action; empty for an action that this appctl does not know, which --do carries out all
// the same: its documents come with it.
func byHand(next *gql.TriageAction) string {
	name, known := commands[next.Mutation]
	if !known {
		return ""
	}
	text := fmt.Sprintf("appctl %s %s", name, next.Value)
	if next.Force {
		text += " --force"
	}
	if next.Force || next.Mutation == "breakGlassEndOperation" {
		text += " --reason …"
	}
	return text
}

// doFlags are those of carrying the next action out.
type doFlags struct {
	ChangeFlags
	do bool
}

func (f *doFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.do, "do", false, "carry out the next action: show its plan, ask, and send the plan's hash")
	flags.BoolVar(&f.planOnly, "plan", false, "only show what the next action would do")
	flags.BoolVarP(&f.yes, "yes", "y", false, "with --do: do not ask; required without a terminal")
	flags.StringVar(&f.Reason, "reason", "",
		"with --do: why, kept in the audit (default: the cause and the ids of the report)")
	f.wait.Register(cmd)
}

// run carries the next action out by the documents that came with the report.
func (f *doFlags) run(ctx context.Context, t *command.Tool, found *gql.Triage) error {
	next := found.Next
	switch {
	case next == nil:
		return command.Failed(&client.Error{Code: client.CodeFailedPrecondition, CorrelationID: found.CorrelationId,
			Message: "no action of the platform clears it: follow the branch of the runbook"})
	case !next.Allowed && f.do:
		return &client.Error{Code: client.CodeForbidden, CorrelationID: found.CorrelationId,
			Message: fmt.Sprintf("you lack the key %s: ask someone who has it", next.PermissionKey)}
	}
	action := &readyAction{TriageAction: next, tool: t, reason: f.Reason}
	switch {
	case next.PlanDocument == "" && f.planOnly:
		return command.Usagef("%s has no plan: see appctl triage %s", next.Mutation, about(found))
	case next.PlanDocument == "":
		if err := Confirm(t, f.yes, fmt.Sprintf("%s of %s", next.Mutation, next.Value)); err != nil {
			return err
		}
		f.noPlan = true
	case next.Plan == "planReleaseAllocation":
		return f.release(ctx, t, action)
	}
	return f.Apply(ctx, t, Change{Plan: action.plan, Send: action.send})
}

// release is run for the one plan that has a form of its own.
func (f *doFlags) release(ctx context.Context, t *command.Tool, action *readyAction) error {
	plan, err := planned[gql.ReleasePlan](ctx, action)
	if err != nil {
		return err
	}
	if f.planOnly {
		if err := t.Show(ReleasePlanView(plan)); err != nil {
			return err
		}
		return RefusedRelease(plan)
	}
	if !f.yes || (!t.Quiet && !t.AsJSON()) {
		ReleasePlanView(plan).Page(render.NewPage(t.Env.Stderr))
	}
	if err := RefusedRelease(plan); err != nil {
		return err
	}
	if err := Confirm(t, f.yes, ""); err != nil {
		return err
	}
	made, err := action.send(ctx, plan.Hash)
	if err != nil {
		return explainStale(t, err)
	}
	return Finish(ctx, t, f.wait, made)
}

// readyAction is an action with the documents that came with it.
type readyAction struct {
	*gql.TriageAction
	tool   *command.Tool
	reason string // instead of the report's; empty for that
}

func (a *readyAction) plan(ctx context.Context) (*gql.Plan, error) { return planned[gql.Plan](ctx, a) }

// planned sends the plan's document.
func planned[P any](ctx context.Context, a *readyAction) (*P, error) {
	data := map[string]*P{}
	err := a.tool.MakeRequest(ctx, &graphql.Request{Query: a.PlanDocument, Variables: a.PlanVariables,
		OpName: "TriagePlan"},
		&graphql.Response{Data: &data})
	if err != nil {
		return nil, err
	}
	if data[a.Plan] == nil {
		return nil, fmt.Errorf("the platform returned no plan for %s", a.Plan)
	}
	return data[a.Plan], nil
}

// send sends the mutation's document, with the hash of the plan that was agreed to; none where it is empty.
func (a *readyAction) send(ctx context.Context, hash string) (Started, error) {
	var variables struct {
		Input map[string]any `json:"input"`
	}
	if err := json.Unmarshal(a.Variables, &variables); err != nil || variables.Input == nil {
		return Started{}, fmt.Errorf("the variables of %s have no input", a.Mutation)
	}
	if hash != "" {
		variables.Input["planHash"] = hash
	}
	if a.reason != "" {
		variables.Input["reason"] = a.reason
	}
	data := map[string]json.RawMessage{}
	err := a.tool.MakeRequest(ctx, &graphql.Request{Query: a.Document, Variables: variables, OpName: "Triage"},
		&graphql.Response{Data: &data})
	if err != nil {
		return Started{}, err
	}
	var made struct {
		gql.Operation
		Within *gql.Operation `json:"operation"`
	}
	if err := json.Unmarshal(data[a.Mutation], &made); err != nil {
		return Started{}, fmt.Errorf("the platform's answer to %s: %w", a.Mutation, err)
	}
	if made.Within == nil {
		made.Within = &made.Operation
	}
	return Started{Operation: *made.Within, JSON: map[string]any{a.Mutation: data[a.Mutation]}, What: a.Mutation}, nil
}
