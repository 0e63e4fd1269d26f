package cli

import (
	"bufio"
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

// changeFlags are those of every command that changes members or takes something away.
type changeFlags struct {
	planOnly, noPlan, yes bool
	force                 bool
	planHash              string
	onDeadline            string
	reason                string
	key                   string
	deadline              time.Duration
	wait                  waitFlags
	// lenient lets a script go on without --yes and without a plan.
	lenient bool
}

// register adds what every verb has.
func (f *changeFlags) register(cmd *cobra.Command, deadline string) {
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "why, kept in the audit")
	flags.DurationVar(&f.deadline, "deadline", 0, "time after which it counts as failed, 30s to 24h; "+deadline+" if not given")
	f.wait.register(cmd)
	keyFlag(cmd, &f.key)
}

// registerPlan adds what verbs with a plan have.
func (f *changeFlags) registerPlan(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.planOnly, "plan", false, "only show what it would do; with --quiet write the plan's hash")
	flags.BoolVar(&f.noPlan, "no-plan", false, "do it without a plan and without asking")
	flags.StringVar(&f.planHash, "plan-hash", "", "do it without asking if everything is still as the plan of this hash found it")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask once the plan is made; needed where nobody can be asked")
	cmd.MarkFlagsMutuallyExclusive("plan", "no-plan", "plan-hash", "yes")
}

// registerForce adds what verbs that can lose work have.
func (f *changeFlags) registerForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.force, "force", false, "go at once though work is lost and a node may not answer; needs --reason")
	cmd.Flags().StringVar(&f.onDeadline, "on-deadline", "fail", "what happens when the deadline passes: fail, or force (needs --reason)")
	_ = cmd.RegisterFlagCompletionFunc("on-deadline", cobra.FixedCompletions([]string{"fail", "force"}, cobra.ShellCompDirectiveNoFileComp))
}

