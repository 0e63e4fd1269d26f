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

func (t *tool) entitlementsCommand() *cobra.Command {
	return group("entitlements", "The project's rights to launch apps, and how far they go", t.entitlementsList(), t.entitlementsGrant(), t.entitlementsRevoke())
}

func (t *tool) entitlementsList() *cobra.Command {
	var ended bool
	var limit int
	list := t.command("list", "List the project's entitlements, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		found, err := collect[gql.Entitlement](client.All[gql.Entitlement](limit, func(first int, after string) (*gql.EntitlementPage, error) {
			answer, err := gql.ListEntitlements(ctx, c, project, ended, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Entitlements, nil
		}))
		if err != nil {
			return err
		}
		return t.showEntitlements(found)
	})
	list.Flags().BoolVar(&ended, "ended", false, "revoked and expired ones as well")
	limitFlag(list, &limit)
	return list
}

func (t *tool) showEntitlements(found []gql.Entitlement) error {
	var rows [][]string
	var ids []string
	for i := range found {
		one := &found[i]
		rows = append(rows, []string{
			one.Id, one.AppSlug, limitText(one.MaxInstances), limitText(one.MaxMembers), limitText(one.MaxGpus), strings.Join(one.Versions, ", "),
			render.Time(one.ExpiresAt), render.Time(one.RevokedAt), one.Reason,
		})
		ids = append(ids, one.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "APP", "INSTANCES", "MEMBERS", "GPUS", "VERSIONS", "EXPIRES", "REVOKED", "REASON"}, rows)
	}})
}

func limitText(most *int) string {
	if most == nil {
		return "any"
	}
	return fmt.Sprint(*most)
}

func (t *tool) entitlementsGrant() *cobra.Command {
	var instances, members, gpus int
	var versions []string
	var expires, reason string
	grant := t.command("grant APP", "Let the project launch an app; limits that are left out have no bound", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			until, err := instant("expires", expires)
			if err != nil {
				return err
			}
			c, project, err := t.scope(ctx)
			if err != nil {
				return err
			}
			limits := &gql.EntitlementLimitsInput{
				MaxInstances: given(instances), MaxMembers: given(members), MaxGpus: given(gpus), Versions: versions,
			}
			answer, err := gql.GrantEntitlement(ctx, c, project, args[0], limits, until, reason)
			if err != nil {
				return err
			}
			return t.showEntitlement(answer.GrantEntitlement)
		})
	grant.Example = `  appctl entitlements grant hello --max-instances 2 --max-gpus 8 --versions ">=1.2 <2" --expires 720h --reason "trial"`
	flags := grant.Flags()
	flags.IntVar(&instances, "max-instances", 0, "most live instances of the app")
	flags.IntVar(&members, "max-members", 0, "most members of one instance")
	flags.IntVar(&gpus, "max-gpus", 0, "most GPUs of one instance's allocations")
	flags.StringArrayVar(&versions, "versions", nil, "a constraint on versions; give it again for another that will do as well")
	flags.StringVar(&expires, "expires", "", "when it ends: a time, or a duration from now")
	flags.StringVar(&reason, "reason", "", "why, kept in the audit")
	grant.ValidArgsFunction = t.completeApps
	return grant
}

// given is a number that was given; nil for 0.
func given(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func (t *tool) entitlementsRevoke() *cobra.Command {
	revoke := t.unentitleCommand()
	revoke.Use = "revoke APP"
	return revoke
}

func (t *tool) showEntitlement(made gql.Entitlement) error {
	return t.showOne(made, made.Id, "Project", made.ProjectId, "App", made.AppSlug, "Instances", limitText(made.MaxInstances),
		"Members of one", limitText(made.MaxMembers), "GPUs of one", limitText(made.MaxGpus), "Versions", strings.Join(made.Versions, ", "),
		"Given by", made.GrantedBy, "Why", made.Reason, "Since", render.Time(&made.CreatedAt), "Expires", render.Time(made.ExpiresAt),
		"Revoked", render.Time(made.RevokedAt))
}
