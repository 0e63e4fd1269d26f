package policy

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func listEntitlements(t *command.Tool) *cobra.Command {
	var ended bool
	cmd := command.Pages(t, "list", "List the project's entitlements, newest first", entitlementTable, t.InProject,
		func(ctx context.Context, project string, first int, after string) (*gql.EntitlementPage, error) {
			answer, err := gql.ListEntitlements(ctx, t, project, ended, first, after)
			return &answer.Entitlements, err
		})
	cmd.Flags().BoolVar(&ended, "ended", false, "revoked and expired ones as well")
	return cmd
}

var entitlementTable = command.Table[gql.Entitlement]{
	Heading: []string{"ID", "APP", "INSTANCES", "MEMBERS", "GPUS", "VERSIONS", "EXPIRES", "REVOKED", "REASON"},
	Row: func(one *gql.Entitlement) []string {
		return []string{
			one.Id, one.AppSlug, limit(one.MaxInstances), limit(one.MaxMembers), limit(one.MaxGpus),
			strings.Join(one.Versions, ", "), render.Time(one.ExpiresAt), render.Time(one.RevokedAt), one.Reason,
		}
	},
}

func limit(most *int) string { return render.Bound(most, "any") }

// grantEntitlement returns the command that grants an app with limits. A limit that is given goes to the server as it
// is, which refuses 0: it is not the absence of a limit.
func grantEntitlement(t *command.Tool) *cobra.Command {
	var cmd *cobra.Command
	var instances, members, gpus int
	var versions []string
	var expires, reason string
	cmd = command.Verb(t, "grant APP", "Let the project launch an app; a limit that is left out is unlimited",
		viewEntitlement,
		func(ctx context.Context, args []string) (none gql.Entitlement, err error) {
			until, err := command.Instant("expires", expires)
			if err != nil {
				return none, err
			}
			project, err := t.ProjectID(ctx)
			if err != nil {
				return none, err
			}
			answer, err := gql.GrantEntitlement(ctx, t, project, args[0], &gql.EntitlementLimitsInput{
				MaxInstances: command.GivenFlag(cmd, "max-instances", instances),
				MaxMembers:   command.GivenFlag(cmd, "max-members", members),
				MaxGpus:      command.GivenFlag(cmd, "max-gpus", gpus), Versions: versions,
			}, until, reason)
			return answer.GrantEntitlement, err
		})
	cmd.Example = `  appctl entitlements grant hello --max-instances 2 --max-gpus 8 --versions ">=1.2 <2" --expires 720h --reason "trial"`
	flags := cmd.Flags()
	flags.IntVar(&instances, "max-instances", 0, "most live instances of the app")
	flags.IntVar(&members, "max-members", 0, "most members of one instance")
	flags.IntVar(&gpus, "max-gpus", 0, "most GPUs of one instance's allocations")
	flags.StringArrayVar(&versions, "versions", nil,
		"a constraint on versions; repeat for more, of which a version must meet one")
	flags.StringVar(&expires, "expires", "", "when it ends: a time, or a duration from now")
	command.ReasonFlag(cmd, &reason)
	cmd.ValidArgsFunction = lookup.CompleteApps(t)
	return cmd
}

// entitle grants without limits.
func entitle(t *command.Tool) *cobra.Command {
	cmd := command.Of(t, "entitle APP", "Let the project launch an app", t.InProject, viewEntitlement,
		func(ctx context.Context, project string, args []string) (gql.Entitlement, error) {
			answer, err := gql.GrantEntitlement(ctx, t, project, args[0], nil, nil, "")
			return answer.GrantEntitlement, err
		})
	cmd.ValidArgsFunction = lookup.CompleteApps(t)
	return cmd
}

func revokeEntitlement(t *command.Tool, use string) *cobra.Command {
	var reason string
	cmd := command.Of(t, use, "Stop the project from launching an app; instances stay", t.InProject, viewEntitlement,
		func(ctx context.Context, project string, args []string) (gql.Entitlement, error) {
			answer, err := gql.RevokeEntitlement(ctx, t, project, args[0], reason)
			return answer.RevokeEntitlement, err
		})
	command.ReasonFlag(cmd, &reason)
	cmd.ValidArgsFunction = lookup.CompleteApps(t)
	return cmd
}

func viewEntitlement(made gql.Entitlement) command.View {
	return command.One(made, made.Id, "Project", made.ProjectId, "App", made.AppSlug, "Instances",
		limit(made.MaxInstances),
		"Members per instance", limit(made.MaxMembers), "GPUs per instance", limit(made.MaxGpus),
		"Versions", strings.Join(made.Versions, ", "), "Given by", made.GrantedBy, "Why", made.Reason,
		"Since", render.Time(&made.CreatedAt), "Expires", render.Time(made.ExpiresAt), "Revoked",
		render.Time(made.RevokedAt))
}
