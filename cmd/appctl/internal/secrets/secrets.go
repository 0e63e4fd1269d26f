// Package secrets is the commands about runtime secrets of instances. None of them shows a secret's value.
package secrets

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Command returns the commands about runtime secrets.
func Command(t *command.Tool) *cobra.Command {
	return command.Group("secrets", "Runtime secrets of an instance; never their values", list(t), issue(t), rotate(t),
		revoke(t))
}

func list(t *command.Tool) *cobra.Command {
	var ended bool
	cmd := command.Pages(t, "list INSTANCE", "List an instance's secrets, newest first", table, lookup.OfInstance(t),
		func(ctx context.Context, instance string, first int, after string) (*gql.RuntimeSecretPage, error) {
			answer, err := gql.ListRuntimeSecrets(ctx, t, instance, ended, first, after)
			return &answer.RuntimeSecrets, err
		})
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	cmd.Flags().BoolVar(&ended, "ended", false, "also spent, expired and revoked ones")
	return cmd
}

// issue returns the command that issues a secret. With --member the member's node takes delivery, otherwise the
// adapter; it is delivered once unless --again is given.
func issue(t *command.Tool) *cobra.Command {
	var input gql.IssueRuntimeSecretInput
	var life time.Duration
	var again bool
	cmd := command.Verb(t, "issue INSTANCE PURPOSE",
		"Issue a secret for the node of a member, or for the adapter", view,
		func(ctx context.Context, args []string) (_ *gql.RuntimeSecret, err error) {
			if input.InstanceId, err = lookup.Instance(ctx, t, args[0]); err != nil {
				return nil, err
			}
			input.Purpose, input.TtlSeconds = args[1], int(life/time.Second)
			input.Audience, input.Delivery = gql.SecretAudienceAdapter, gql.SecretDeliveryOnce
			if input.MemberId != "" {
				input.Audience = gql.SecretAudienceNode
			}
			if again {
				input.Delivery = gql.SecretDeliveryUntilExpiry
			}
			answer, err := gql.IssueRuntimeSecret(ctx, t, input)
			return &answer.IssueRuntimeSecret, err
		})
	cmd.Example = `  appctl secrets issue training joining --member mem_1 --life 10m
  appctl secrets issue training artifact_pull --member mem_1 --artifact sha256:…`
	flags := cmd.Flags()
	flags.StringVar(&input.MemberId, "member", "", "member whose node may fetch it; if not given, the adapter may")
	flags.StringVar(&input.ArtifactDigest, "artifact", "", "digest of the artifact to be pulled, for artifact_pull")
	flags.DurationVar(&life, "life", 5*time.Minute,
		"how long it can be delivered, 30s to 24h; at most 15m for artifact_pull")
	flags.BoolVar(&again, "again", false, "allow delivery until it expires, and not only once")
	command.ReasonFlag(cmd, &input.Reason)
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

func rotate(t *command.Tool) *cobra.Command {
	var overlap time.Duration
	cmd := command.Reasoned(t, "rotate SECRET", "Create a new value of a secret", view,
		func(ctx context.Context, args []string, reason string) (*gql.RuntimeSecret, error) {
			answer, err := gql.RotateRuntimeSecret(ctx, t, args[0], int(overlap/time.Second), reason)
			return &answer.RotateRuntimeSecret, err
		})
	cmd.Flags().DurationVar(&overlap, "overlap", 5*time.Minute, "how long the previous value still works, up to 24h")
	return cmd
}

func revoke(t *command.Tool) *cobra.Command {
	return command.Reasoned(t, "revoke SECRET", "Revoke a secret and wipe its value", view,
		func(ctx context.Context, args []string, reason string) (*gql.RuntimeSecret, error) {
			answer, err := gql.RevokeRuntimeSecret(ctx, t, args[0], reason)
			return &answer.RevokeRuntimeSecret, err
		})
}

var table = command.Table[gql.RuntimeSecret]{
	Heading: []string{"ID", "PURPOSE", "FOR", "DELIVERED", "VERSION", "DELIVERIES", "STATE", "ISSUED BY"},
	Row: func(secret *gql.RuntimeSecret) []string {
		return []string{
			secret.Id, secret.Purpose, holder(secret), delivery(secret), fmt.Sprint(secret.Version),
			fmt.Sprint(secret.Deliveries), state(secret), secret.IssuedBy.Name,
		}
	},
}

func view(secret *gql.RuntimeSecret) command.View {
	return command.Fields(secret, secret.Id, "Secret", secret.Id, "Instance", secret.InstanceId, "Purpose",
		secret.Purpose, "For", holder(secret), "Created for", string(secret.Spec), "Delivered", delivery(secret),
		"Version", fmt.Sprint(secret.Version), "Deliveries", fmt.Sprint(secret.Deliveries),
		"Last delivered", render.Time(secret.DeliveredAt), "State", state(secret), "Rotated",
		render.Time(secret.RotatedAt),
		"Previous value works until", render.Time(secret.PreviousUntil),
		"Issued by", secret.IssuedBy.Name, "Issued", render.Time(&secret.CreatedAt))
}

// holder returns the receiver that may take delivery.
func holder(secret *gql.RuntimeSecret) string {
	if secret.Audience == gql.SecretAudienceAdapter || secret.MemberId == nil {
		return "adapter"
	}
	return "node of " + *secret.MemberId
}

func delivery(secret *gql.RuntimeSecret) string {
	return strings.ReplaceAll(strings.ToLower(string(secret.Delivery)), "_", " ")
}

// state returns whether a secret can still be delivered, and until when.
func state(secret *gql.RuntimeSecret) string {
	switch {
	case secret.RevokedAt != nil:
		return "revoked " + render.Time(secret.RevokedAt)
	case secret.Delivery == gql.SecretDeliveryOnce && secret.Deliveries > 0:
		return "spent"
	}
	return "until " + render.Time(&secret.ExpiresAt)
}
