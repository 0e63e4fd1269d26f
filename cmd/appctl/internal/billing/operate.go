package billing

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// credits returns the commands about credit.
func credits(t *command.Tool) *cobra.Command {
	return command.Group("credit", "Credit of tenants, and what is left of it",
		command.Verb(t, "list TENANT", "List a tenant's credit, in the order in which it is used", creditTable.View,
			func(ctx context.Context, args []string) ([]gql.CreditGrant, error) {
				answer, err := gql.ListCreditGrants(ctx, t, args[0])
				return answer.CreditGrants, err
			}), grantCredit(t))
}

var creditTable = command.Table[gql.CreditGrant]{
	Heading: []string{"ID", "PRIORITY", "GRANTED", "LEFT", "EXPIRES", "REASON"},
	Row: func(g *gql.CreditGrant) []string {
		return []string{g.Id, fmt.Sprint(g.Priority), g.Amount + " " + g.Currency, g.Left + " " + g.Currency,
			render.Time(g.ExpiresAt), g.Reason}
	},
}

// grantCredit returns the command that gives credit.
func grantCredit(t *command.Tool) *cobra.Command {
	var in gql.GrantCreditInput
	var expires string
	cmd := command.Verb(t, "grant TENANT AMOUNT", "Give a tenant credit, which pays its statements as they close",
		func(g *gql.CreditGrant) command.View { return creditTable.As(g, []gql.CreditGrant{*g}) },
		func(ctx context.Context, args []string) (*gql.CreditGrant, error) {
			at, err := command.Instant("expires", expires)
			if err != nil {
				return nil, err
			}
			given := in
			given.TenantId, given.Amount, given.Currency, given.ExpiresAt = args[0], args[1],
				strings.ToUpper(in.Currency), at
			answer, err := gql.GrantCredit(ctx, t, given)
			return &answer.GrantCredit, err
		})
	cmd.Flags().StringVar(&in.Currency, "currency", "", "ISO 4217: that of the tenant's statements")
	cmd.Flags().IntVar(&in.Priority, "priority", 100, "the lower is used first, 0 to 1000")
	cmd.Flags().StringVar(&expires, "expires", "",
		"when what is left expires: a time, or a duration such as 720h (default never)")
	command.NeededReasonFlag(cmd, &in.Reason)
	command.Need(cmd, "currency")
	command.KeyFlag(cmd, &in.IdempotencyKey)
	return cmd
}

// account returns the command that sets how a tenant is billed.
func account(t *command.Tool) *cobra.Command {
	var in gql.SetBillingAccountInput
	cmd := command.Verb(t, "account TENANT", "Set how a tenant is billed, from its next period on",
		func(a *gql.SetBillingAccountSetBillingAccount) command.View {
			return command.Fields(a, a.TenantId, "Tenant", a.TenantId, "Currency", a.Currency, "Grace",
				fmt.Sprint(a.GraceSeconds, " s"))
		},
		func(ctx context.Context, args []string) (*gql.SetBillingAccountSetBillingAccount, error) {
			set := in
			set.TenantId, set.Currency = args[0], strings.ToUpper(in.Currency)
			answer, err := gql.SetBillingAccount(ctx, t, set)
			return &answer.SetBillingAccount, err
		})
	cmd.Flags().StringVar(&in.Currency, "currency", "",
		"ISO 4217: three letters, such as EUR; the price book must have a price in it")
	cmd.Flags().IntVar(&in.GraceSeconds, "grace", 0, "seconds that a period waits for late usage, 0 to 2592000")
	command.NeededReasonFlag(cmd, &in.Reason)
	command.Need(cmd, "currency", "grace")
	return cmd
}

// reopen returns the command that shows what opening a closed period again would change, and with the hash of that plan
// opens it.
func reopen(t *command.Tool) *cobra.Command {
	var hash, reason string
	cmd := t.Command("reopen PERIOD", "Plan to reopen a closed period; with the plan's hash, reopen it",
		func(ctx context.Context, args []string) error {
			if hash != "" {
				answer, err := gql.ReopenPeriod(ctx, t, args[0], hash, reason)
				if err != nil {
					return err
				}
				return t.Show(periodTable.As(&answer.ReopenPeriod, []gql.BillingPeriod{answer.ReopenPeriod}))
			}
			answer, err := gql.PlanReopenPeriod(ctx, t, args[0])
			if err != nil {
				return err
			}
			view := changeTable.As(&answer.PlanReopenPeriod, answer.PlanReopenPeriod.Changes)
			view.Remark = "carry it out with --plan-hash " + answer.PlanReopenPeriod.Hash
			return t.Show(view)
		})
	cmd.Flags().StringVar(&hash, "plan-hash", "", "carry out the plan of this hash")
	command.ReasonFlag(cmd, &reason)
	cmd.MarkFlagsRequiredTogether("plan-hash", "reason")
	return cmd
}

var changeTable = command.Table[gql.BooksChange]{
	Heading: []string{"PROJECT", "METER", "SKU", "BOOKED", "THEN"},
	Row: func(c *gql.BooksChange) []string {
		return []string{c.ProjectId, c.Meter, c.Sku, c.Before + " " + c.Currency, c.After + " " + c.Currency}
	},
}
