package identity

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// limitFlags are the limits of a service account, as flags.
type limitFlags struct {
	cmd     *cobra.Command
	objects []string
	risk    string
	hourly  int
}

func (l *limitFlags) register(cmd *cobra.Command) {
	l.cmd = cmd
	flags := cmd.Flags()
	flags.StringSliceVar(&l.objects, "object", nil,
		"only instance or allocation that it may act on, by id; repeat or separate by commas")
	flags.StringVar(&l.risk, "max-risk", "",
		"highest risk of an app action that it may run: read, write or destructive")
	flags.IntVar(&l.hourly, "operations-per-hour", 0, "how many operations it may begin in an hour")
}

// input returns the limits that were given; nil when none were.
func (l *limitFlags) input() (*gql.ServiceAccountLimitsInput, error) {
	hourly := command.GivenFlag(l.cmd, "operations-per-hour", l.hourly)
	if len(l.objects) == 0 && l.risk == "" && hourly == nil {
		return nil, nil
	}
	risk := gql.ActionRisk(strings.ToUpper(l.risk))
	if l.risk != "" && !slices.Contains(gql.AllActionRisk, risk) {
		return nil, command.Usagef("--max-risk %q: must be read, write or destructive", l.risk)
	}
	return &gql.ServiceAccountLimitsInput{
		ObjectIds: l.objects, MaxRisk: command.Given(risk), OperationsPerHour: hourly,
	}, nil
}

// liftFlags are the limits that an update lifts, as flags.
type liftFlags struct {
	lift []string
	all  bool
}

func (l *liftFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&l.lift, "lift", nil,
		"limit that is lifted: object-ids, max-risk or operations-per-hour; repeat or separate by commas")
	cmd.Flags().BoolVar(&l.all, "no-limits", false, "lift every limit")
}

// input returns the limits that are lifted.
func (l *liftFlags) input() ([]gql.AccountLimit, error) {
	if l.all {
		if len(l.lift) > 0 {
			return nil, command.Usagef("--no-limits lifts every limit: leave out --lift")
		}
		return gql.AllAccountLimit, nil
	}
	return command.Enums("lift", l.lift, gql.AllAccountLimit)
}

// limitsText returns what an account is bound to beyond its keys.
func limitsText(limits *gql.ServiceAccountLimits) string {
	if limits == nil {
		return ""
	}
	objects, risk := "", ""
	if len(limits.ObjectIds) > 0 {
		objects = "only " + strings.Join(limits.ObjectIds, ", ")
	}
	if limits.MaxRisk != nil {
		risk = "risk up to " + strings.ToLower(string(*limits.MaxRisk))
	}
	return render.Joined("; ", objects, risk, render.Number(limits.OperationsPerHour, "%d operations an hour"))
}

func listAccounts(t *command.Tool) *cobra.Command {
	return command.Pages(t, "list", "List the project's service accounts", accountTable, t.InProject,
		func(ctx context.Context, project string, first int, after string) (*gql.ServiceAccountPage, error) {
			answer, err := gql.ListServiceAccounts(ctx, t, project, first, after)
			return &answer.ServiceAccounts, err
		})
}

var accountTable = command.Table[gql.ServiceAccount]{
	Heading: []string{"ID", "NAME", "NOT REVOKED", "PERMISSION KEYS"},
	Row: func(account *gql.ServiceAccount) []string {
		working := 0
		for _, key := range account.Keys {
			if key.RevokedAt == nil {
				working++
			}
		}
		return []string{account.Id, account.Name, render.Plural(working, "key"),
			strings.Join(account.PermissionKeys, " ")}
	},
}

// createAccount returns the command that makes a service account, which can do no more than its permission keys allow.
func createAccount(t *command.Tool) *cobra.Command {
	var input gql.CreateServiceAccountInput
	var limits limitFlags
	cmd := command.Verb(t, "create NAME", "Create a service account in the project",
		func(made gql.ServiceAccount) command.View {
			return command.One(made, made.Id, "Name", made.Name, "Project", made.ProjectId,
				"Permission keys", strings.Join(made.PermissionKeys, " "), "Limits", limitsText(made.Limits))
		},
		func(ctx context.Context, args []string) (none gql.ServiceAccount, err error) {
			if input.ProjectId, err = t.ProjectID(ctx); err != nil {
				return none, err
			}
			input.Name = args[0]
			if input.Limits, err = limits.input(); err != nil {
				return none, err
			}
			answer, err := gql.CreateServiceAccount(ctx, t, input)
			return answer.CreateServiceAccount, err
		})
	cmd.Flags().StringSliceVar(&input.PermissionKeys, "permission", nil,
		"permission key it may use; repeat or separate by commas")
	limits.register(cmd)
	command.KeyFlag(cmd, &input.IdempotencyKey)
	command.Need(cmd, "permission")
	return cmd
}

