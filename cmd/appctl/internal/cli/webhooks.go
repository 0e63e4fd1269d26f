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

func (t *tool) webhooksCommand() *cobra.Command {
	return group("webhooks", "Where the project's events are sent by HTTP", t.webhooksList(), t.webhooksCreate(), t.webhooksUpdate(),
		t.webhooksDelete(), t.webhooksRotate(), t.webhooksDeliveries(), t.webhooksRedeliver(), t.webhooksReplay(), t.webhooksVerify())
}

func (t *tool) webhooksList() *cobra.Command {
	var limit int
	list := t.command("list", "List the project's webhooks, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		found, err := collect[gql.Webhook](client.All[gql.Webhook](limit, func(first int, after string) (*gql.WebhookPage, error) {
			answer, err := gql.ListWebhooks(ctx, c, project, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Webhooks, nil
		}))
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for i := range found {
			hook := &found[i]
			rows = append(rows, []string{hook.Id, string(hook.Status), hook.Url, strings.Join(hook.EventTypes, ","), render.Time(hook.LastDeliveredAt), hook.LastError})
			ids = append(ids, hook.Id)
		}
		return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
			p.Table([]string{"ID", "STATUS", "URL", "EVENTS", "DELIVERED", "LAST ERROR"}, rows)
		}})
	})
	limitFlag(list, &limit)
	return list
}

func (t *tool) webhooksCreate() *cobra.Command {
	var input gql.CreateWebhookInput
	var description string
	create := t.command("create URL", "Send the project's events to an address from now on; the signing secret is shown once", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, project, err := t.scope(ctx)
			if err != nil {
				return err
			}
			input.ProjectId, input.Url, input.IdempotencyKey = project, args[0], key(input.IdempotencyKey)
			if description != "" {
				input.Description = &description
			}
			answer, err := gql.CreateWebhook(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showWebhookSecret(&answer.CreateWebhook)
		})
	create.Example = "  appctl webhooks create https://example.com/hook --event 'apps.instance.*' --event apps.operation.failed"
	create.Flags().StringSliceVar(&input.EventTypes, "event", nil, "event type, or a prefix that ends in .*; repeatable")
	create.Flags().StringVar(&description, "description", "", "for people")
	_ = create.MarkFlagRequired("event")
	keyFlag(create, &input.IdempotencyKey)
	return create
}

func (t *tool) showWebhookSecret(made *gql.WebhookSecret) error {
	if made.Secret == nil { // a repeat
		return t.showWebhook(&made.Webhook)
	}
	return t.showSecret(made, *made.Secret, "Webhook", made.Webhook.Id, "URL", made.Webhook.Url, "Secret", *made.Secret,
		"The one before signs until", render.Time(made.Webhook.PreviousUntil))
}

func (t *tool) webhooksUpdate() *cobra.Command {
	var input gql.UpdateWebhookInput
	var url, description string
	var pause, resume bool
	update := t.command("update WEBHOOK", "Change, pause or resume a webhook", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		input.WebhookId = args[0]
		if url != "" {
			input.Url = &url
		}
		if description != "" {
			input.Description = &description
		}
		if pause || resume {
			input.Paused = &pause
		}
		answer, err := gql.UpdateWebhook(ctx, c, input)
		if err != nil {
			return err
		}
		return t.showWebhook(&answer.UpdateWebhook)
	})
	set := update.Flags()
	set.StringVar(&url, "url", "", "send to this address")
	set.StringVar(&description, "description", "", "for people")
	set.StringSliceVar(&input.EventTypes, "event", nil, "send these event types or prefixes instead; repeatable")
	set.BoolVar(&pause, "pause", false, "pause it: events wait at its cursor")
	set.BoolVar(&resume, "resume", false, "resume it at its cursor")
	update.MarkFlagsMutuallyExclusive("pause", "resume")
	update.MarkFlagsOneRequired("url", "description", "event", "pause", "resume")
	return update
}

