package identity

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func listRoles(t *command.Tool) *cobra.Command {
	return command.Verb(t, "list", "List every role with its permission keys", roleTable.View,
		func(ctx context.Context, _ []string) ([]gql.Role, error) {
			answer, err := gql.ListRoles(ctx, t)
			return answer.Roles, err
		})
}

var roleTable = command.Table[gql.Role]{
	Heading: []string{"ROLE", "GRANTED AT", "KEYS", "FOR"},
	Row: func(role *gql.Role) []string {
		scopes := strings.ToLower(strings.Join(role.Scopes, ","))
		return []string{role.Name, scopes, render.Plural(len(role.PermissionKeys), "key"), role.Description}
	},
}

func listPermissionKeys(t *command.Tool) *cobra.Command {
	return command.Verb(t, "permissions", "List every permission key", permissionTable.View,
		func(ctx context.Context, _ []string) ([]gql.PermissionKey, error) {
			answer, err := gql.ListPermissionKeys(ctx, t)
			return answer.PermissionKeys, err
		})
}

var permissionTable = command.Table[gql.PermissionKey]{
	Heading: []string{"KEY", "ALLOWS"},
	Row:     func(key *gql.PermissionKey) []string { return []string{key.Name, key.Description} },
}

// listBindings lists the roles of the project, of a tenant, or of the platform.
func listBindings(t *command.Tool) *cobra.Command {
	var tenant string
	var platform, ended bool
	project := func(ctx context.Context, _ []string) (string, error) {
		if tenant != "" || platform {
			return "", nil
		}
		return t.ProjectID(ctx)
	}
	cmd := command.Pages(t, "bindings",
		"List who has which role in the project, a tenant or on the platform, newest first", bindingTable, project,
		func(ctx context.Context, project string, first int, after string) (*gql.RoleBindingPage, error) {
			answer, err := gql.ListRoleBindings(ctx, t, tenant, project, ended, first, after)
			return &answer.RoleBindings, err
		})
	cmd.Flags().StringVar(&tenant, "tenant", "", "of this tenant, by id")
	cmd.Flags().BoolVar(&platform, "platform", false, "of the platform")
	cmd.Flags().BoolVar(&ended, "ended", false, "revoked and expired ones too")
	cmd.MarkFlagsMutuallyExclusive("tenant", "platform")
	return cmd
}

var bindingTable = command.Table[gql.GrantedRole]{
	Heading: []string{"ID", "SUBJECT", "ROLE", "SCOPE", "EXPIRES", "REVOKED", "BREAK-GLASS", "REASON"},
	Row: func(binding *gql.GrantedRole) []string {
		return []string{
			binding.Id, binding.SubjectId, binding.Role, parts.Scope(binding.ProjectId, binding.TenantId),
			cmp.Or(render.Time(binding.ExpiresAt), "never"), render.Time(binding.RevokedAt),
			render.Yes(binding.BreakGlass),
			binding.Reason,
		}
	},
}

func viewBinding(made gql.RoleBinding) command.View {
	return command.One(made, made.Id, "Subject", made.SubjectId, "Role", made.Role,
		"Scope", parts.Scope(made.ProjectId, made.TenantId), "Expires", render.Time(made.ExpiresAt))
}

// grant returns the command that gives a role, in the project unless a tenant or the platform is given.
func grant(t *command.Tool) *cobra.Command {
	var input gql.GrantRoleInput
	var platform bool
	var expires string
	cmd := command.Verb(t, "grant USER ROLE",
		"Give a role to a person, by id, in the project, a tenant or on the platform", viewBinding,
		func(ctx context.Context, args []string) (none gql.RoleBinding, err error) {
			input.SubjectId, input.Role = args[0], args[1]
			if input.ExpiresAt, err = command.Instant("expires", expires); err != nil {
				return none, err
			}
			if input.TenantId == "" && !platform {
				if input.ProjectId, err = t.ProjectID(ctx); err != nil {
					return none, err
				}
			}
			answer, err := gql.GrantRole(ctx, t, input)
			return answer.GrantRole, err
		})
	cmd.Flags().StringVar(&input.TenantId, "tenant", "", "in this whole tenant, by id")
	cmd.Flags().BoolVar(&platform, "platform", false, "on the whole platform")
	cmd.Flags().StringVar(&expires, "expires", "", "when it ends: a time or a duration; never if not given")
	command.ReasonFlag(cmd, &input.Reason)
	cmd.MarkFlagsMutuallyExclusive("tenant", "platform")
	return cmd
}

func revoke(t *command.Tool) *cobra.Command {
	return command.Reasoned(t, "revoke BINDING", "Take a role away", viewBinding,
		func(ctx context.Context, args []string, reason string) (gql.RoleBinding, error) {
			answer, err := gql.RevokeRole(ctx, t, args[0], reason)
			return answer.RevokeRole, err
		})
}

