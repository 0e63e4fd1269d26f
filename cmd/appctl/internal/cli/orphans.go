package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) orphansCommand() *cobra.Command {
	retry := t.command("retry ORPHAN", "Try now to take an orphan back", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RetryOrphan(ctx, c, args[0])
		if err != nil {
			return err
		}
		orphan := answer.RetryOrphan
		return t.show(view{JSON: orphan, IDs: []string{orphan.Id}, Page: func(p *render.Page) { pageOrphan(p, &orphan) }})
	})
	return group("orphans", "What operations left behind and could not take back yet", t.orphansList(), retry)
}

func (t *tool) orphansList() *cobra.Command {
	var resolved bool
	var limit int
	list := t.command("list", "List the project's orphans, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		found, err := collect[gql.Orphan](client.All[gql.Orphan](limit, func(first int, after string) (*gql.OrphanPage, error) {
			answer, err := gql.ListOrphans(ctx, c, project, resolved, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Orphans, nil
		}))
		if err != nil {
			return err
		}
		return t.showOrphans(found)
	})
	list.Flags().BoolVar(&resolved, "resolved", false, "those that are gone as well")
	limitFlag(list, &limit)
	return list
}

func (t *tool) showOrphans(found []gql.Orphan) error {
	var rows [][]string
	var ids []string
	for i := range found {
		orphan := &found[i]
		rows = append(rows, []string{
			orphan.Id, string(orphan.Kind), firstOf(nodeName(orphan.Node), refName(orphan.Allocation)), orphan.Owner, ageText(orphan.AgeSeconds),
			moneyText(orphan.CostSoFar), orphanState(orphan), firstOf(orphan.LastError, orphan.Message),
		})
		ids = append(ids, orphan.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "KIND", "WHERE", "OWNER", "AGE", "COST", "STATE", "MESSAGE"}, rows)
	}})
}

func pageOrphan(p *render.Page, orphan *gql.Orphan) {
	operation, member := "", ""
	if orphan.Operation != nil {
		operation = orphan.Operation.Id
	}
	if orphan.Member != nil {
		member = fmt.Sprintf("%s/%d (%s)", orphan.Member.ComponentKey, orphan.Member.Index, orphan.Member.Id)
	}
	p.Fields("Orphan", orphan.Id, "Kind", string(orphan.Kind), "State", orphanState(orphan), "Owner", orphan.Owner, "Message", orphan.Message,
		"Last error", orphan.LastError, "Node", nodeName(orphan.Node), "Allocation", refName(orphan.Allocation), "Member", member,
		"Instance", orphan.InstanceId, "Left by", operation, "Age", ageText(orphan.AgeSeconds), "Cost of an hour", moneyText(orphan.HourlyCost),
		"Cost so far", moneyText(orphan.CostSoFar), "Tries", fmt.Sprint(orphan.Attempts), "Listed", render.Time(&orphan.CreatedAt),
		"Gone", render.Time(orphan.ResolvedAt), "How", orphan.Resolution)
}

func orphanState(orphan *gql.Orphan) string {
	if orphan.ResolvedAt != nil {
		return "gone"
	}
	return "next try " + render.Time(&orphan.NextTryAt)
}

func ageText(seconds int) string { return (time.Duration(seconds) * time.Second).String() }

func moneyText(money *gql.Money) string {
	if money == nil {
		return ""
	}
	return money.Amount + " " + money.Currency
}