func (t *tool) webhooksDelete() *cobra.Command {
	var reason string
	remove := t.command("delete WEBHOOK", "Delete a webhook; what waits to be sent is dropped", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.DeleteWebhook(ctx, c, args[0], reason)
		if err != nil {
			return err
		}
		return t.showWebhook(&answer.DeleteWebhook)
	})
	remove.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	return remove
}

func (t *tool) webhooksRotate() *cobra.Command {
	var overlap time.Duration
	rotate := t.command("rotate WEBHOOK", "Make a new signing secret, shown once", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RotateWebhookSecret(ctx, c, args[0], int(overlap/time.Second))
		if err != nil {
			return err
		}
		return t.showWebhookSecret(&answer.RotateWebhookSecret)
	})
	rotate.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "for how long the secret before signs too")
	return rotate
}

func (t *tool) webhooksReplay() *cobra.Command {
	var after, reason string
	replay := t.command("replay WEBHOOK", "Send again what happened after a cursor", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.ReplayWebhook(ctx, c, args[0], after, reason)
		if err != nil {
			return err
		}
		return t.showWebhook(&answer.ReplayWebhook)
	})
	replay.Flags().StringVar(&after, "after", "", "cursor of the project's feed, as deliveries and the feed itself carry it")
	replay.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	_ = replay.MarkFlagRequired("after")
	return replay
}

func (t *tool) showWebhook(hook *gql.Webhook) error {
	return t.showOne(hook, hook.Id, "Status", string(hook.Status), "URL", hook.Url, "Description", hook.Description,
		"Events", strings.Join(hook.EventTypes, ", "), "Cursor", hook.Cursor, "Last delivered", render.Time(hook.LastDeliveredAt),
		"Failing since", render.Time(hook.FailingSince), "Last error", hook.LastError, "Secret rotated", render.Time(hook.SecretRotatedAt),
		"Made", render.Time(&hook.CreatedAt), "Deleted", render.Time(hook.DeletedAt))
}

func (t *tool) webhooksDeliveries() *cobra.Command {
	var states []string
	var limit int
	list := t.command("deliveries WEBHOOK", "List a webhook's deliveries, newest first; --state dead is its dead-letter list", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			wanted, err := enums("state", states, gql.AllDeliveryState)
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			found, err := collect[gql.WebhookDelivery](client.All[gql.WebhookDelivery](limit, func(first int, after string) (*gql.WebhookDeliveryPage, error) {
				answer, err := gql.ListWebhookDeliveries(ctx, c, args[0], wanted, first, after)
				if err != nil {
					return nil, err
				}
				return &answer.WebhookDeliveries, nil
			}))
			if err != nil {
				return err
			}
			return t.showDeliveries(found)
		})
	list.Flags().StringSliceVar(&states, "state", nil, "only these: pending, delivered, dead")
	limitFlag(list, &limit)
	return list
}

func (t *tool) showDeliveries(found []gql.WebhookDelivery) error {
	var rows [][]string
	var ids []string
	for i := range found {
		one := &found[i]
		rows = append(rows, []string{one.Id, string(one.State), one.EventType, one.EventId, fmt.Sprint(one.Attempts), statusText(one.ResponseStatus),
			render.Time(one.NextAttemptAt), one.Error})
		ids = append(ids, one.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "STATE", "TYPE", "EVENT", "TRIES", "ANSWER", "NEXT TRY", "ERROR"}, rows)
	}})
}

func statusText(status *int) string {
	if status == nil {
		return ""
	}
	return fmt.Sprint(*status)
}

func (t *tool) webhooksRedeliver() *cobra.Command {
	return t.command("redeliver DELIVERY", "Send one delivery again, with the same id", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RedeliverWebhook(ctx, c, args[0])
		if err != nil {
			return err
		}
		one := answer.RedeliverWebhook
		return t.showOne(one, one.Id, "State", string(one.State), "Webhook", one.WebhookId, "Event", one.EventId, "Type", one.EventType,
			"Next try", render.Time(one.NextAttemptAt))
	})
}
