package identity

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func listUsers(t *command.Tool) *cobra.Command {
	var tenant string
	own := func(ctx context.Context, _ []string) (string, error) { return lookup.Tenant(ctx, t, tenant) }
	cmd := command.Pages(t, "list", "List the people of a tenant", userTable, own,
		func(ctx context.Context, tenant string, first int, after string) (*gql.UserPage, error) {
			answer, err := gql.ListUsers(ctx, t, tenant, first, after)
			return &answer.Users, err
		})
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant's id; your own if not given")
	return cmd
}

var userTable = command.Table[gql.User]{
	Heading: []string{"ID", "EMAIL", "NAME"},
	Row:     func(user *gql.User) []string { return []string{user.Id, user.Email, user.DisplayName} },
}

// createUser returns the command that adds a person; without a tenant they are platform staff.
func createUser(t *command.Tool) *cobra.Command {
	var input gql.CreateUserInput
	cmd := command.Verb(t, "create EMAIL", "Add a person",
		func(made gql.User) command.View {
			return command.One(made, made.Id, "Email", made.Email, "Name", made.DisplayName,
				"Tenant", render.Text(made.TenantId), "Invitation", waits(made))
		},
		func(ctx context.Context, args []string) (gql.User, error) {
			input.Email, input.DisplayName = args[0], cmp.Or(input.DisplayName, args[0])
			answer, err := gql.CreateUser(ctx, t, input)
			return answer.CreateUser, err
		})
	cmd.Flags().StringVar(&input.DisplayName, "display-name", "", "display name; the address if not given")
	cmd.Flags().StringVar(&input.TenantId, "tenant", "", "tenant's id; none adds platform staff")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

// waits returns what a person who has to accept does next; nothing for others.
func waits(user gql.User) string {
	if user.InvitedAt == nil || user.AcceptedAt != nil {
		return ""
	}
	return "must be accepted: appctl admin user invite " + user.Id
}

// updateUser returns the command that changes what is given and leaves the rest of a person as it is.
func updateUser(t *command.Tool) *cobra.Command {
	var input gql.UpdateUserInput
	var name string
	var disable, enable bool
	cmd := command.Verb(t, "update USER", "Rename, disable or enable a person, by id; disabling ends every session",
		func(made gql.User) command.View {
			return command.One(made, made.Id, "Email", made.Email, "Name", made.DisplayName,
				"Disabled", render.Time(made.DisabledAt))
		},
		func(ctx context.Context, args []string) (none gql.User, err error) {
			if _, err := t.Connect(); err != nil {
				return none, err
			}
			if name == "" && !disable && !enable {
				return none, command.Usagef("what changes? give --display-name, --disable or --enable")
			}
			input.UserId, input.DisplayName = args[0], command.Given(name)
			if disable || enable {
				input.Disabled = &disable
			}
			answer, err := gql.UpdateUser(ctx, t, input)
			return answer.UpdateUser, err
		})
	cmd.Flags().StringVar(&name, "display-name", "", "display name")
	cmd.Flags().BoolVar(&disable, "disable", false, "refuse every login of this person")
	cmd.Flags().BoolVar(&enable, "enable", false, "allow logins of this person again")
	cmd.MarkFlagsMutuallyExclusive("disable", "enable")
	command.ReasonFlag(cmd, &input.Reason)
	return cmd
}

func loginLink(t *command.Tool) *cobra.Command {
	return command.Verb(t, "login-link USER", "Create a one-time login for a person",
		func(made gql.LoginLink) command.View {
			return command.Secret(made, made.Code, "Code", made.Code, "Link", made.Url,
				"Works until", render.Time(&made.ExpiresAt))
		},
		func(ctx context.Context, args []string) (gql.LoginLink, error) {
			answer, err := gql.CreateLoginLink(ctx, t, args[0])
			return answer.CreateLoginLink, err
		})
}

func listSessions(t *command.Tool) *cobra.Command {
	return command.Verb(t, "list", "List your open sessions, newest first", sessionTable.View,
		func(ctx context.Context, _ []string) ([]gql.Session, error) {
			answer, err := gql.ListSessions(ctx, t)
			return append([]gql.Session{}, answer.Viewer.Sessions...), err
		})
}

var sessionTable = command.Table[gql.Session]{
	Heading: []string{"ID", "THIS ONE", "BY", "FROM", "CLIENT", "BEGAN", "ENDS"},
	Row: func(session *gql.Session) []string {
		return []string{
			session.Id, render.Yes(session.Current), session.Method, session.Origin, session.Agent,
			render.Time(&session.CreatedAt), render.Time(&session.ExpiresAt),
		}
	},
}

func endSession(t *command.Tool) *cobra.Command {
	return command.Verb(t, "end SESSION", "End one of your sessions at once",
		func(ended gql.Session) command.View {
			return command.One(ended, ended.Id, "Client", ended.Agent, "From", ended.Origin)
		},
		func(ctx context.Context, args []string) (gql.Session, error) {
			answer, err := gql.EndSession(ctx, t, args[0])
			return answer.EndSession, err
		})
}

// endSessions returns the command that ends all sessions of a person, the caller's own included.
func endSessions(t *command.Tool) *cobra.Command {
	var user string
	cmd := command.Reasoned(t, "end-all", "End every session, this one too; those of another person with --user",
		func(n int) command.View {
			return command.Line(map[string]any{"ended": n}, render.Plural(n, "session")+" ended", fmt.Sprint(n))
		},
		func(ctx context.Context, _ []string, reason string) (int, error) {
			answer, err := gql.LogoutEverywhere(ctx, t, user, reason)
			return answer.LogoutEverywhere, err
		})
	cmd.Flags().StringVar(&user, "user", "", "person's id; yourself if not given")
	return cmd
}
