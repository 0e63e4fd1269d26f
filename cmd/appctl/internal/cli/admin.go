package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/artifacts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/capacity"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/catalog"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) adminCommand() *cobra.Command {
	admin := group("admin", "Verbs of operators, tenant admins, publishers and their automation",
		group("tenant", "Tenants", t.tenantCreate(), t.tenantRename()),
		group("project", "Projects", t.projectCreate(), t.projectRename(), t.projectDelete()),
		group("user", "People", t.userList(), t.userCreate(), t.userUpdate(), t.userLoginLink()),
		group("role", "Roles, and who holds them", t.roleList(), t.roleBindings(), t.permissionList()),
		group("service-account", "Automation identities of a project", t.serviceAccountList(), t.serviceAccountCreate(),
			t.serviceAccountUpdate(), t.serviceAccountDelete()),
		group("key", "Keys of service accounts", t.keyCreate(), t.keyRotate(), t.keyRevoke()),
		t.grantCommand(), t.revokeCommand(), t.entitleCommand(), t.unentitleCommand(),
		artifacts.Admin(t.Tool), group("node", "Nodes", capacity.Enrol(t.Tool)),
	)
	admin.AddCommand(catalog.Admin(t.Tool)...)
	return admin
}

func (t *tool) entitleCommand() *cobra.Command {
	entitle := t.command("entitle APP", "Let the project launch an app", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		answer, err := gql.GrantEntitlement(ctx, c, project, args[0], nil, nil, "")
		if err != nil {
			return err
		}
		return t.showEntitlement(answer.GrantEntitlement)
	})
	entitle.ValidArgsFunction = t.completeApps
	return entitle
}

func (t *tool) unentitleCommand() *cobra.Command {
	var reason string
	unentitle := t.command("unentitle APP", "Stop the project from launching an app; what runs goes on", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, project, err := t.scope(ctx)
			if err != nil {
				return err
			}
			answer, err := gql.RevokeEntitlement(ctx, c, project, args[0], reason)
			if err != nil {
				return err
			}
			return t.showEntitlement(answer.RevokeEntitlement)
		})
	unentitle.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	unentitle.ValidArgsFunction = t.completeApps
	return unentitle
}
