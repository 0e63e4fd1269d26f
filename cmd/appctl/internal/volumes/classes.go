package volumes

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func classes(t *command.Tool) *cobra.Command {
	return command.Verb(t, "list", "List the storage classes, and what nodes offer for each", classTable.View,
		func(ctx context.Context, _ []string) ([]gql.StorageClass, error) {
			answer, err := gql.ListStorageClasses(ctx, t)
			return answer.StorageClasses, err
		})
}

var classTable = command.Table[gql.StorageClass]{
	Heading: []string{"ID", "NAME", "KIND", "TITLE", "NODES", "FREE", "SIZE ENFORCED", "GIB-HOUR", "DISABLED"},
	Row: func(c *gql.StorageClass) []string {
		nodes, free, hold := "0", "", ""
		if c.Offer != nil {
			nodes, free, hold = fmt.Sprint(c.Offer.Nodes), render.Bytes(c.Offer.FreeBytes),
				render.YesNo(c.Offer.SizeEnforced)
		}
		prices := make([]string, len(c.HourlyListPrices))
		for i := range prices {
			prices[i] = parts.Money(&c.HourlyListPrices[i])
		}
		return []string{c.Id, c.Name, string(c.Kind), c.Title, nodes, free, hold, strings.Join(prices, ", "),
			render.Yes(c.Disabled)}
	},
}

func viewClass(c *gql.StorageClass) command.View { return classTable.As(c, []gql.StorageClass{*c}) }

func createClass(t *command.Tool) *cobra.Command {
	var input gql.CreateStorageClassInput
	var kind string
	cmd := command.Verb(t, "create NAME", "Create a storage class that nodes serve (platform staff)", viewClass,
		func(ctx context.Context, args []string) (_ *gql.StorageClass, err error) {
			if input.Kind, err = command.Enum("kind", kind, gql.AllStorageKind); err != nil {
				return nil, err
			}
			input.Name = args[0]
			answer, err := gql.CreateStorageClass(ctx, t, input)
			return &answer.CreateStorageClass, err
		})
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "",
		"shared (a file system that all its nodes mount) or local (each node's own disk)")
	flags.StringVar(&input.Title, "title", "", "title that people see")
	flags.StringVar(&input.Description, "description", "", "description that people see")
	command.Need(cmd, "kind", "title")
	return cmd
}

func updateClass(t *command.Tool) *cobra.Command {
	var input gql.UpdateStorageClassInput
	var title, description string
	var disable, enable bool
	cmd := command.Of(t, "update CLASS", "Change a storage class, by name or id (platform staff)",
		findClass(t), viewClass, func(ctx context.Context, id string, _ []string) (*gql.StorageClass, error) {
			input.StorageClassId, input.Title, input.Description = id, command.Given(title), command.Given(description)
			if disable || enable {
				input.Disabled = &disable
			}
			answer, err := gql.UpdateStorageClass(ctx, t, input)
			return &answer.UpdateStorageClass, err
		})
	flags := cmd.Flags()
	flags.StringVar(&title, "title", "", "title that people see")
	flags.StringVar(&description, "description", "", "description that people see")
	flags.BoolVar(&disable, "disable", false, "take no new volumes; existing ones stay")
	flags.BoolVar(&enable, "enable", false, "take new volumes again")
	cmd.MarkFlagsMutuallyExclusive("disable", "enable")
	cmd.MarkFlagsOneRequired("title", "description", "disable", "enable")
	command.ReasonFlag(cmd, &input.Reason)
	return cmd
}

// findClass returns the id of the storage class that the first argument names, by id or name.
func findClass(t *command.Tool) func(context.Context, []string) (string, error) {
	return func(ctx context.Context, args []string) (string, error) {
		if strings.HasPrefix(args[0], "stc_") {
			return args[0], nil
		}
		answer, err := gql.ListStorageClasses(ctx, t)
		if err != nil {
			return "", err
		}
		for _, class := range answer.StorageClasses {
			if class.Name == args[0] {
				return class.Id, nil
			}
		}
		return "", command.NotFoundf("there is no storage class %q", args[0])
	}
}
