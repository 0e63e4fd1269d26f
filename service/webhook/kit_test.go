package webhook_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/webhook"
)

// bundle is a project with an admin, a viewer and a stranger.
type bundle struct {
	*platformtest.Kit
	t                       *testing.T
	tenant                  *db.Tenant
	project                 *db.Project
	admin, viewer, stranger context.Context
	service                 *webhook.Service
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t}
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	b.admin = b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	b.viewer = b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	other := b.Tenant()
	b.stranger = b.As(b.User(other, platformtest.In(authz.ProjectAdmin, b.Project(other))))
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	feeds, err := event.NewFeeds(t.Context(), b.DB.Worker())
	require.NoError(t, err)
	b.service = &webhook.Service{DB: b.DB, Vault: vault, Feeds: feeds, Allow: func(address *url.URL) error {
		if err := dial.Check(dial.Policy{}, true, address); err != nil {
			return fault.New(fault.DialRefused, "the operator does not allow it")
		}
		return nil
	}}
	return b
}

func (b *bundle) input() webhook.CreateInput {
	return webhook.CreateInput{ProjectID: b.project.ID, URL: "https://hooks.test/x?token=t0k3n",
		EventTypes:  []string{"apps.instance.*", "apps.operation.failed"},
		Description: "for the pager", IdempotencyKey: string(ids.New(ids.Webhook))}
}

func (b *bundle) hook() *webhook.Created {
	b.t.Helper()
	made, err := b.service.Create(b.admin, b.input())
	require.NoError(b.t, err)
	return made
}

// refused asserts a fault with its path.
func refused(t *testing.T, err error, code fault.Code, path string, what any) {
	t.Helper()
	t.Log(what)
	platformtest.Refused(t, err, code, path)
}

// delivery is a delivery of the webhook in a state, of no event that is stored.
func (b *bundle) delivery(of *db.Webhook, state string) ids.ID {
	b.t.Helper()
	id := ids.New(ids.WebhookDelivery)
	b.SQL(`INSERT INTO webhook_delivery (id, tenant_id, project_id, webhook_id, event_id, event_type, state, attempts,
		created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 'apps.instance.healthy', $6, 8, now(),
		now())`, id, of.TenantID, of.ProjectID, of.ID, ids.New(ids.Event), state)
	return id
}
