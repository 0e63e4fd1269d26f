package identity

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// invite returns the command that mints a code with which a person accepts to belong to the tenant.
func invite(t *command.Tool) *cobra.Command {
	return command.Verb(t, "invite USER", "Create a code with which a person, by id, accepts their invitation",
		func(made gql.Invitation) command.View {
			return command.Secret(made, made.Code, "Code", made.Code, "Link", made.Url,
				"Works until", render.Time(&made.ExpiresAt))
		},
		func(ctx context.Context, args []string) (gql.Invitation, error) {
			answer, err := gql.InviteUser(ctx, t, args[0])
			return answer.InviteUser, err
		})
}

// listInvitations returns the command that lists who has not accepted yet.
func listInvitations(t *command.Tool) *cobra.Command {
	var tenant string
	own := func(ctx context.Context, _ []string) (string, error) { return lookup.Tenant(ctx, t, tenant) }
	cmd := command.Pages(t, "invitations", "List the people of a tenant who have not accepted their invitation",
		invitationTable, own,
		func(ctx context.Context, tenant string, first int, after string) (*gql.UserPage, error) {
			answer, err := gql.ListInvitations(ctx, t, tenant, first, after)
			return &answer.Users, err
		})
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant's id; your own if not given")
	return cmd
}

var invitationTable = command.Table[gql.User]{
	Heading: []string{"ID", "EMAIL", "NAME", "INVITED", "CODE ENDS"},
	Row: func(user *gql.User) []string {
		return []string{user.Id, user.Email, user.DisplayName, render.Time(user.InvitedAt),
			render.Time(user.InvitationEndsAt)}
	},
}

// revokeInvitation returns the command that ends the code that a person was invited with.
func revokeInvitation(t *command.Tool) *cobra.Command {
	return command.Reasoned(t, "revoke-invitation USER",
		"Revoke the invitation code of a person, by id; the person stays and can be invited again",
		func(user gql.User) command.View {
			return command.One(user, user.Id, "Email", user.Email, "Name", user.DisplayName)
		},
		func(ctx context.Context, args []string, reason string) (gql.User, error) {
			answer, err := gql.RevokeInvitation(ctx, t, args[0], reason)
			return answer.RevokeInvitation, err
		})
}
