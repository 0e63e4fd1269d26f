package capacity

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func nodes(t *command.Tool) *cobra.Command {
	list := command.Pages(t, "nodes", "List the enrolled nodes (platform staff)", nodeTable, nil,
		func(ctx context.Context, _ string, first int, after string) (*gql.ComputeNodePage, error) {
			answer, err := gql.ListNodes(ctx, t, first, after)
			return &answer.Nodes, err
		})
	list.AddCommand(wallsOf(t))
	return list
}

var nodeTable = command.Table[gql.ComputeNode]{
	Heading: []string{"ID", "NAME", "STATUS", "ADDRESS", "CPUS", "MEMORY MIB", "GPUS", "ISOLATION", "LAST SEEN"},
	Row: func(node *gql.ComputeNode) []string {
		gpus := render.Joined(" ", fmt.Sprint(node.Gpus), node.GpuModel, render.If(node.GpusSimulated, "(simulated)"))
		return []string{
			node.Id, node.Name, string(node.Status), node.Address, fmt.Sprint(node.Cpus), fmt.Sprint(node.MemoryMiB), gpus,
			offered(node), render.Time(node.LastSeenAt),
		}
	},
}

// Enrol returns the command that mints a one-time token for a node's agent.
func Enrol(t *command.Tool) *cobra.Command {
	var input gql.CreateNodeEnrolmentInput
	var ttl time.Duration
	cmd := command.Verb(t, "enrol [NAME]", "Mint a one-time token for a node's agent",
		func(made gql.NodeEnrolment) command.View {
			return command.Secret(made, made.Token, "Enrolment token", made.Token, "Works until", render.Time(&made.ExpiresAt))
		},
		func(ctx context.Context, args []string) (gql.NodeEnrolment, error) {
			if ttl < time.Minute || ttl%time.Minute != 0 {
				return gql.NodeEnrolment{}, command.Usagef("--ttl %s: must be whole minutes", ttl)
			}
			if len(args) == 1 {
				input.Name = args[0]
			}
			input.TtlMinutes = int(ttl / time.Minute)
			answer, err := gql.CreateNodeEnrolment(ctx, t, input)
			return answer.CreateNodeEnrolment, err
		})
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it can be used, 1m to 24h")
	return cmd
}
