package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) nodesCommand() *cobra.Command {
	var limit int
	cmd := t.command("nodes", "List the enrolled nodes (platform staff)", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		found, err := collect[gql.ComputeNode](client.All[gql.ComputeNode](limit, func(first int, after string) (*gql.ComputeNodePage, error) {
			answer, err := gql.ListNodes(ctx, c, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Nodes, nil
		}))
		if err != nil {
			return err
		}
		return t.showNodes(found)
	})
	limitFlag(cmd, &limit)
	return cmd
}

func (t *tool) showNodes(found []gql.ComputeNode) error {
	var rows [][]string
	var ids []string
	for _, node := range found {
		gpus := strings.TrimSpace(fmt.Sprintf("%d %s", node.Gpus, node.GpuModel))
		if node.GpusSimulated {
			gpus += " (simulated)"
		}
		rows = append(rows, []string{
			node.Id, node.Name, string(node.Status), node.Address, fmt.Sprint(node.Cpus), fmt.Sprint(node.MemoryMiB), gpus,
			string(node.Isolation), render.Time(node.LastSeenAt),
		})
		ids = append(ids, node.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "NAME", "STATUS", "ADDRESS", "CPUS", "MEMORY MIB", "GPUS", "ISOLATION", "LAST SEEN"}, rows)
	}})
}
