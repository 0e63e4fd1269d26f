package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) tenantRename() *cobra.Command {
	var reason string
	rename := t.command("rename TENANT NAME", "Give a tenant, by id, another name for people", cobra.ExactArgs(2), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.UpdateTenant(ctx, c, gql.UpdateTenantInput{TenantId: args[0], DisplayName: args[1], Reason: reason})
		if err != nil {
			return err
		}
		made := answer.UpdateTenant
		return t.showOne(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName)
	})
	reasonFlag(rename, &reason)
	return rename
}

func (t *tool) projectRename() *cobra.Command {
	var reason string
	rename := t.command("rename NAME", "Give the project another name for people", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		answer, err := gql.UpdateProject(ctx, c, gql.UpdateProjectInput{ProjectId: project, DisplayName: args[0], Reason: reason})
		if err != nil {
			return err
		}
		made := answer.UpdateProject
		return t.showOne(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName)
	})
	reasonFlag(rename, &reason)
	return rename
}

func (t *tool) projectDelete() *cobra.Command {
	var reason string
	remove := t.command("delete", "Delete the project, which must be empty; whatever speaks for it ends at once", cobra.NoArgs,
		func(ctx context.Context, _ []string) error {
			c, project, err := t.scope(ctx)
			if err != nil {
				return err
			}
			answer, err := gql.DeleteProject(ctx, c, project, reason)
			if err != nil {
				return err
			}
			gone := answer.DeleteProject
			return t.showOne(gone, gone.Id, "Slug", gone.Slug, "Name", gone.DisplayName)
		})
	reasonFlag(remove, &reason)
	_ = remove.MarkFlagRequired("reason")
	return remove
}

func (t *tool) userUpdate() *cobra.Command {
	var input gql.UpdateUserInput
	var name string
	var disable, enable bool
	update := t.command("update USER", "Rename, disable or enable a person, by id; disabling ends every session", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			if name == "" && !disable && !enable {
				return usagef("what changes? give --display-name, --disable or --enable")
			}
			if input.UserId = args[0]; name != "" {
				input.DisplayName = &name
			}
			if disable || enable {
				input.Disabled = &disable
			}
			answer, err := gql.UpdateUser(ctx, c, input)
			if err != nil {
				return err
			}
			made := answer.UpdateUser
			return t.showOne(made, made.Id, "Email", made.Email, "Name", made.DisplayName, "Disabled", render.Time(made.DisabledAt))
		})
	update.Flags().StringVar(&name, "display-name", "", "name for people")
	update.Flags().BoolVar(&disable, "disable", false, "nobody may log in as this person")
	update.Flags().BoolVar(&enable, "enable", false, "the person may log in again")
	update.MarkFlagsMutuallyExclusive("disable", "enable")
	reasonFlag(update, &input.Reason)
	return update
}

func (t *tool) roleList() *cobra.Command {
	return t.command("list", "List every role with its permission keys", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.ListRoles(ctx, c)
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for _, role := range answer.Roles {
			rows = append(rows, []string{role.Name, strings.ToLower(strings.Join(role.Scopes, ",")), plural(len(role.PermissionKeys), "key"), role.Description})
			ids = append(ids, role.Name)
		}
		return t.show(view{JSON: answer.Roles, IDs: ids, Page: func(p *render.Page) { p.Table([]string{"ROLE", "GIVEN AT", "HOLDS", "FOR"}, rows) }})
	})
}

func (t *tool) permissionList() *cobra.Command {
	return t.command("permissions", "List every permission key", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.ListPermissionKeys(ctx, c)
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for _, key := range answer.PermissionKeys {
			rows, ids = append(rows, []string{key.Name, key.Description}), append(ids, key.Name)
		}
		return t.show(view{JSON: answer.PermissionKeys, IDs: ids, Page: func(p *render.Page) { p.Table([]string{"KEY", "ALLOWS"}, rows) }})
	})
}

func (t *tool) roleBindings() *cobra.Command {
	var tenant string
	var platform, ended bool
	var limit int
	list := t.command("bindings", "List who holds which role in the project, a tenant or on the platform, newest first", cobra.NoArgs,
		func(ctx context.Context, _ []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			var project string
			if tenant == "" && !platform {
				if project, err = t.projectID(ctx, c); err != nil {
					return err
				}
			}
			found, err := collect[gql.GrantedRole](client.All[gql.GrantedRole](limit, func(first int, after string) (*gql.RoleBindingPage, error) {
				answer, err := gql.ListRoleBindings(ctx, c, tenant, project, ended, first, after)
				if err != nil {
					return nil, err
				}
				return &answer.RoleBindings, nil
			}))
			if err != nil {
				return err
			}
			return t.showBindings(found)
		})
	list.Flags().StringVar(&tenant, "tenant", "", "of this tenant, by id")
	list.Flags().BoolVar(&platform, "platform", false, "of the platform")
	list.Flags().BoolVar(&ended, "ended", false, "revoked and expired ones too")
	list.MarkFlagsMutuallyExclusive("tenant", "platform")
	limitFlag(list, &limit)
	return list
}

func (t *tool) showBindings(found []gql.GrantedRole) error {
	var rows [][]string
	var ids []string
	for i := range found {
		binding := &found[i]
		scope := firstOf(render.Text(binding.ProjectId), render.Text(binding.TenantId), "platform")
		rows = append(rows, []string{binding.Id, binding.SubjectId, binding.Role, scope, firstOf(render.Time(binding.ExpiresAt), "never"),
			render.Time(binding.RevokedAt), yes(binding.BreakGlass), binding.Reason})
		ids = append(ids, binding.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "SUBJECT", "ROLE", "SCOPE", "EXPIRES", "REVOKED", "BREAK-GLASS", "REASON"}, rows)
	}})
}
