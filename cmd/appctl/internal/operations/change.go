package operations

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// ChangeFlags are those of every command that changes members or takes something away.
type ChangeFlags struct {
	// Lenient lets a script go on without --yes and without a plan.
	Lenient bool
	// Force loses work rather than wait.
	Force bool
	// Reason is why it is done.
	Reason string
	// Key is the idempotency key; it is never empty when the command runs.
	Key string

	planOnly, noPlan, yes bool
	planHash              string
	onDeadline            string
	deadline              time.Duration
	wait                  WaitFlags
}

// Register adds what every verb has; deadline is its default, for the help.
func (f *ChangeFlags) Register(cmd *cobra.Command, deadline string) {
	command.ReasonFlag(cmd, &f.Reason)
	cmd.Flags().DurationVar(&f.deadline, "deadline", 0,
		"time after which it counts as failed, 30s to 24h; "+deadline+" if not given")
	f.wait.Register(cmd)
	command.KeyFlag(cmd, &f.Key)
}

// RegisterPlan adds what verbs with a plan have.
func (f *ChangeFlags) RegisterPlan(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.planOnly, "plan", false, "only show what it would do; with --quiet write the plan's hash")
	flags.BoolVar(&f.noPlan, "no-plan", false, "do it without a plan and without confirmation")
	flags.StringVar(&f.planHash, "plan-hash", "",
		"do it without confirmation if nothing has changed since the plan of this hash")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation; required without a terminal")
	cmd.MarkFlagsMutuallyExclusive("plan", "no-plan", "plan-hash", "yes")
}

// RegisterForce adds what verbs that can lose work have.
func (f *ChangeFlags) RegisterForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Force, "force", false,
		"do it at once, even if work is lost or a node does not answer; needs --reason")
	cmd.Flags().StringVar(&f.onDeadline, "on-deadline", "fail",
		"what happens when the deadline passes: fail, or force (needs --reason)")
	command.CompleteWith(cmd, "on-deadline", "fail", "force")
}

// Deadline returns the deadline in whole seconds; 0 for the verb's default.
func (f *ChangeFlags) Deadline() (int, error) { return command.Seconds(f.deadline) }

// Outcome returns the outcome chosen for a deadline that passes.
func (f *ChangeFlags) Outcome() (gql.DeadlineOutcome, error) {
	return command.Enum("on-deadline", cmp.Or(f.onDeadline, "fail"), gql.AllDeadlineOutcome)
}

// A Change is one verb with its plan.
type Change struct {
	// Plan makes the plan.
	Plan func(context.Context) (*gql.Plan, error)
	// Send begins the work; the hash is of the plan that was agreed to, and empty when there was none.
	Send func(ctx context.Context, hash string) (Started, error)
}

// Begin begins the work of a verb without a plan, and shows or follows it.
func (f *ChangeFlags) Begin(ctx context.Context, t *command.Tool, send func(context.Context) (Started, error)) error {
	made, err := send(ctx)
	if err != nil {
		return err
	}
	return Finish(ctx, t, f.wait, made)
}

// Apply plans, shows, asks and sends, as far as the flags want it.
func (f *ChangeFlags) Apply(ctx context.Context, t *command.Tool, change Change) error {
	if f.planOnly {
		plan, err := change.Plan(ctx)
		if err != nil {
			return err
		}
		if err := t.Show(planView(plan)); err != nil || plan.Allowed {
			return err
		}
		return refusal(plan)
	}
	hash, err := f.agree(ctx, t, change.Plan)
	if err != nil {
		return err
	}
	made, err := change.Send(ctx, hash)
	if err != nil {
		return explainStale(t, err)
	}
	return Finish(ctx, t, f.wait, made)
}

// agree returns the hash of the plan that the caller has agreed to; empty when none was wanted.
func (f *ChangeFlags) agree(
	ctx context.Context, t *command.Tool, plan func(context.Context) (*gql.Plan, error),
) (string, error) {
	asked := f.yes || t.Env.StdinTerminal
	if f.planHash != "" || f.noPlan || (f.Lenient && !asked) {
		return f.planHash, nil
	}
	if !asked {
		return "",
			command.Usagef("there is no terminal to ask at: give --yes to do it, --plan to see what it would do, " +
				"or --plan-hash to do what a plan has shown")
	}
	found, err := plan(ctx)
	if err != nil {
		return "", err
	}
	if !f.yes || (!t.Quiet && !t.AsJSON()) {
		pagePlan(render.NewPage(t.Env.Stderr), found)
	}
	if !found.Allowed {
		return "", refusal(found)
	}
	if !f.yes && !confirm(t.Env) {
		return "", &client.Error{Code: client.CodeCanceled, Message: "not confirmed: nothing was changed"}
	}
	return found.Hash, nil
}

// Confirm asks before something that cannot be taken back, or that others feel: it shows the text and wants a yes. With
// yes it does not ask; without a terminal it refuses to go on unasked.
func Confirm(t *command.Tool, yes bool, text string) error {
	switch {
	case yes:
		return nil
	case !t.Env.StdinTerminal:
		return command.Usagef("there is no terminal to ask at: give --yes to do it")
	}
	fmt.Fprintln(t.Env.Stderr, render.Clean(text))
	if !confirm(t.Env) {
		return &client.Error{Code: client.CodeCanceled, Message: "not confirmed: nothing was changed"}
	}
	return nil
}

// maxAnswer bounds what is read of a person's answer, in bytes.
const maxAnswer = 256

// confirm asks the person; anything but y and yes is no.
func confirm(env command.Environment) bool {
	fmt.Fprint(env.Stderr, "\nGo on? [y/N] ")
	line, _ := bufio.NewReader(io.LimitReader(env.Stdin, maxAnswer)).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// refusal returns the error of a plan that says no.
func refusal(plan *gql.Plan) error { return Refused(plan.Verdicts) }

// Refused returns the error of verdicts that say no, with every reason; its code is the one that the change would be
// refused with. It is nil when none says no.
func Refused(verdicts []gql.Verdict) error {
	code, refused := "", false
	var reasons []client.Reason
	for _, verdict := range verdicts {
		if verdict.Outcome != gql.VerdictOutcomeRefused {
			continue
		}
		refused = true
		if verdict.Code != nil {
			code = cmp.Or(code, *verdict.Code)
		}
		reasons = append(reasons, command.Reasons(verdict.Reasons)...)
	}
	if !refused {
		return nil
	}
	if code == "" && len(reasons) > 0 && command.KnownCode(reasons[0].Code) { // a server from before verdicts had codes
		code = reasons[0].Code
	}
	return refusedWith(code, reasons)
}

// RefusedRelease returns the error of a release's plan that says no; nil of one that does not.
func RefusedRelease(plan *gql.ReleasePlan) error {
	if plan.Allowed {
		return nil
	}
	code := ""
	if plan.Code != nil {
		code = *plan.Code
	}
	return refusedWith(code, command.Reasons(plan.Reasons))
}

func refusedWith(code string, reasons []client.Reason) error {
	return &client.Error{Code: cmp.Or(code, client.CodeFailedPrecondition), Reasons: reasons,
		Message: "the plan says that this would be refused: nothing was changed"}
}

// explainStale writes what to do about a plan that does not hold any more.
func explainStale(t *command.Tool, err error) error {
	if found, ok := client.AsError(err); ok && found.Code == client.CodePlanStale {
		t.Remark("something that the plan depends on has changed; nothing was done: " +
			"run the command again and read the new plan")
	}
	return err
}
