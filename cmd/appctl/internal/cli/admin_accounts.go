package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// limitFlags are the limits of a service account, as flags.
type limitFlags struct {
	objects  []string
	risk     string
	hourly   int
	unlimit  bool
	updating bool
}

func (l *limitFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&l.objects, "object", nil, "instance or allocation that it may touch, by id, and no other; repeat or separate by commas")
	cmd.Flags().StringVar(&l.risk, "max-risk", "", "highest risk of an app action that it may ask for: read, write or destructive")
	cmd.Flags().IntVar(&l.hourly, "operations-per-hour", 0, "how many operations it may begin in an hour")
	if l.updating {
		cmd.Flags().BoolVar(&l.unlimit, "no-limits", false, "lift every limit")
	}
}

// input is the limits that were given; nil when none were.
func (l *limitFlags) input() (*gql.ServiceAccountLimitsInput, error) {
	if len(l.objects) == 0 && l.risk == "" && l.hourly == 0 {
		if l.unlimit {
			return &gql.ServiceAccountLimitsInput{}, nil
		}
		return nil, nil
	}
	if l.unlimit {
		return nil, usagef("--no-limits goes without other limits")
	}
	out := &gql.ServiceAccountLimitsInput{ObjectIds: l.objects}
	if l.risk != "" {
		risk := gql.ActionRisk(strings.ToUpper(l.risk))
		if !slices.Contains(gql.AllActionRisk, risk) {
			return nil, usagef("--max-risk %q: must be read, write or destructive", l.risk)
		}
		out.MaxRisk = &risk
	}
	if l.hourly != 0 {
		out.OperationsPerHour = &l.hourly
	}
	return out, nil
}

// limitsText says what an account is bound to beyond its keys.
func limitsText(limits *gql.ServiceAccountLimits) string {
	if limits == nil {
		return ""
	}
	var parts []string
	if len(limits.ObjectIds) > 0 {
		parts = append(parts, "only "+strings.Join(limits.ObjectIds, ", "))
	}
	if limits.MaxRisk != nil {
		parts = append(parts, "risk up to "+strings.ToLower(string(*limits.MaxRisk)))
	}
	if limits.OperationsPerHour != nil {
		parts = append(parts, fmt.Sprintf("%d operations an hour", *limits.OperationsPerHour))
	}
	return strings.Join(parts, "; ")
}

func (t *tool) serviceAccountUpdate() *cobra.Command {
	var input gql.UpdateServiceAccountInput
	limits := limitFlags{updating: true}
	update := t.command("update SERVICE-ACCOUNT", "Change what a service account, by id, may do from now on", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) (err error) {
			if input.Limits, err = limits.input(); err != nil {
				return err
			}
			if input.Limits == nil && len(input.PermissionKeys) == 0 {
				return usagef("what changes? give --permission, limits or --no-limits")
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			input.ServiceAccountId = args[0]
			answer, err := gql.UpdateServiceAccount(ctx, c, input)
			if err != nil {
				return err
			}
			made := answer.UpdateServiceAccount
			return t.showOne(made, made.Id, "Name", made.Name, "Permission keys", strings.Join(made.PermissionKeys, " "), "Limits", limitsText(made.Limits))
		})
	update.Flags().StringSliceVar(&input.PermissionKeys, "permission", nil, "permission key it may use, in the place of those it has; repeat or separate by commas")
	limits.bind(update)
	reasonFlag(update, &input.Reason)
	return update
}

func (t *tool) serviceAccountDelete() *cobra.Command {
	var reason string
	remove := t.command("delete SERVICE-ACCOUNT", "Delete a service account, by id; its keys end at once", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			answer, err := gql.DeleteServiceAccount(ctx, c, args[0], reason)
			if err != nil {
				return err
			}
			gone := answer.DeleteServiceAccount
			return t.showOne(gone, gone.Id, "Name", gone.Name, "Deleted", render.Time(gone.DeletedAt))
		})
	reasonFlag(remove, &reason)
	return remove
}

func (t *tool) keyRotate() *cobra.Command {
	var input gql.RotateServiceAccountKeyInput
	var expires string
	var overlap time.Duration
	rotate := t.command("rotate KEY", "Make a key in the place of another, which works on for the overlap; the secret is shown once", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) (err error) {
			if input.ExpiresAt, err = instant("expires", expires); err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			input.KeyId, input.OverlapSeconds = args[0], int(overlap.Seconds())
			answer, err := gql.RotateServiceAccountKey(ctx, c, input)
			if err != nil {
				return err
			}
			made := answer.RotateServiceAccountKey
			return t.showSecret(made, made.Secret, "Key", made.Key.Id, "Secret", made.Secret,
				"Works until", firstOf(render.Time(made.Key.ExpiresAt), "revoked"), "The old one works for", overlap.String())
		})
	rotate.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key works on, at most 168h")
	rotate.Flags().StringVar(&expires, "expires", "", "when the new one stops working: a time or a duration; for as long as the old one had if not given")
	reasonFlag(rotate, &input.Reason)
	return rotate
}
