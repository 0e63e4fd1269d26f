// Package costs is the commands about what is spent: costs and budgets.
package costs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Cost returns the commands about what is spent.
func Cost(t *command.Tool) *cobra.Command {
	return command.Group("cost", "What the project, a tenant or the platform costs", show(t), by(t))
}

// place is the flag that chooses a tenant instead of the project.
type place struct{ tenant string }

func (p *place) bind(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&p.tenant, "tenant", "", "of this whole tenant, by id, instead of the project's")
	return cmd
}

// ids are the tenant, or the project.
func (p *place) ids(ctx context.Context, t *command.Tool) (tenant, project *string, err error) {
	if p.tenant != "" {
		return &p.tenant, nil, nil
	}
	id, err := t.ProjectID(ctx)
	return nil, &id, err
}

func show(t *command.Tool) *cobra.Command {
	var of place
	return of.bind(command.Verb(t, "show", "Show what this month has cost so far, with a forecast", viewSummary,
		func(ctx context.Context, _ []string) (*gql.CostSummary, error) {
			tenant, project, err := of.ids(ctx, t)
			if err != nil {
				return nil, err
			}
			answer, err := gql.GetCostSummary(ctx, t, tenant, project)
			return &answer.CostSummary, err
		}))
}

func viewSummary(c *gql.CostSummary) command.View {
	unpriced := "none"
	if c.Unpriced > 0 {
		unpriced = fmt.Sprintf("No price set for %s", render.Plural(c.Unpriced, "allocation"))
	}
	return command.Fields(c, c.Spent, "Month", render.Time(&c.From)+" to "+render.Time(&c.To), "Spent",
		c.Spent+" "+c.Currency,
		"Hourly cost now", c.Hourly+" "+c.Currency, "Forecast", c.Forecast+" "+c.Currency, "Unpriced", unpriced)
}

// by returns the command that shares costs out.
func by(t *command.Tool) *cobra.Command {
	var of place
	var platform bool
	var label, from, to string
	cmd := of.bind(command.Verb(t, "by WHAT",
		"Split costs by project, app, meter, instance, member, operation, volume, person, label, hour or day",
		shares.View,
		func(ctx context.Context, args []string) ([]gql.CostShare, error) {
			way, err := command.Enum("WHAT", args[0], gql.AllCostBy)
			if err != nil {
				return nil, err
			}
			since, until, err := window(from, to)
			if err != nil {
				return nil, err
			}
			var tenant, project *string
			if !platform {
				if tenant, project, err = of.ids(ctx, t); err != nil {
					return nil, err
				}
			}
			answer, err := gql.ListCosts(ctx, t, tenant, project, way, command.Given(label), since, until)
			return answer.Costs, err
		}))
	cmd.Flags().BoolVar(&platform, "platform", false, "of the whole platform; also allows tenant and platform-borne")
	cmd.Flags().StringVar(&label, "label", "", "name of the label of members, for label")
	cmd.Flags().StringVar(&from, "from", "", "from when, RFC 3339 (default the beginning of this month)")
	cmd.Flags().StringVar(&to, "until", "", "until when, RFC 3339 (default now)")
	cmd.Example = "  appctl cost by person\n  appctl cost by platform-borne --platform"
	return cmd
}

func window(from, to string) (since, until *time.Time, err error) {
	if since, err = command.Moment("from", from); err == nil {
		until, err = command.Moment("until", to)
	}
	return since, until, err
}

var shares = command.Table[gql.CostShare]{
	Heading: []string{"OF", "NAME", "COST"},
	Row: func(s *gql.CostShare) []string {
		key := s.Key
		if key == "" {
			key = "(none)"
		}
		return []string{key, s.Name, s.Amount + " " + s.Currency}
	},
	ID: func(s *gql.CostShare) string { return s.Key },
}

// Budget returns the commands about budgets.
func Budget(t *command.Tool) *cobra.Command {
	return command.Group("budget", "What a tenant, a project, a service account or an instance may spend",
		list(t), set(t), remove(t))
}

