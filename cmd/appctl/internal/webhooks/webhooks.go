// Package webhooks is the commands about webhooks: where a project's events are sent by HTTP, what was delivered, and
// whether a delivery is genuine.
package webhooks

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Command returns the commands about webhooks.
func Command(t *command.Tool) *cobra.Command {
	return command.Group("webhooks", "Where the project's events are sent by HTTP", list(t), create(t), update(t),
		remove(t),
		rotate(t), deliveries(t), redeliver(t), replay(t), verify(t))
}

func list(t *command.Tool) *cobra.Command {
	return command.Pages(t, "list", "List the project's webhooks, newest first", table, t.InProject,
		func(ctx context.Context, project string, first int, after string) (*gql.WebhookPage, error) {
			answer, err := gql.ListWebhooks(ctx, t, project, first, after)
			return &answer.Webhooks, err
		})
}

var table = command.Table[gql.Webhook]{
	Heading: []string{"ID", "STATUS", "URL", "EVENTS", "DELIVERED", "LAST ERROR"},
	Row: func(hook *gql.Webhook) []string {
		return []string{
			hook.Id, string(hook.Status), hook.Url, strings.Join(hook.EventTypes, ","),
			render.Time(hook.LastDeliveredAt), hook.LastError,
		}
	},
}

// create returns the command that adds a webhook. The signing secret is in this answer alone.
func create(t *command.Tool) *cobra.Command {
	var input gql.CreateWebhookInput
	var description string
	cmd := command.Verb(t, "create URL",
		"Send the project's events to an address from now on; the signing secret is shown once", viewSecret,
		func(ctx context.Context, args []string) (_ *gql.WebhookSecret, err error) {
			if input.ProjectId, err = t.ProjectID(ctx); err != nil {
				return nil, err
			}
			input.Url, input.Description = args[0], command.Given(description)
			answer, err := gql.CreateWebhook(ctx, t, input)
			return &answer.CreateWebhook, err
		})
	cmd.Example = "  appctl webhooks create https://example.com/hook --event 'apps.instance.*' --event " +
		"apps.operation.failed"
	cmd.Flags().StringSliceVar(&input.EventTypes, "event", nil, "event type, or a prefix that ends in .*; repeatable")
	cmd.Flags().StringVar(&description, "description", "", "description that people see")
	command.Need(cmd, "event")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

// viewSecret shows a webhook's new secret, which only the first of repeated requests gets.
func viewSecret(made *gql.WebhookSecret) command.View {
	if made.Secret == nil {
		return view(&made.Webhook)
	}
	return command.Secret(made, *made.Secret, "Webhook", made.Webhook.Id, "URL", made.Webhook.Url, "Secret",
		*made.Secret, "Previous secret signs until", render.Time(made.Webhook.PreviousUntil))
}

// update returns the command that changes what is given and leaves the rest of a webhook as it is.
func update(t *command.Tool) *cobra.Command {
	var input gql.UpdateWebhookInput
	var url, description string
	var pause, resume bool
	cmd := command.Verb(t, "update WEBHOOK", "Change, pause or resume a webhook", view,
		func(ctx context.Context, args []string) (*gql.Webhook, error) {
			input.WebhookId, input.Url, input.Description = args[0], command.Given(url), command.Given(description)
			if pause || resume {
				input.Paused = &pause
			}
			answer, err := gql.UpdateWebhook(ctx, t, input)
			return &answer.UpdateWebhook, err
		})
	flags := cmd.Flags()
	flags.StringVar(&url, "url", "", "send to this address")
	flags.StringVar(&description, "description", "", "description that people see")
	flags.StringSliceVar(&input.EventTypes, "event", nil, "send these event types or prefixes instead; repeatable")
	flags.BoolVar(&pause, "pause", false, "pause it: events wait at its cursor")
	flags.BoolVar(&resume, "resume", false, "resume it at its cursor")
	cmd.MarkFlagsMutuallyExclusive("pause", "resume")
	cmd.MarkFlagsOneRequired("url", "description", "event", "pause", "resume")
	return cmd
}

func remove(t *command.Tool) *cobra.Command {
	return command.Reasoned(t, "delete WEBHOOK", "Delete a webhook; pending deliveries are dropped", view,
		func(ctx context.Context, args []string, reason string) (*gql.Webhook, error) {
			answer, err := gql.DeleteWebhook(ctx, t, args[0], reason)
			return &answer.DeleteWebhook, err
		})
}

func rotate(t *command.Tool) *cobra.Command {
	var overlap time.Duration
	cmd := command.Verb(t, "rotate WEBHOOK", "Create a new signing secret, shown once", viewSecret,
		func(ctx context.Context, args []string) (*gql.WebhookSecret, error) {
			answer, err := gql.RotateWebhookSecret(ctx, t, args[0], int(overlap/time.Second))
			return &answer.RotateWebhookSecret, err
		})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the previous secret also signs")
	return cmd
}

func replay(t *command.Tool) *cobra.Command {
	var after string
	cmd := command.Reasoned(t, "replay WEBHOOK", "Send the events after a cursor again", view,
		func(ctx context.Context, args []string, reason string) (*gql.Webhook, error) {
			answer, err := gql.ReplayWebhook(ctx, t, args[0], after, reason)
			return &answer.ReplayWebhook, err
		})
	cmd.Flags().StringVar(&after, "after", "",
		"cursor of the project's feed, as deliveries and the feed itself carry it")
	command.Need(cmd, "after")
	return cmd
}

func view(hook *gql.Webhook) command.View {
	return command.One(hook, hook.Id, "Status", string(hook.Status), "URL", hook.Url, "Description", hook.Description,
		"Events", strings.Join(hook.EventTypes, ", "), "Cursor", hook.Cursor,
		"Last delivered", render.Time(hook.LastDeliveredAt), "Failing since", render.Time(hook.FailingSince),
		"Last error", hook.LastError, "Secret rotated", render.Time(hook.SecretRotatedAt),
		"Created", render.Time(&hook.CreatedAt), "Deleted", render.Time(hook.DeletedAt))
}
