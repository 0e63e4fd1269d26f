package identity

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// madeUnder returns the command that lists what was created under a role of an emergency.
func madeUnder(t *command.Tool) *cobra.Command {
	return command.Verb(t, "made BINDING",
		"List what was created by a break-glass role, by its id, and ends with it: accounts, keys, webhooks, roles",
		derivedTable.View,
		func(ctx context.Context, args []string) ([]gql.MadeUnderMadeUnderDerivedRight, error) {
			answer, err := gql.MadeUnder(ctx, t, args[0])
			return append([]gql.MadeUnderMadeUnderDerivedRight{}, answer.MadeUnder...), err
		})
}

var derivedTable = command.Table[gql.MadeUnderMadeUnderDerivedRight]{
	Heading: []string{"ID", "KIND", "NAME", "PROJECT", "CREATED", "ENDED"},
	Row: func(made *gql.MadeUnderMadeUnderDerivedRight) []string {
		return []string{made.Id, made.Kind, made.Name, render.Text(made.ProjectId), render.Time(&made.CreatedAt),
			render.Yes(made.Ended)}
	},
}
