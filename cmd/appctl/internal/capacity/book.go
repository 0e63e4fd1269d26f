package capacity

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// book returns the command that lists the price book.
func book(t *command.Tool) *cobra.Command {
	var tenant, project string
	var filter gql.PriceFilterInput
	cmd := command.Pages(t, "book", "List the price book, newest first", bookTable, nil,
		func(ctx context.Context, _ string, first int, after string) (*gql.PricePage, error) {
			filter.TenantId, filter.ProjectId = command.Given(tenant), command.Given(project)
			answer, err := gql.ListPrices(ctx, t, filter, first, after)
			return &answer.Prices, err
		})
	cmd.Flags().StringVar(&tenant, "of-tenant", "", "also prices of this tenant, by id")
	cmd.Flags().StringVar(&project, "of-project", "", "also prices of this project, by id")
	cmd.Flags().StringVar(&filter.Meter, "meter", "", "only of this meter")
	cmd.Flags().StringVar(&filter.Sku, "sku", "", "only of this SKU")
	return cmd
}

var bookTable = command.Table[gql.Price]{
	Heading: []string{"ID", "METER", "SKU", "REGION", "FOR", "PRICE", "PER", "FROM", "TO"},
	Row: func(p *gql.Price) []string {
		return []string{p.Id, p.Meter, p.Sku, p.Region, forWhom(p), tiersOf(p), p.Per, render.Time(&p.ValidFrom),
			render.Time(p.ValidTo)}
	},
}

func forWhom(p *gql.Price) string {
	switch {
	case p.ProjectId != nil:
		return *p.ProjectId
	case p.TenantId != nil:
		return *p.TenantId
	}
	return "everyone"
}

func tiersOf(p *gql.Price) string {
	parts := make([]string, len(p.Tiers))
	for i, tier := range p.Tiers {
		parts[i] = tier.Price
		if tier.UpTo != nil {
			parts[i] += " to " + *tier.UpTo
		}
	}
	return strings.Join(parts, ", ") + " " + p.Currency
}

// priceFlags are a price as the command line gives it.
type priceFlags struct {
	input                                               gql.SetPriceInput
	sku, region, tenant, project, from, to, least, step string
	tiers                                               []string
	time                                                bool
}

func (f *priceFlags) bind(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(&f.input.Currency, "currency", "", "ISO 4217: three letters, such as EUR")
	flags.StringVar(&f.input.Per, "per", "1", "how many units the price is for, such as 3600 for an hour of seconds")
	flags.StringVar(&f.sku, "sku", "", "for this SKU (default any)")
	flags.StringVar(&f.region, "in-region", "", "for this region (default any)")
	flags.StringVar(&f.tenant, "of-tenant", "", "for this tenant, by id (default everyone)")
	flags.StringVar(&f.project, "of-project", "", "for this project, by id (default everyone)")
	flags.StringVar(&f.from, "from", "", "from when, RFC 3339 (default now)")
	flags.StringVar(&f.to, "until", "", "until when, RFC 3339 (default for ever)")
	flags.StringArrayVar(&f.tiers, "tier", nil, "a tier before the price: UPTO=PRICE; repeat for more")
	flags.StringVar(&f.least, "minimum", "", "minimum amount of a line with any usage")
	flags.StringVar(&f.step, "round-up-to", "",
		"round each session up to a multiple of this, such as 60 to bill started minutes")
	flags.BoolVar(&f.time, "by-time", false, "price the time, in seconds, and not the metered quantity")
	flags.StringVar(&f.input.Reason, "reason", "", "why, kept in the audit")
	command.Need(cmd, "currency", "reason")
	return cmd
}

// read completes the input from the flags.
func (f *priceFlags) read(args []string) (*gql.SetPriceInput, error) {
	in := f.input
	in.Meter, in.Currency, in.Measure = args[0], strings.ToUpper(in.Currency), gql.PriceMeasureQuantity
	if f.time {
		in.Measure = gql.PriceMeasureTime
	}
	in.Sku, in.Region, in.TenantId, in.ProjectId = command.Given(f.sku), command.Given(f.region),
		command.Given(f.tenant), command.Given(f.project)
	in.Minimum, in.RoundUpTo = command.Given(f.least), command.Given(f.step)
	for _, tier := range f.tiers {
		upTo, price, ok := strings.Cut(tier, "=")
		if !ok {
			return nil, command.Usage(fmt.Errorf("--tier %s: must be UPTO=PRICE", tier))
		}
		in.Tiers = append(in.Tiers, gql.PriceTierInput{UpTo: &upTo, Price: price})
	}
	in.Tiers = append(in.Tiers, gql.PriceTierInput{Price: args[1]})
	var err error
	if in.ValidFrom, err = command.Moment("from", f.from); err != nil {
		return nil, err
	}
	in.ValidTo, err = command.Moment("until", f.to)
	return &in, err
}

// addPrice returns the command that puts a price into the book.
func addPrice(t *command.Tool) *cobra.Command {
	var f priceFlags
	cmd := f.bind(command.Verb(t, "add METER PRICE", "Add a price to the price book, from now or later", viewPrice,
		func(ctx context.Context, args []string) (*gql.Price, error) {
			in, err := f.read(args)
			if err != nil {
				return nil, err
			}
			answer, err := gql.SetPrice(ctx, t, *in)
			return &answer.SetPrice, err
		}))
	cmd.Example = "  appctl prices add tokens 0.000002 --currency EUR --tier 1000000=0.000004 " +
		"--reason 'price list 2027'"
	return cmd
}

func viewPrice(p *gql.Price) command.View { return bookTable.As(p, []gql.Price{*p}) }

// rerate returns the command that shows what a price for a time that has passed would change, and with the hash of that
// plan puts it into the book.
func rerate(t *command.Tool) *cobra.Command {
	var f priceFlags
	var hash string
	cmd := f.bind(t.Command("rerate METER PRICE", "Plan a price for a past time; with the plan's hash, set it",
		func(ctx context.Context, args []string) error {
			in, err := f.read(args)
			if err != nil {
				return err
			}
			if hash != "" {
				in.PlanHash = &hash
				answer, err := gql.Rerate(ctx, t, *in)
				if err != nil {
					return err
				}
				return t.Show(viewPrice(&answer.Rerate))
			}
			answer, err := gql.PlanRerate(ctx, t, *in)
			if err != nil {
				return err
			}
			return t.Show(viewPlan(&answer.PlanRerate))
		}))
	cmd.Flags().StringVar(&hash, "plan-hash", "", "carry out the plan of this hash")
	return cmd
}

func viewPlan(plan *gql.BooksPlan) command.View {
	table := command.Table[gql.BooksChange]{
		Heading: []string{"TENANT", "PROJECT", "PERIOD", "METER", "SKU", "BOOKED", "THEN"},
		Row: func(c *gql.BooksChange) []string {
			return []string{c.TenantId, c.ProjectId, c.PeriodId, c.Meter, c.Sku, c.Before + " " + c.Currency,
				c.After + " " + c.Currency}
		},
	}
	view := table.As(plan, plan.Changes)
	view.Remark = "carry it out with --plan-hash " + plan.Hash
	return view
}
