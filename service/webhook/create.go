package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	sdk "github.com/gpuaas/app-platform/sdk/webhook"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/maker"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// secretSize is how many random bytes a signing secret has.
const secretSize = 32

// CreateInput describes a new webhook.
type CreateInput struct {
	ProjectID                        ids.ID
	URL, Description, IdempotencyKey string
	EventTypes                       []string
}

// Create adds a webhook that sends events from now on, of the families that the caller may read. It returns the signing
// secret, which no other call returns. Key: webhook.manage on the project. INVALID_ARGUMENT and DIAL_REFUSED name the
// field; LIMIT_EXCEEDED beyond 20 webhooks; UNAVAILABLE when the keeper of secrets, which is called between two
// transactions, does not answer. A repeat is answered without the secret.
func (s *Service) Create(ctx context.Context, in CreateInput) (*Created, error) {
	in.EventTypes = slices.Compact(slices.Sorted(slices.Values(in.EventTypes)))
	var input check.Input
	refused := s.checkURL(&input, "input.url", in.URL)
	checkTypes(&input, "input.eventTypes", in.EventTypes)
	input.Text("input.description", in.Description, 0, maxDescription)
	if err := input.Err(); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	var out *Created
	err := s.Vault.Prepared(ctx, func(fresh *custody.Fresh) error {
		return s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
			out, err = s.create(ctx, t, in, fresh)
			return err
		})
	})
	return out, err
}

// draft is a webhook before it is created; an idempotency key remembers its id.
type draft struct {
	ID             ids.ID `json:"id"`
	cursor, secret string
	sealed         []byte
}

// mint makes a signing secret, and seals it for the webhook; custody.ErrUnprepared without a key.
func mint(fresh *custody.Fresh, id ids.ID) (secret string, sealed []byte, err error) {
	if fresh == nil {
		return "", nil, custody.ErrUnprepared
	}
	key := make([]byte, secretSize)
	_, _ = rand.Read(key)
	secret = sdk.Secret(key)
	sealed, err = fresh.Seal([]byte(secret), Associated(id))
	if err != nil {
		return "", nil, fmt.Errorf("seal a signing secret: %w", err)
	}
	return secret, sealed, nil
}

func (s *Service) create(ctx context.Context, t *tx.Tx, in CreateInput, fresh *custody.Fresh) (*Created, error) {
	const action = "createWebhook"
	project, err := one(ctx, t, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1
		AND deleted_at IS NULL`,
		in.ProjectID)
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", in.ProjectID, err)
	}
	if project == nil {
		return nil, audit.Missing(t, action, authz.WebhookManage, in.ProjectID)
	}
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	if err := audit.Require(t, action, authz.WebhookManage, where, project.ID); err != nil {
		return nil, err
	}
	readable, err := families(t.Actor, where)
	if err != nil {
		return nil, audit.Refused(t, action, authz.WebhookManage, where, project.ID, err)
	}
	made := draft{ID: ids.New(ids.Webhook)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, TenantID: where.TenantID, ProjectID: where.ProjectID,
		Value: in.IdempotencyKey, Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		row, err := one(ctx, t, rows.Webhook, `SELECT `+rows.WebhookColumns+` FROM webhook WHERE id = $1`, made.ID)
		return &Created{Webhook: row}, err
	}
	if err := room(ctx, t, project.ID); err != nil {
		return nil, err
	}
	if err := s.complete(ctx, &made, fresh); err != nil {
		return nil, err
	}
	from, err := maker.Of(ctx, t, sends(where, readable))
	if err != nil {
		return nil, err
	}
	row, err := insert(ctx, t, where, in, made, readable, from)
	if err != nil {
		return nil, err
	}
	wake(t, row)
	return &Created{Webhook: row, Secret: &made.secret},
		audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.WebhookManage, Object: where,
			ObjectID: row.ID, After: shown(row)})
}

// complete mints the secret, and reads where the feed ends now.
func (s *Service) complete(ctx context.Context, made *draft, fresh *custody.Fresh) (err error) {
	if made.secret, made.sealed, err = mint(fresh, made.ID); err != nil {
		return err
	}
	from, err := s.Feeds.Now(ctx)
	if err != nil {
		return err
	}
	made.cursor = s.Feeds.Cursor(from)
	return nil
}

// room locks the project against the concurrent creation of webhooks, and refuses one beyond maxWebhooks.
func room(ctx context.Context, t *tx.Tx, project ids.ID) error {
	if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('webhooks of ' || $1, 0))`,
		project); err != nil {
		return fmt.Errorf("lock the webhooks of %s: %w", project, err)
	}
	var live int
	if err := t.QueryRow(ctx, `SELECT count(id) FROM webhook WHERE project_id = $1 AND deleted_at IS NULL`,
		project).Scan(&live); err != nil {
		return fmt.Errorf("count webhooks: %w", err)
	}
	if live >= maxWebhooks {
		return fault.New(fault.LimitExceeded, "a project may have at most %d webhooks: delete one first",
			maxWebhooks).At("input.projectId")
	}
	return nil
}

// sends returns the check that a caller may have events of the families sent: manage webhooks, and read the families.
func sends(where authz.Object, families []string) func(*authz.Actor) bool {
	return func(actor *authz.Actor) bool {
		return actor.AllowsOn(authz.WebhookManage, where) && !slices.ContainsFunc(families, func(family string) bool {
			key, err := authz.EventKey(family)
			return err != nil || !actor.AllowsOn(key, where)
		})
	}
}

func insert(ctx context.Context, t *tx.Tx, where authz.Object, in CreateInput, made draft, readable []string,
	from maker.Source) (*db.Webhook, error) {
	row, err := one(ctx, t, rows.Webhook, `INSERT INTO webhook (id, tenant_id, project_id, url, description,
		event_types, families, cursor, secret, created_by, maker_id, made_under, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $12, $13, $11, $11) RETURNING `+rows.WebhookColumns,
		made.ID, where.TenantID, where.ProjectID, in.URL, in.Description, in.EventTypes, readable, made.cursor,
		made.sealed,
		t.Actor.ID, t.Now, from.Maker, from.Under)
	if err != nil {
		return nil, fmt.Errorf("create a webhook: %w", err)
	}
	return row, nil
}
