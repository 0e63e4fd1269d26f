package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) tenantCreate() *cobra.Command {
	var input gql.CreateTenantInput
	create := t.command("create SLUG", "Make a tenant", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		input.Slug, input.DisplayName = args[0], firstOf(input.DisplayName, args[0])
		input.IdempotencyKey = key(input.IdempotencyKey)
		answer, err := gql.CreateTenant(ctx, c, input)
		if err != nil {
			return err
		}
		made := answer.CreateTenant
		return t.showOne(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName)
	})
	create.Flags().StringVar(&input.DisplayName, "display-name", "", "name for people; the slug if not given")
	keyFlag(create, &input.IdempotencyKey)
	return create
}

func (t *tool) projectCreate() *cobra.Command {
	var input gql.CreateProjectInput
	create := t.command("create SLUG", "Make a project", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		if input.TenantId, err = tenantID(ctx, c, input.TenantId); err != nil {
			return err
		}
		input.Slug, input.DisplayName = args[0], firstOf(input.DisplayName, args[0])
		input.IdempotencyKey = key(input.IdempotencyKey)
		answer, err := gql.CreateProject(ctx, c, input)
		if err != nil {
			return err
		}
		made := answer.CreateProject
		return t.showOne(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName, "Tenant", made.TenantId)
	})
	create.Flags().StringVar(&input.DisplayName, "display-name", "", "name for people; the slug if not given")
	create.Flags().StringVar(&input.TenantId, "tenant", "", "tenant's id; your own if not given")
	keyFlag(create, &input.IdempotencyKey)
	return create
}

// tenantID is the tenant given, or the caller's own.
func tenantID(ctx context.Context, c *client.Client, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	answer, err := gql.GetViewer(ctx, c)
	if err != nil {
		return "", err
	}
	if answer.Viewer.Tenant == nil {
		return "", usagef("which tenant? You belong to none: give --tenant")
	}
	return answer.Viewer.Tenant.Id, nil
}

func (t *tool) userList() *cobra.Command {
	var tenant string
	var limit int
	list := t.command("list", "List the people of a tenant", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		if tenant, err = tenantID(ctx, c, tenant); err != nil {
			return err
		}
		found, err := collect[gql.User](client.All[gql.User](limit, func(first int, after string) (*gql.UserPage, error) {
			answer, err := gql.ListUsers(ctx, c, tenant, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Users, nil
		}))
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for _, user := range found {
			rows, ids = append(rows, []string{user.Id, user.Email, user.DisplayName}), append(ids, user.Id)
		}
		return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) { p.Table([]string{"ID", "EMAIL", "NAME"}, rows) }})
	})
	list.Flags().StringVar(&tenant, "tenant", "", "tenant's id; your own if not given")
	limitFlag(list, &limit)
	return list
}

func (t *tool) userCreate() *cobra.Command {
	var input gql.CreateUserInput
	create := t.command("create EMAIL", "Add a person", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		input.Email, input.DisplayName = args[0], firstOf(input.DisplayName, args[0])
		input.IdempotencyKey = key(input.IdempotencyKey)
		answer, err := gql.CreateUser(ctx, c, input)
		if err != nil {
			return err
		}
		made := answer.CreateUser
		return t.showOne(made, made.Id, "Email", made.Email, "Name", made.DisplayName, "Tenant", render.Text(made.TenantId))
	})
	create.Flags().StringVar(&input.DisplayName, "display-name", "", "name for people; the address if not given")
	create.Flags().StringVar(&input.TenantId, "tenant", "", "tenant's id; none adds platform staff")
	keyFlag(create, &input.IdempotencyKey)
	return create
}

func (t *tool) userLoginLink() *cobra.Command {
	return t.command("login-link USER", "Mint a one-time login for a person", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.CreateLoginLink(ctx, c, args[0])
		if err != nil {
			return err
		}
		made := answer.CreateLoginLink
		return t.showSecret(made, made.Code, "Code", made.Code, "Link", made.Url, "Works until", render.Time(&made.ExpiresAt))
	})
}

func (t *tool) serviceAccountList() *cobra.Command {
	var limit int
	list := t.command("list", "List the project's service accounts", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		found, err := collect[gql.ServiceAccount](client.All[gql.ServiceAccount](limit, func(first int, after string) (*gql.ServiceAccountPage, error) {
			answer, err := gql.ListServiceAccounts(ctx, c, project, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.ServiceAccounts, nil
		}))
		if err != nil {
			return err
		}
		return t.showServiceAccounts(found)
	})
	limitFlag(list, &limit)
	return list
}

