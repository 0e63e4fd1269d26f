// Package webhook holds the verbs on outbound webhooks: subscriptions of a project to its events by HTTP. A verb only
// records the request; the workers read the project's feed for each webhook and send.
package webhook

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// maxWebhooks bounds the live webhooks of a project.
const maxWebhooks = 20

// Service holds the verbs.
type Service struct {
	DB *tx.DB
	// Vault keeps the signing secrets.
	Vault *custody.Vault
	// Feeds reads cursors of projects' feeds.
	Feeds *event.Feeds
	// Allow refuses an address that the operator does not let webhooks go to, with a fault; the path is the verb's.
	Allow func(*url.URL) error
}

// Created is a webhook with its secret, which no other call returns.
type Created struct {
	Webhook *db.Webhook
	Secret  *string
}

// ListTopic is woken when the first webhook of a project may be new, or its last deleted.
const ListTopic = "webhooks"

// Topic is woken when a project's webhooks change so that there may be something to send at once.
func Topic(project ids.ID) string { return "h:" + string(project) }

// Associated binds a sealed signing secret to its webhook.
func Associated(id ids.ID) string { return "webhook|" + string(id) }

func object(row *db.Webhook) authz.Object {
	return authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID}
}

// locked loads a live webhook for change and authorises the caller; what is missing, hidden or deleted is NOT_FOUND.
func locked(ctx context.Context, t *tx.Tx, action string, id ids.ID) (*db.Webhook, error) {
	row, err := one(ctx, t, rows.Webhook, `SELECT `+rows.WebhookColumns+` FROM webhook WHERE id = $1 FOR UPDATE`, id)
	if err != nil {
		return nil, fmt.Errorf("lock webhook %s: %w", id, err)
	}
	if row == nil {
		return nil, audit.Missing(t, action, authz.WebhookManage, id)
	}
	if err := audit.Require(t, action, authz.WebhookManage, object(row), id); err != nil {
		return nil, err
	}
	if row.DeletedAt != nil {
		return nil, audit.Missing(t, action, authz.WebhookManage, id)
	}
	return row, nil
}

// one reads at most one row; nil when the query finds nothing.
func one[T any](ctx context.Context, t *tx.Tx, scan func(pgx.CollectableRow) (*T, error), sql string, args ...any) (*T,
	error) {
	found, err := tx.Collect(ctx, t, scan, sql, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// families returns the families whose events the caller may read in the project. FORBIDDEN for none.
func families(actor *authz.Actor, where authz.Object) ([]string, error) {
	if err := authz.RequireAny(actor, where, authz.FamilyKeys("instance.read")...); err != nil {
		return nil, err
	}
	var readable []string
	for _, family := range authz.EventFamilies() {
		key, err := authz.EventKey(family)
		if err == nil && actor.AllowsOn(key, where) {
			readable = append(readable, family)
		}
	}
	return readable, nil
}

// narrowed returns the families of a webhook that the caller may read too: a caller that sends its events elsewhere
// must not receive more than it may see. FORBIDDEN when nothing is left.
func narrowed(t *tx.Tx, row *db.Webhook) ([]string, error) {
	readable, err := families(t.Actor, object(row))
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(row.Families), func(family string) bool {
		return !slices.Contains(readable, family)
	})
	if len(left) == 0 {
		return nil, fault.New(fault.Forbidden, "the webhook sends events of families that you may not read")
	}
	return left, nil
}

// shown is what the audit keeps of a webhook. An address may carry a token in its path or query: only where it leads is
// kept.
func shown(row *db.Webhook) map[string]any {
	return map[string]any{"projectId": row.ProjectID, "host": host(row.URL), "eventTypes": row.EventTypes,
		"families":    row.Families,
		"description": row.Description, "status": row.Status, "cursor": row.Cursor}
}

func host(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// wake wakes the workers, since there may be something to send.
func wake(t *tx.Tx, row *db.Webhook) { t.Wake(ListTopic, Topic(row.ProjectID)) }

// served reports whether events are sent to the webhook.
func served(row *db.Webhook) bool {
	return row.DeletedAt == nil && row.Status == lifecycle.WebhookActive
}