// updateAccount returns the command that changes the keys and limits that are named, or says what that would change.
func updateAccount(t *command.Tool) *cobra.Command {
	var input gql.UpdateServiceAccountInput
	var limits limitFlags
	var lift liftFlags
	var plan bool
	cmd := t.Command("update SERVICE-ACCOUNT", "Change what a service account, by id, may do from now on",
		func(ctx context.Context, args []string) (err error) {
			if input.Limits, err = limits.input(); err != nil {
				return err
			}
			if input.LiftLimits, err = lift.input(); err != nil {
				return err
			}
			if input.Limits == nil && len(input.LiftLimits) == 0 && len(input.PermissionKeys) == 0 {
				return command.Usagef("what changes? give --permission, a limit, --lift or --no-limits")
			}
			input.ServiceAccountId = args[0]
			if plan {
				answer, err := gql.PlanServiceAccountUpdate(ctx, t, input)
				if err != nil {
					return err
				}
				return t.Show(viewChange(args[0], answer.PlanServiceAccountUpdate))
			}
			answer, err := gql.UpdateServiceAccount(ctx, t, input)
			if err != nil {
				return err
			}
			made := answer.UpdateServiceAccount
			return t.Show(command.One(made, made.Id, "Name", made.Name, "Permission keys",
				strings.Join(made.PermissionKeys, " "),
				"Limits", limitsText(made.Limits)))
		})
	cmd.Flags().StringSliceVar(&input.PermissionKeys, "permission", nil,
		"permission key that it may use, instead of those it has; repeat or separate by commas")
	cmd.Flags().BoolVar(&plan, "plan", false, "show what would change and what of it widens its rights; change nothing")
	limits.register(cmd)
	lift.register(cmd)
	command.ReasonFlag(cmd, &input.Reason)
	return cmd
}

// viewChange shows what an update would make of an account.
func viewChange(id string, change gql.ServiceAccountChange) command.View {
	return command.One(change, id, "Permission keys", strings.Join(change.PermissionKeys, " "), "Limits",
		limitsText(change.Limits),
		"Widens", strings.Join(change.Widens, ", "), "Narrows", strings.Join(change.Narrows, ", "))
}

func deleteAccount(t *command.Tool) *cobra.Command {
	return command.Reasoned(t, "delete SERVICE-ACCOUNT", "Delete a service account, by id; its keys end at once",
		func(deleted gql.ServiceAccount) command.View {
			return command.One(deleted, deleted.Id, "Name", deleted.Name, "Deleted", render.Time(deleted.DeletedAt))
		},
		func(ctx context.Context, args []string, reason string) (gql.ServiceAccount, error) {
			answer, err := gql.DeleteServiceAccount(ctx, t, args[0], reason)
			return answer.DeleteServiceAccount, err
		})
}

// viewKey shows a key with its secret and what more is to be known of it.
func viewKey(answer any, key *gql.ServiceAccountKey, secret string, more ...string) command.View {
	until := cmp.Or(render.Time(key.ExpiresAt), "revoked")
	pairs := append([]string{"Key", key.Id, "Secret", secret, "Works until", until}, more...)
	return command.Secret(answer, secret, pairs...)
}

// createKey returns the command that makes a key; its secret is in this answer alone.
func createKey(t *command.Tool) *cobra.Command {
	var expires string
	cmd := command.Verb(t, "create SERVICE-ACCOUNT",
		"Create a key for a service account, given by id; its secret is shown once",
		func(made gql.NewServiceAccountKey) command.View { return viewKey(made, &made.Key, made.Secret) },
		func(ctx context.Context, args []string) (none gql.NewServiceAccountKey, err error) {
			input := gql.CreateServiceAccountKeyInput{ServiceAccountId: args[0]}
			if input.ExpiresAt, err = command.Instant("expires", expires); err != nil {
				return none, err
			}
			answer, err := gql.CreateServiceAccountKey(ctx, t, input)
			return answer.CreateServiceAccountKey, err
		})
	cmd.Flags().StringVar(&expires, "expires", "",
		"when it stops working: a time or a duration; after the longest life that the installation allows if not given")
	return cmd
}

// rotateKey returns the command that makes a new key. The old one works on for the overlap, so that programs can change
// over.
func rotateKey(t *command.Tool) *cobra.Command {
	var input gql.RotateServiceAccountKeyInput
	var expires string
	var overlap time.Duration
	cmd := command.Verb(t, "rotate KEY",
		"Create a key that replaces another, which keeps working for the overlap; the secret is shown once",
		func(made gql.RotatedServiceAccountKey) command.View {
			return viewKey(made, &made.Key, made.Secret, "The old one works for", overlap.String())
		},
		func(ctx context.Context, args []string) (none gql.RotatedServiceAccountKey, err error) {
			if input.ExpiresAt, err = command.Instant("expires", expires); err != nil {
				return none, err
			}
			input.KeyId, input.OverlapSeconds = args[0], int(overlap.Seconds())
			answer, err := gql.RotateServiceAccountKey(ctx, t, input)
			return answer.RotateServiceAccountKey, err
		})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key keeps working, at most 168h")
	cmd.Flags().StringVar(&expires, "expires", "",
		"when the new one stops working: a time or a duration; for as long as the old one had if not given")
	command.ReasonFlag(cmd, &input.Reason)
	return cmd
}

func revokeKey(t *command.Tool) *cobra.Command {
	return command.Reasoned(t, "revoke KEY", "Revoke a key at once",
		func(made gql.ServiceAccountKey) command.View {
			return command.One(made, made.Id, "Service account", made.ServiceAccountId, "Revoked",
				render.Time(made.RevokedAt))
		},
		func(ctx context.Context, args []string, reason string) (gql.ServiceAccountKey, error) {
			answer, err := gql.RevokeServiceAccountKey(ctx, t, args[0], reason)
			return answer.RevokeServiceAccountKey, err
		})
}