// why returns the command that explains why a subject may, or may not, do something.
func why(t *command.Tool) *cobra.Command {
	var subject, risk string
	var platform bool
	cmd := command.Verb(t, "why PERMISSION [OBJECT]",
		"Explain why you, or another subject, may or may not do something", viewWhy,
		func(ctx context.Context, args []string) (*gql.PermissionExplanation, error) {
			input := gql.ExplainPermissionInput{PermissionKey: args[0], SubjectId: command.Given(subject)}
			given := ""
			if len(args) > 1 {
				given = args[1]
			}
			object, err := objectOf(ctx, t, given, platform)
			if err != nil {
				return nil, err
			}
			input.ObjectId = object
			if risk != "" {
				asked, err := command.Enum("risk", risk, gql.AllActionRisk)
				if err != nil {
					return nil, err
				}
				input.Risk = &asked
			}
			answer, err := gql.ExplainPermission(ctx, t, input)
			return &answer.ExplainPermission, err
		})
	cmd.Long = `Explain why you, or another subject, may or may not do something: to an OBJECT, given by its id, to an instance of the
project given by its name, or to a project given by its slug; if left out, to the project that is in use.`
	cmd.Flags().BoolVar(&platform, "platform", false, "on the platform, and not in a project")
	cmd.Flags().StringVar(&subject, "subject", "",
		"a person, service account, operation or node by id, instead of yourself")
	cmd.Flags().StringVar(&risk, "risk", "", "for an app action of this risk: read, write or destructive")
	return cmd
}

// typedID is an id of any object.
var typedID = regexp.MustCompile(`^[a-z]{2,4}_[0-9A-Za-z]+$`)

// objectOf returns the id of what a question is about: what is named, else the project of the run; nil for the
// platform, which is what is left for a caller without any project.
func objectOf(ctx context.Context, t *command.Tool, given string, platform bool) (*string, error) {
	if platform && given != "" {
		return nil, command.Usagef("--platform: a permission on the platform has no object, leave %q out", given)
	}
	if platform || typedID.MatchString(given) {
		return command.Given(given), nil
	}
	projects, err := t.Projects(ctx)
	if err != nil {
		return nil, err
	}
	if given == "" {
		if len(projects) == 0 && t.Project == "" {
			return nil, nil
		}
		id, err := t.ProjectID(ctx)
		return command.Given(id), err
	}
	for _, project := range projects {
		if project.Slug == given {
			return &project.Id, nil
		}
	}
	id, err := lookup.Instance(ctx, t, given)
	return command.Given(id), err
}

// viewWhy shows the grounds of a permission that is allowed; else what is missing for it, and who can grant it.
func viewWhy(found *gql.PermissionExplanation) command.View {
	list := found.Missing
	if found.Allowed {
		list = found.Because
	}
	var ids []string
	for _, ground := range list {
		if ground.RowId != "" {
			ids = append(ids, ground.RowId)
		}
	}
	return command.View{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Fields("Subject", found.Subject.Name+" ("+found.Subject.Id+")", "Permission", found.PermissionKey,
			"Allows", found.Description, "Allowed", render.YesNo(found.Allowed))
		groundTable.On(p, list)
		if len(found.AskWhom) > 0 {
			askTable.On(p, found.AskWhom)
		}
	}}
}

var groundTable = command.Table[gql.PermissionGround]{
	Heading: []string{"GROUND", "ID", "ROLE", "SCOPE", "ENDS", "WHY"},
	Row: func(ground *gql.PermissionGround) []string {
		return []string{ground.Kind, ground.RowId, ground.Role, ground.Scope, render.Time(ground.ExpiresAt),
			ground.Message}
	},
}

var askTable = command.Table[gql.Actor]{
	Heading: []string{"ASK", "NAME"},
	Row:     func(person *gql.Actor) []string { return []string{person.Id, person.Name} },
}

// breakEnd returns the command that ends an operation in an emergency, without proof of what it left.
func breakEnd(t *command.Tool) *cobra.Command {
	var input gql.BreakGlassEndOperationInput
	cmd := command.Verb(t, "end-operation OPERATION",
		"End an operation that cannot end by itself, as FAILED and unverified",
		func(op gql.Operation) command.View {
			return command.One(op, op.Id, "Kind", string(op.Kind), "State", string(op.State), "Message", op.Message)
		},
		func(ctx context.Context, args []string) (gql.Operation, error) {
			input.OperationId = args[0]
			answer, err := gql.BreakGlassEndOperation(ctx, t, input)
			return answer.BreakGlassEndOperation, err
		})
	registerEmergency(cmd, &input.Reason, &input.Incident)
	return cmd
}

// registerEmergency adds the flags that say what the emergency is.
func registerEmergency(cmd *cobra.Command, reason, incident *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why nothing else works, 20 to 1,000 characters")
	cmd.Flags().StringVar(incident, "incident", "", "the incident's reference")
	command.Need(cmd, "reason")
}

// breakGrant returns the command that gives a role in an emergency. It ends by itself.
func breakGrant(t *command.Tool) *cobra.Command {
	var input gql.BreakGlassGrantRoleInput
	cmd := command.Verb(t, "grant USER ROLE", "Give a role for a short time, also to yourself", viewBinding,
		func(ctx context.Context, args []string) (none gql.RoleBinding, err error) {
			input.SubjectId, input.Role = args[0], args[1]
			if input.TenantId == "" {
				if input.ProjectId, err = t.ProjectID(ctx); err != nil {
					return none, err
				}
			}
			answer, err := gql.BreakGlassGrantRole(ctx, t, input)
			return answer.BreakGlassGrantRole, err
		})
	cmd.Long = "Give a role in the project, or in a whole tenant with --tenant, for 5 to 240 minutes. It ends by " +
		"itself."
	cmd.Flags().StringVar(&input.TenantId, "tenant", "", "in this whole tenant, by id")
	cmd.Flags().IntVar(&input.DurationMinutes, "minutes", 60, "how long, 5 to 240 minutes")
	registerEmergency(cmd, &input.Reason, &input.Incident)
	return cmd
}
