package capacity

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func listPrices(t *command.Tool) *cobra.Command {
	return command.Verb(t, "list", "List what allocations of each SKU cost", priceTable.View,
		func(ctx context.Context, _ []string) ([]gql.SkuPrice, error) {
			answer, err := gql.ListSkuPrices(ctx, t)
			return answer.SkuPrices, err
		})
}

// setPrice returns the command that sets the price of a SKU.
func setPrice(t *command.Tool) *cobra.Command {
	var input gql.SetSkuPriceInput
	cmd := command.Verb(t, "set SKU HOURLY", "Set what an allocation of a SKU costs for an hour",
		func(price gql.SkuPrice) command.View { return priceTable.As(price, []gql.SkuPrice{price}) },
		func(ctx context.Context, args []string) (gql.SkuPrice, error) {
			input.Sku, input.Hourly, input.Currency = args[0], args[1], strings.ToUpper(input.Currency)
			answer, err := gql.SetSkuPrice(ctx, t, input)
			return answer.SetSkuPrice, err
		})
	cmd.Example = "  appctl prices set gpu-large 2.50 --currency EUR"
	cmd.Flags().StringVar(&input.Currency, "currency", "", "ISO 4217: three letters, such as EUR")
	command.Need(cmd, "currency")
	return cmd
}

var priceTable = command.Table[gql.SkuPrice]{
	Heading: []string{"SKU", "HOURLY", "SET"},
	Row: func(price *gql.SkuPrice) []string {
		return []string{price.Sku, parts.Money(&price.Hourly), render.Time(&price.UpdatedAt)}
	},
}