// outcome is the outcome chosen for a deadline that passes.
func (f *changeFlags) outcome() (gql.DeadlineOutcome, error) {
	found, err := enums("on-deadline", []string{firstOf(f.onDeadline, "fail")}, gql.AllDeadlineOutcome)
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// change is one verb with its plan.
type change struct {
	plan func(context.Context) (*gql.Plan, error)
	send func(context.Context, string) (started, error)
}

// apply plans, shows, asks and sends, as far as the flags want it.
func (t *tool) apply(ctx context.Context, c *client.Client, f *changeFlags, ch change) error {
	f.key = key(f.key)
	if f.planOnly {
		plan, err := ch.plan(ctx)
		if err != nil {
			return err
		}
		return t.show(view{JSON: plan, IDs: []string{plan.Hash}, Page: func(p *render.Page) { pagePlan(p, plan) }})
	}
	hash, err := t.agree(ctx, f, ch.plan)
	if err != nil {
		return err
	}
	made, err := ch.send(ctx, hash)
	if err != nil {
		return t.explainStale(err)
	}
	return t.finish(ctx, c, f.wait, made)
}

// agree is the hash of the plan that the caller has agreed to; empty when none was wanted.
func (t *tool) agree(ctx context.Context, f *changeFlags, plan func(context.Context) (*gql.Plan, error)) (string, error) {
	asked := f.yes || t.Env.StdinTerminal
	if f.planHash != "" || f.noPlan || (f.lenient && !asked) {
		return f.planHash, nil
	}
	if !asked {
		return "", usagef("nobody can be asked here: give --yes to do it, --plan to see what it would do, or --plan-hash to do what a plan has shown")
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
	if !f.yes && !t.confirm() {
		return "", &client.Error{Code: client.CodeCanceled, Message: "not confirmed: nothing was changed"}
	}
	return found.Hash, nil
}

// maxAnswer bounds what is read of a person's answer, bytes.
const maxAnswer = 256

// confirm asks; anything but y and yes is no.
func (t *tool) confirm() bool {
	fmt.Fprint(t.Env.Stderr, "\nGo on? [y/N] ")
	line, _ := bufio.NewReader(io.LimitReader(t.Env.Stdin, maxAnswer)).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// refusal is the error of a plan that says no, with every reason; its code is that of the first.
func refusal(plan *gql.Plan) error {
	found := &client.Error{Code: client.CodeFailedPrecondition, Message: "the plan says that this would be refused: nothing was changed"}
	for _, verdict := range plan.Verdicts {
		if verdict.Outcome != gql.VerdictOutcomeRefused {
			continue
		}
		for _, reason := range verdict.Reasons {
			found.Reasons = append(found.Reasons, client.Reason{Code: reason.Code, Message: reason.Message, Path: reason.Path})
		}
	}
	if len(found.Reasons) > 0 {
		if command.KnownCode(found.Reasons[0].Code) {
			found.Code = found.Reasons[0].Code
		}
	}
	return found
}

func (t *tool) explainStale(err error) error {
	if found, ok := client.AsError(err); ok && found.Code == client.CodePlanStale {
		t.Remark("something that the plan rested on has moved; nothing was changed: run the command again and read the new plan")
	}
	return err
}

func pagePlan(p *render.Page, plan *gql.Plan) {
	verdict := "would be accepted"
	if !plan.Allowed {
		verdict = "would be refused"
	}
	reversible := "no"
	if plan.Reversible {
		reversible = "yes"
	}
	p.Fields("Plan", fmt.Sprintf("%s of %s (%s)", plan.Kind, plan.Instance.Name, plan.Instance.Id), "Verdict", verdict,
		"Work lost", lostText(plan), "Can be taken back", joined(": ", reversible, plan.Reversal),
		"Makes way", supersededText(plan.Supersedes), "Change", jsonText(plan.Change), "Hash", plan.Hash)
	p.Section("Members that it touches")
	p.Table([]string{"ACTION", "COMPONENT", "MEMBER", "STATUS", "ALLOCATION", "NODE", "ANSWERS"}, plannedRows(plan.Members))
	if len(plan.WorkLost) > 0 {
		p.Section("Work that would be lost")
		p.Table(workHeading, workRows(plan.WorkLost))
	}
	if plan.Impact.AttachedTotal > 0 {
		p.Section("Projects that it serves")
		pageImpact(p, &plan.Impact)
	}
	p.Section("Verdicts")
	p.Table([]string{"BY", "OUTCOME", "REASON"}, verdictRows(plan.Verdicts))
}

func lostText(plan *gql.Plan) string {
	switch {
	case plan.WorkLostTotal == nil:
		return "nobody can tell"
	case *plan.WorkLostTotal == 0:
		return "none"
	default:
		return plural(*plan.WorkLostTotal, "piece") + " of work"
	}
}

func supersededText(operations []gql.Operation) string {
	var texts []string
	for _, op := range operations {
		texts = append(texts, fmt.Sprintf("%s %s", op.Kind, op.Id))
	}
	return strings.Join(texts, ", ")
}

func plannedRows(members []gql.PlannedMember) [][]string {
	var rows [][]string
	for _, planned := range members {
		row := []string{string(planned.Action), planned.ComponentKey, "new", "", "to be asked for", "", yesNo(planned.Reachable)}
		if planned.Member != nil {
			row[1], row[2], row[3] = memberName(planned.Member), planned.Member.Id, string(planned.Member.Status)
			row[4] = ""
			if planned.Member.Node != nil {
				row[5] = planned.Member.Node.Name
			}
		}
		if planned.Allocation != nil {
			row[4] = planned.Allocation.Name
		}
		rows = append(rows, row)
	}
	return rows
}

var workHeading = []string{"KIND", "ID", "NAME", "MEMBER", "OWNER", "SINCE", "MESSAGE"}

func workRows(works []gql.Work) [][]string {
	var rows [][]string
	for _, work := range works {
		rows = append(rows, []string{work.Kind, work.Id, work.Name, work.MemberId, work.Owner, render.Time(work.Since), work.Message})
	}
	return rows
}

func verdictRows(verdicts []gql.Verdict) [][]string {
	var rows [][]string
	for _, verdict := range verdicts {
		if len(verdict.Reasons) == 0 {
			rows = append(rows, []string{string(verdict.Source), string(verdict.Outcome), ""})
		}
		for _, reason := range verdict.Reasons {
			rows = append(rows, []string{string(verdict.Source), string(verdict.Outcome), reason.Message + " (" + reason.Code + ")"})
		}
	}
	return rows
}
