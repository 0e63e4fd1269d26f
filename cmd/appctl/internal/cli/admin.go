package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) adminCommand() *cobra.Command {
	return group("admin", "Verbs of operators, tenant admins, publishers and their automation",
		group("tenant", "Tenants", t.tenantCreate(), t.tenantRename()),
		group("project", "Projects", t.projectCreate(), t.projectRename(), t.projectDelete()),
		group("user", "People", t.userList(), t.userCreate(), t.userUpdate(), t.userLoginLink()),
		group("role", "Roles, and who holds them", t.roleList(), t.roleBindings(), t.permissionList()),
		group("service-account", "Automation identities of a project", t.serviceAccountList(), t.serviceAccountCreate(),
			t.serviceAccountUpdate(), t.serviceAccountDelete()),
		group("key", "Keys of service accounts", t.keyCreate(), t.keyRotate(), t.keyRevoke()),
		t.grantCommand(), t.revokeCommand(), t.entitleCommand(), t.unentitleCommand(),
		group("app", "Apps of the catalog", t.appCreate()),
		group("artifact", "Digest-pinned artifacts", t.artifactList(), t.artifactPublish(true), t.artifactPromote()),
		group("manifest", "Versions of apps", t.manifestLint(), t.manifestPublish(), t.manifestPromote()),
		group("adapter", "Adapters that the platform may call", t.adapterList(), t.adapterRegister()),
		group("node", "Nodes", t.nodeEnrol()),
	)
}

func (t *tool) nodeEnrol() *cobra.Command {
	var input gql.CreateNodeEnrolmentInput
	var ttl time.Duration
	enrol := t.command("enrol [NAME]", "Mint a one-time token for a node's agent", cobra.MaximumNArgs(1),
		func(ctx context.Context, args []string) error {
			if ttl < time.Minute || ttl%time.Minute != 0 {
				return usagef("--ttl %s: must be whole minutes", ttl)
			}
			if len(args) == 1 {
				input.Name = args[0]
			}
			input.TtlMinutes = int(ttl / time.Minute)
			c, err := t.connect()
			if err != nil {
				return err
			}
			answer, err := gql.CreateNodeEnrolment(ctx, c, input)
			if err != nil {
				return err
			}
			made := answer.CreateNodeEnrolment
			return t.showSecret(made, made.Token, "Enrolment token", made.Token, "Works until", render.Time(&made.ExpiresAt))
		})
	enrol.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it can be used, 1m to 24h")
	return enrol
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

// stageText is how far something is trusted, and whether anything proves it.
func stageText(stage gql.Stage, evidence []byte) string {
	if len(evidence) == 0 || string(evidence) == "null" {
		return string(stage)
	}
	return fmt.Sprintf("%s, with evidence", stage)
}