func list(t *command.Tool) *cobra.Command {
	var of place
	return of.bind(command.Verb(t, "list", "List the budgets of the project, or of a tenant and all in it",
		budgets.View, func(ctx context.Context, _ []string) ([]gql.Budget, error) {
			tenant, project, err := of.ids(ctx, t)
			if err != nil {
				return nil, err
			}
			answer, err := gql.ListBudgets(ctx, t, tenant, project)
			return answer.Budgets, err
		}))
}

var budgets = command.Table[gql.Budget]{
	Heading: []string{"ID", "FOR", "BUDGET", "SPENT", "RESERVED", "LEFT", "AT THE LIMIT", "REACHED", "OVERSHOOT",
		"NOTE"},
	Row: func(b *gql.Budget) []string {
		overshoot := "no bound"
		if b.LargestOvershoot != nil {
			overshoot = "at most " + *b.LargestOvershoot
		}
		return []string{b.Id, strings.ToLower(string(b.Scope)) + " " + b.TargetId,
			fmt.Sprintf("%s %s, %s", b.Amount, b.Currency, strings.ToLower(string(b.Span))),
			b.Spent, b.Held, b.Left, string(b.AtLimit), fmt.Sprintf("%d %%", b.Reached), overshoot, note(b)}
	},
}

// note returns what there is to say of a budget besides.
func note(b *gql.Budget) string {
	switch {
	case b.Trouble != "":
		return b.Trouble
	case b.LimitAt != nil:
		return "spent since " + render.Time(b.LimitAt)
	case b.Unpriced > 0:
		return fmt.Sprintf("No price set for %s", render.Plural(b.Unpriced, "allocation"))
	}
	return ""
}

func one(b *gql.Budget) command.View { return budgets.As(b, []gql.Budget{*b}) }

// set returns the command that sets a budget.
func set(t *command.Tool) *cobra.Command {
	var in gql.SetBudgetInput
	var span, outcome string
	var horizon time.Duration
	cmd := command.Verb(t, "set SCOPE TARGET AMOUNT",
		"Set what a tenant, a project, a service-account or an instance may spend", one,
		func(ctx context.Context, args []string) (_ *gql.Budget, err error) {
			if in.Scope, err = command.Enum("SCOPE", args[0], gql.AllBudgetScope); err != nil {
				return nil, err
			}
			if in.Span, err = command.Enum("span", span, gql.AllBudgetSpan); err != nil {
				return nil, err
			}
			if in.AtLimit, err = command.Enum("at-limit", outcome, gql.AllBudgetOutcome); err != nil {
				return nil, err
			}
			in.TargetId, in.Amount, in.Currency, in.HorizonSeconds = args[1], args[2], strings.ToUpper(in.Currency),
				int(horizon/time.Second)
			answer, err := gql.SetBudget(ctx, t, in)
			return &answer.SetBudget, err
		})
	flags := cmd.Flags()
	flags.StringVar(&in.Currency, "currency", "", "ISO 4217: that of the tenant's statements")
	flags.StringVar(&span, "span", "month", "period of the amount: month, or total for everything since it was set")
	flags.DurationVar(&horizon, "horizon", time.Hour, "time for which the price of rentals is reserved, 5m to 744h")
	flags.IntSliceVar(&in.Thresholds, "threshold", nil,
		"percent at which an event is published; repeat for more (default 50, 80, 100)")
	flags.StringVar(&outcome, "at-limit", "refuse",
		"what happens when it is spent: tell, refuse, drain or decommission")
	flags.StringVar(&in.Reason, "reason", "", "why, kept in the audit")
	command.Need(cmd, "currency", "reason")
	cmd.Example = "  appctl budget set project prj_… 5000 --currency EUR --at-limit refuse --reason 'training run'\n" +
		"  appctl budget set service-account sa_… 200 --currency EUR --span total --reason 'nightly pipeline'"
	return cmd
}

// remove returns the command that removes a budget.
func remove(t *command.Tool) *cobra.Command {
	var reason string
	cmd := command.Verb(t, "remove BUDGET", "Remove a budget: its target may spend again", one,
		func(ctx context.Context, args []string) (*gql.Budget, error) {
			answer, err := gql.RemoveBudget(ctx, t, args[0], reason)
			return &answer.RemoveBudget, err
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	command.Need(cmd, "reason")
	return cmd
}
