package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/webhook"
)

// deliveries returns the command that lists what was sent, and what could not be.
func deliveries(t *command.Tool) *cobra.Command {
	var states []string
	cmd := command.List(t, "deliveries WEBHOOK",
		"List a webhook's deliveries, newest first; --state dead is its dead-letter list", deliveryTable,
		func(ctx context.Context, args []string, limit int) ([]gql.WebhookDelivery, error) {
			wanted, err := command.Enums("state", states, gql.AllDeliveryState)
			if err != nil {
				return nil, err
			}
			return command.All[gql.WebhookDelivery](limit, func(first int,
				after string) (*gql.WebhookDeliveryPage, error) {
				answer, err := gql.ListWebhookDeliveries(ctx, t, args[0], wanted, first, after)
				return &answer.WebhookDeliveries, err
			})
		})
	cmd.Flags().StringSliceVar(&states, "state", nil, "only these: pending, delivered, dead")
	return cmd
}

var deliveryTable = command.Table[gql.WebhookDelivery]{
	Heading: []string{"ID", "STATE", "TYPE", "EVENT", "TRIES", "ANSWER", "NEXT TRY", "ERROR"},
	Row: func(one *gql.WebhookDelivery) []string {
		return []string{
			one.Id, string(one.State), one.EventType, one.EventId, fmt.Sprint(one.Attempts),
			render.Number(one.ResponseStatus, "%d"), render.Time(one.NextAttemptAt), one.Error,
		}
	},
}

func redeliver(t *command.Tool) *cobra.Command {
	return command.Verb(t, "redeliver DELIVERY", "Send one delivery again, with the same id",
		func(one gql.WebhookDelivery) command.View {
			return command.One(one, one.Id, "State", string(one.State), "Webhook", one.WebhookId, "Event", one.EventId,
				"Type", one.EventType, "Next try", render.Time(one.NextAttemptAt))
		},
		func(ctx context.Context, args []string) (gql.WebhookDelivery, error) {
			answer, err := gql.RedeliverWebhook(ctx, t, args[0])
			return answer.RedeliverWebhook, err
		})
}

// A received delivery is one that the receiver kept.
type received struct {
	id, timestamp, signature, secretFile string
	anyTime                              bool
}

// verify returns the command that checks a kept delivery's signature. It needs no platform.
func verify(t *command.Tool) *cobra.Command {
	var r received
	cmd := command.Verb(t, "verify BODY",
		"Check the signature of a delivery whose body is in a file (- for the standard input)",
		func(id string) command.View {
			return command.One(map[string]any{"id": id, "verified": true}, id, "Signature", "valid")
		},
		func(_ context.Context, args []string) (string, error) {
			body, err := bodyOf(args[0], t.Env.Stdin)
			if err != nil {
				return "", err
			}
			return r.id, r.verify(body)
		})
	cmd.Example = "  appctl webhooks verify body.json --id whd_… --timestamp 1700000000 --signature v1,… " +
		"--secret-file secret"
	flags := cmd.Flags()
	flags.StringVar(&r.id, "id", "", "the header "+webhook.HeaderID)
	flags.StringVar(&r.timestamp, "timestamp", "", "the header "+webhook.HeaderTimestamp)
	flags.StringVar(&r.signature, "signature", "", "the header "+webhook.HeaderSignature)
	flags.StringVar(&r.secretFile, "secret-file", "", "file with the signing secret, whsec_…")
	flags.BoolVar(&r.anyTime, "any-time", false, "accept a delivery older than five minutes, such as a stored one")
	command.Need(cmd, "id", "timestamp", "signature", "secret-file")
	return cmd
}

// bodyOf reads a body as it was received, at most as long as one can be.
func bodyOf(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != "-" {
		file, err := os.Open(name) // #nosec G304 -- the caller names it
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, webhook.MaxBody+1))
	if err == nil && len(body) > webhook.MaxBody {
		err = fmt.Errorf("a delivery has at most %d bytes", webhook.MaxBody)
	}
	return body, err
}

// verify checks a body against its signature. With --any-time it is checked as of the time that the delivery states.
func (r *received) verify(body []byte) error {
	secret, err := os.ReadFile(r.secretFile) // #nosec G304 -- the caller names it
	if err != nil {
		return err
	}
	header, now := http.Header{}, time.Now()
	header.Set(webhook.HeaderID, r.id)
	header.Set(webhook.HeaderTimestamp, r.timestamp)
	header.Set(webhook.HeaderSignature, r.signature)
	if r.anyTime {
		var seconds int64
		if _, err := fmt.Sscan(r.timestamp, &seconds); err == nil {
			now = time.Unix(seconds, 0)
		}
	}
	return webhook.Verify(string(bytes.TrimSpace(secret)), header, body, now)
}