func (t *tool) showServiceAccounts(found []gql.ServiceAccount) error {
	var rows [][]string
	var ids []string
	for _, account := range found {
		working := 0
		for _, key := range account.Keys {
			if key.RevokedAt == nil {
				working++
			}
		}
		rows = append(rows, []string{account.Id, account.Name, plural(working, "key"), strings.Join(account.PermissionKeys, " ")})
		ids = append(ids, account.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "NAME", "NOT REVOKED", "PERMISSION KEYS"}, rows)
	}})
}

func (t *tool) serviceAccountCreate() *cobra.Command {
	var input gql.CreateServiceAccountInput
	var limits limitFlags
	create := t.command("create NAME", "Make a service account in the project", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		input.ProjectId, input.Name, input.IdempotencyKey = project, args[0], key(input.IdempotencyKey)
		if input.Limits, err = limits.input(); err != nil {
			return err
		}
		answer, err := gql.CreateServiceAccount(ctx, c, input)
		if err != nil {
			return err
		}
		made := answer.CreateServiceAccount
		return t.showOne(made, made.Id, "Name", made.Name, "Project", made.ProjectId, "Permission keys", strings.Join(made.PermissionKeys, " "),
			"Limits", limitsText(made.Limits))
	})
	create.Flags().StringSliceVar(&input.PermissionKeys, "permission", nil, "permission key it may use; repeat or separate by commas")
	limits.bind(create)
	keyFlag(create, &input.IdempotencyKey)
	_ = create.MarkFlagRequired("permission")
	return create
}

func (t *tool) keyCreate() *cobra.Command {
	var expires string
	create := t.command("create SERVICE-ACCOUNT", "Make a key for a service account, given by id; its secret is shown once", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			at, err := instant("expires", expires)
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			answer, err := gql.CreateServiceAccountKey(ctx, c, gql.CreateServiceAccountKeyInput{ServiceAccountId: args[0], ExpiresAt: at})
			if err != nil {
				return err
			}
			made := answer.CreateServiceAccountKey
			return t.showSecret(made, made.Secret, "Key", made.Key.Id, "Secret", made.Secret,
				"Works until", firstOf(render.Time(made.Key.ExpiresAt), "revoked"))
		})
	create.Flags().StringVar(&expires, "expires", "", "when it stops working: a time or a duration; never if not given")
	return create
}

func (t *tool) keyRevoke() *cobra.Command {
	var reason string
	revoke := t.command("revoke KEY", "Revoke a key at once", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RevokeServiceAccountKey(ctx, c, args[0], reason)
		if err != nil {
			return err
		}
		made := answer.RevokeServiceAccountKey
		return t.showOne(made, made.Id, "Service account", made.ServiceAccountId, "Revoked", render.Time(made.RevokedAt))
	})
	revoke.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	return revoke
}

func (t *tool) grantCommand() *cobra.Command {
	var input gql.GrantRoleInput
	var platform bool
	var expires string
	grant := t.command("grant USER ROLE", "Give a role to a person, by id, in the project, a tenant or on the platform", cobra.ExactArgs(2),
		func(ctx context.Context, args []string) error {
			at, err := instant("expires", expires)
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			if input.TenantId == "" && !platform {
				if input.ProjectId, err = t.projectID(ctx, c); err != nil {
					return err
				}
			}
			input.SubjectId, input.Role, input.ExpiresAt = args[0], args[1], at
			answer, err := gql.GrantRole(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showBinding(answer.GrantRole)
		})
	grant.Flags().StringVar(&input.TenantId, "tenant", "", "in this whole tenant, by id")
	grant.Flags().BoolVar(&platform, "platform", false, "on the whole platform")
	grant.Flags().StringVar(&expires, "expires", "", "when it ends: a time or a duration; never if not given")
	grant.Flags().StringVar(&input.Reason, "reason", "", "why, kept in the audit")
	grant.MarkFlagsMutuallyExclusive("tenant", "platform")
	return grant
}

func (t *tool) revokeCommand() *cobra.Command {
	var reason string
	revoke := t.command("revoke BINDING", "Take a role away", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RevokeRole(ctx, c, args[0], reason)
		if err != nil {
			return err
		}
		return t.showBinding(answer.RevokeRole)
	})
	revoke.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	return revoke
}

func (t *tool) showBinding(made gql.RoleBinding) error {
	scope := firstOf(render.Text(made.ProjectId), render.Text(made.TenantId), "platform")
	return t.showOne(made, made.Id, "Subject", made.SubjectId, "Role", made.Role, "Scope", scope, "Expires", render.Time(made.ExpiresAt))
}
