package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) pricesCommand() *cobra.Command {
	list := t.command("list", "List what allocations of each SKU cost", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.ListSkuPrices(ctx, c)
		if err != nil {
			return err
		}
		return t.showPrices(answer.SkuPrices, answer.SkuPrices)
	})
	return group("prices", "List prices by SKU", list, t.pricesSet())
}

func (t *tool) pricesSet() *cobra.Command {
	var input gql.SetSkuPriceInput
	set := t.command("set SKU HOURLY", "Set what an allocation of a SKU costs for an hour", cobra.ExactArgs(2), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		input.Sku, input.Hourly, input.Currency = args[0], args[1], strings.ToUpper(input.Currency)
		answer, err := gql.SetSkuPrice(ctx, c, input)
		if err != nil {
			return err
		}
		return t.showPrices(answer.SetSkuPrice, []gql.SkuPrice{answer.SetSkuPrice})
	})
	set.Example = "  appctl prices set gpu-large 2.50 --currency EUR"
	set.Flags().StringVar(&input.Currency, "currency", "", "ISO 4217: three letters, such as EUR")
	_ = set.MarkFlagRequired("currency")
	return set
}

func (t *tool) showPrices(answer any, found []gql.SkuPrice) error {
	var rows [][]string
	var ids []string
	for _, price := range found {
		rows = append(rows, []string{price.Sku, moneyText(&price.Hourly), render.Time(&price.UpdatedAt)})
		ids = append(ids, price.Sku)
	}
	return t.show(view{JSON: answer, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"SKU", "HOURLY", "SET"}, rows)
	}})
}
