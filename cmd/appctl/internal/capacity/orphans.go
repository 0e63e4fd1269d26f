package capacity

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func listOrphans(t *command.Tool) *cobra.Command {
	var resolved bool
	cmd := command.Pages(t, "list", "List the project's orphans, newest first", orphanTable, t.InProject,
		func(ctx context.Context, project string, first int, after string) (*gql.OrphanPage, error) {
			answer, err := gql.ListOrphans(ctx, t, project, resolved, first, after)
			return &answer.Orphans, err
		})
	cmd.Flags().BoolVar(&resolved, "resolved", false, "resolved ones as well")
	return cmd
}

func retryOrphan(t *command.Tool) *cobra.Command {
	return command.Verb(t, "retry ORPHAN", "Retry the cleanup of an orphan now", viewOrphan,
		func(ctx context.Context, args []string) (*gql.Orphan, error) {
			answer, err := gql.RetryOrphan(ctx, t, args[0])
			return &answer.RetryOrphan, err
		})
}

var orphanTable = command.Table[gql.Orphan]{
	Heading: []string{"ID", "KIND", "WHERE", "OWNER", "AGE", "COST", "STATE", "MESSAGE"},
	Row: func(orphan *gql.Orphan) []string {
		return []string{
			orphan.Id, string(orphan.Kind), cmp.Or(parts.NodeName(orphan.Node),
				parts.AllocationName(orphan.Allocation)),
			orphan.Owner, parts.Age(orphan.AgeSeconds), parts.Money(orphan.CostSoFar), orphanState(orphan),
			cmp.Or(orphan.LastError, orphan.Message),
		}
	},
}

// viewOrphan shows an orphan with where it is, who left it, and what it costs.
func viewOrphan(orphan *gql.Orphan) command.View {
	operation, member := "", ""
	if orphan.Operation != nil {
		operation = orphan.Operation.Id
	}
	if orphan.Member != nil {
		member = fmt.Sprintf("%s (%s)", parts.MemberName(orphan.Member.ComponentKey, orphan.Member.Index),
			orphan.Member.Id)
	}
	return command.Fields(orphan, orphan.Id, "Orphan", orphan.Id, "Kind", string(orphan.Kind),
		"State", orphanState(orphan),
		"Owner", orphan.Owner, "Message", orphan.Message, "Last error", orphan.LastError, "Node",
		parts.NodeName(orphan.Node),
		"Allocation", parts.AllocationName(orphan.Allocation), "Member", member, "Instance", orphan.InstanceId,
		"Left by", operation, "Age", parts.Age(orphan.AgeSeconds), "Cost of an hour", parts.Money(orphan.HourlyCost),
		"Cost so far", parts.Money(orphan.CostSoFar), "Tries", fmt.Sprint(orphan.Attempts),
		"Found", render.Time(&orphan.CreatedAt), "Resolved", render.Time(orphan.ResolvedAt), "How", orphan.Resolution)
}

func orphanState(orphan *gql.Orphan) string {
	if orphan.ResolvedAt != nil {
		return "resolved"
	}
	return "next try " + render.Time(&orphan.NextTryAt)
}
