package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
)

func (t *tool) tokenCommand() *cobra.Command {
	var life time.Duration
	var permissions []string
	cmd := t.command("token", "Exchange a service account's key for a short-lived token", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		if life < 5*time.Minute || life > time.Hour {
			return usagef("--life %s: must be 5m to 1h", life)
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		made, err := c.Exchange(ctx, life, permissions...)
		if err != nil {
			return err
		}
		return t.showSecret(made, made.AccessToken, "Token", made.AccessToken, "Works until", render.Time(&made.ExpiresAt), "Permission keys", made.Scope)
	})
	cmd.Long = `Exchange the service-account key that appctl runs with for a token of 5 minutes to an hour, for a step that should not
hold the key itself. The token ends with its key: revoke the key, and it is over.`
	cmd.Flags().DurationVar(&life, "life", 15*time.Minute, "how long it works")
	cmd.Flags().StringSliceVar(&permissions, "permission", nil, "permission key that it may use, of those the account has; all if not given")
	return cmd
}
