package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) auditCommand() *cobra.Command {
	var limit int
	list := t.command("list", "List privileged attempts in the project, allowed and denied, newest first", cobra.NoArgs,
		func(ctx context.Context, _ []string) error {
			c, project, err := t.scope(ctx)
			if err != nil {
				return err
			}
			found, err := collect[gql.AuditEntry](client.All[gql.AuditEntry](limit, func(first int, after string) (*gql.AuditEntryPage, error) {
				answer, err := gql.ListAuditEntries(ctx, c, project, first, after)
				if err != nil {
					return nil, err
				}
				return &answer.AuditEntries, nil
			}))
			if err != nil {
				return err
			}
			return t.showAudit(found)
		})
	limitFlag(list, &limit)
	return group("audit", "Who did what", list)
}

func (t *tool) showAudit(found []gql.AuditEntry) error {
	var rows [][]string
	var ids []string
	for _, entry := range found {
		verdict := "allowed"
		if !entry.Allowed {
			verdict = "denied " + entry.Code
		}
		if entry.Repeats > 1 {
			verdict += fmt.Sprintf(" x%d", entry.Repeats)
		}
		rows = append(rows, []string{render.Time(&entry.CreatedAt), entry.Actor.Name, entry.Action, verdict, entry.ObjectId, entry.Reason})
		ids = append(ids, entry.Id)
	}
	return t.show(view{json: found, ids: ids, page: func(p *render.Page) {
		p.Table([]string{"TIME", "ACTOR", "ACTION", "VERDICT", "OBJECT", "REASON"}, rows)
	}})
}
