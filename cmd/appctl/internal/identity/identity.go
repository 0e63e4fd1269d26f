// Package identity is the commands about who may do what: tenants, projects, people, service accounts and their keys,
// roles, sessions, and the emergency verbs that set the rules aside.
package identity

import (
	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
)

// Commands returns the commands of everyone.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		projects(t), why(t),
		command.Group("sessions", "Your logins, at browsers and command lines", listSessions(t), endSession(t),
			endSessions(t)),
		command.Group("break-glass", "Override the rules in an emergency; flagged everywhere, and always with a reason",
			breakEnd(t), breakGrant(t), madeUnder(t)),
	}
}

// Admin returns the commands of operators and tenant admins.
func Admin(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		command.Group("tenant", "Tenants", listTenants(t), createTenant(t), renameTenant(t), setDomains(t)),
		command.Group("project", "Projects", createProject(t), renameProject(t), deleteProject(t)),
		command.Group("user", "People", listUsers(t), createUser(t), updateUser(t), loginLink(t),
			invite(t), listInvitations(t), revokeInvitation(t)),
		command.Group("role", "Roles, and who has them", listRoles(t), listBindings(t), listPermissionKeys(t)),
		command.Group("service-account", "Automation identities of a project", listAccounts(t), createAccount(t),
			updateAccount(t), deleteAccount(t)),
		command.Group("key", "Keys of service accounts", createKey(t), rotateKey(t), revokeKey(t)),
		grant(t), revoke(t),
	}
}
