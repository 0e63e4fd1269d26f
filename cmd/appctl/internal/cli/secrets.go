package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) secretsCommand() *cobra.Command {
	return group("secrets", "Runtime secrets of an instance; never their values", t.secretsList(), t.secretsIssue(), t.secretsRotate(), t.secretsRevoke())
}

func (t *tool) secretsList() *cobra.Command {
	var ended bool
	var limit int
	list := t.command("list INSTANCE", "List an instance's secrets, newest first", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		instance, err := t.instanceID(ctx, c, args[0])
		if err != nil {
			return err
		}
		found, err := collect[gql.RuntimeSecret](client.All[gql.RuntimeSecret](limit, func(first int, after string) (*gql.RuntimeSecretPage, error) {
			answer, err := gql.ListRuntimeSecrets(ctx, c, instance, ended, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.RuntimeSecrets, nil
		}))
		if err != nil {
			return err
		}
		return t.showSecrets(found)
	})
	list.ValidArgsFunction = t.completeInstances
	list.Flags().BoolVar(&ended, "ended", false, "spent, expired and revoked ones as well")
	limitFlag(list, &limit)
	return list
}

func (t *tool) secretsIssue() *cobra.Command {
	var input gql.IssueRuntimeSecretInput
	var life time.Duration
	var again bool
	issue := t.command("issue INSTANCE PURPOSE", "Issue a secret for the node of a member, or for the adapter", cobra.ExactArgs(2), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		if input.InstanceId, err = t.instanceID(ctx, c, args[0]); err != nil {
			return err
		}
		input.Purpose, input.TtlSeconds, input.IdempotencyKey = args[1], int(life/time.Second), key(input.IdempotencyKey)
		input.Audience, input.Delivery = gql.SecretAudienceAdapter, gql.SecretDeliveryOnce
		if input.MemberId != "" {
			input.Audience = gql.SecretAudienceNode
		}
		if again {
			input.Delivery = gql.SecretDeliveryUntilExpiry
		}
		answer, err := gql.IssueRuntimeSecret(ctx, c, input)
		if err != nil {
			return err
		}
		return t.showRuntimeSecret(&answer.IssueRuntimeSecret)
	})
	issue.Example = `  appctl secrets issue training joining --member mem_1 --life 10m
  appctl secrets issue training artifact_pull --member mem_1 --artifact sha256:…`
	issue.Flags().StringVar(&input.MemberId, "member", "", "member whose node takes delivery; without one it is the adapter")
	issue.Flags().StringVar(&input.ArtifactDigest, "artifact", "", "digest of the artifact to be pulled, for artifact_pull")
	issue.Flags().DurationVar(&life, "life", 5*time.Minute, "how long it can be delivered, 30s to 24h; at most 15m for artifact_pull")
	issue.Flags().BoolVar(&again, "again", false, "deliver it until it expires, and not only once")
	issue.Flags().StringVar(&input.Reason, "reason", "", "why, kept in the audit")
	keyFlag(issue, &input.IdempotencyKey)
	return issue
}

func (t *tool) secretsRotate() *cobra.Command {
	var overlap time.Duration
	var reason string
	rotate := t.command("rotate SECRET", "Make a new value of a secret", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RotateRuntimeSecret(ctx, c, args[0], int(overlap/time.Second), reason)
		if err != nil {
			return err
		}
		return t.showRuntimeSecret(&answer.RotateRuntimeSecret)
	})
	rotate.Flags().DurationVar(&overlap, "overlap", 5*time.Minute, "how long the value before still counts, up to 24h")
	rotate.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	return rotate
}

func (t *tool) secretsRevoke() *cobra.Command {
	var reason string
	revoke := t.command("revoke SECRET", "Revoke a secret and wipe its value", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RevokeRuntimeSecret(ctx, c, args[0], reason)
		if err != nil {
			return err
		}
		return t.showRuntimeSecret(&answer.RevokeRuntimeSecret)
	})
	revoke.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	return revoke
}

func (t *tool) showSecrets(found []gql.RuntimeSecret) error {
	var rows [][]string
	var ids []string
	for i := range found {
		secret := &found[i]
		rows = append(rows, []string{secret.Id, secret.Purpose, secretHolder(secret), secretDelivery(secret), fmt.Sprint(secret.Version),
			fmt.Sprint(secret.Deliveries), secretState(secret), secret.IssuedBy.Name})
		ids = append(ids, secret.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "PURPOSE", "FOR", "DELIVERED", "VERSION", "DELIVERIES", "STATE", "ISSUED BY"}, rows)
	}})
}

func (t *tool) showRuntimeSecret(secret *gql.RuntimeSecret) error {
	return t.show(view{JSON: secret, IDs: []string{secret.Id}, Page: func(p *render.Page) {
		p.Fields("Secret", secret.Id, "Instance", secret.InstanceId, "Purpose", secret.Purpose, "For", secretHolder(secret), "Made for", string(secret.Spec),
			"Delivered", secretDelivery(secret), "Version", fmt.Sprint(secret.Version), "Deliveries", fmt.Sprint(secret.Deliveries),
			"Last delivered", render.Time(secret.DeliveredAt), "State", secretState(secret), "Rotated", render.Time(secret.RotatedAt),
			"Value before counts until", render.Time(secret.PreviousUntil), "Issued by", secret.IssuedBy.Name, "Issued", render.Time(&secret.CreatedAt))
	}})
}

// secretHolder is who may take delivery.
func secretHolder(secret *gql.RuntimeSecret) string {
	if secret.Audience == gql.SecretAudienceAdapter || secret.MemberId == nil {
		return "adapter"
	}
	return "node of " + *secret.MemberId
}

func secretDelivery(secret *gql.RuntimeSecret) string {
	return strings.ReplaceAll(strings.ToLower(string(secret.Delivery)), "_", " ")
}

func secretState(secret *gql.RuntimeSecret) string {
	switch {
	case secret.RevokedAt != nil:
		return "revoked " + render.Time(secret.RevokedAt)
	case secret.Delivery == gql.SecretDeliveryOnce && secret.Deliveries > 0:
		return "spent"
	}
	return "until " + render.Time(&secret.ExpiresAt)
}
