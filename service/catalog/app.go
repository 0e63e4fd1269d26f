package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// CreateAppInput is what a new app is made from.
type CreateAppInput struct {
	Slug, DisplayName, Summary, PermissionFamily, IdempotencyKey string
	PublisherProjectID                                           *ids.ID `json:",omitempty"` // nil for the platform alone
}

func (in CreateAppInput) check() error {
	var input check.Input
	input.Slug("input.slug", in.Slug)
	input.Text("input.displayName", in.DisplayName, 1, 100)
	input.Text("input.summary", in.Summary, 0, 200)
	if !slices.Contains(authz.Families(), in.PermissionFamily) {
		input.Bad("input.permissionFamily", "%s", strings.Join(authz.Families(), " or "))
	}
	return input.Err()
}

// CreateApp adds an app to the catalog. Key: app.manage on the platform. CONFLICT when the short
// name is taken, NOT_FOUND at input.publisherProjectId.
func (s *Service) CreateApp(ctx context.Context, in CreateAppInput) (out *db.App, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = createApp(ctx, t, in)
		return err
	})
	return out, err
}

func createApp(ctx context.Context, t *tx.Tx, in CreateAppInput) (*db.App, error) {
	const action = "createApp"
	if err := audit.Require(t, action, authz.AppManage, authz.Object{}, ""); err != nil {
		return nil, err
	}
	made := made{ID: ids.New(ids.App)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, Value: in.IdempotencyKey, Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return t.App.Get(ctx, made.ID)
	}
	publisher, err := publisherOf(ctx, t, in.PublisherProjectID)
	if err != nil {
		return nil, err
	}
	row, err := t.App.Create().SetID(made.ID).SetSlug(in.Slug).SetDisplayName(in.DisplayName).SetSummary(in.Summary).
		SetPermissionFamily(in.PermissionFamily).SetNillablePublisherTenantID(publisher).SetNillablePublisherProjectID(in.PublisherProjectID).
		SetCreatedAt(t.Now).Save(ctx)
	if tx.Violates(err, "app_slug_key") {
		return nil, fault.New(fault.Conflict, "an app %q exists", in.Slug).At("input.slug").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("create app: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.AppManage, ObjectID: row.ID,
		After: map[string]any{"slug": in.Slug, "displayName": in.DisplayName, "permissionFamily": in.PermissionFamily,
			"publisherTenant": publisher, "publisherProject": in.PublisherProjectID}})
}

// publisherOf is the tenant of the project that publishes an app; nil for no project. NOT_FOUND when there is no such
// project, or not any more.
func publisherOf(ctx context.Context, t *tx.Tx, projectID *ids.ID) (*ids.ID, error) {
	if projectID == nil {
		return nil, nil
	}
	found, err := t.Project.Query().Where(project.ID(*projectID), project.DeletedAtIsNil()).Only(ctx)
	if db.IsNotFound(err) {
		return nil, fault.NoSuch().At("input.publisherProjectId")
	}
	if err != nil {
		return nil, fmt.Errorf("load project %s: %w", *projectID, err)
	}
	return &found.TenantID, nil
}

// App reads an app by its short name. Key: <family>.catalog.read in any scope.
func (s *Service) App(ctx context.Context, slug string) (*db.App, error) {
	return s.oneApp(ctx, "slug = $1", slug)
}

// AppByID reads an app by its id. Key: <family>.catalog.read in any scope.
func (s *Service) AppByID(ctx context.Context, id ids.ID) (*db.App, error) {
	return s.oneApp(ctx, "id = $1", id)
}

// maxSearch bounds what is searched for, in bytes.
const maxSearch = 100

// likeEscapes makes a text stand for itself in a LIKE pattern.
var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Apps lists the catalog by short name; search, if not empty, must be part of the short name or
// the name, in any case. Key: <family>.catalog.read in any scope; apps of other families are left out.
func (s *Service) Apps(ctx context.Context, search string, args page.Args) (*page.Page[*db.App], error) {
	const list = "apps"
	if len(search) > maxSearch {
		return nil, fault.New(fault.InvalidArgument, "search for 1 to %d characters", maxSearch).At("search")
	}
	var after string
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	actor, err := s.DB.Read(ctx)
	if err != nil {
		return nil, err
	}
	families, err := visible(actor)
	if err != nil {
		return nil, err
	}
	var found []*db.App
	_, err = s.DB.Read(ctx, tx.Rows(&found, rows.App, `SELECT `+rows.AppColumns+` FROM app
		WHERE slug > $1 AND permission_family = ANY ($2) AND (slug ILIKE $3 OR display_name ILIKE $3) ORDER BY slug LIMIT $4`,
		after, families, "%"+likeEscapes.Replace(search)+"%", args.First+1))
	if err != nil {
		return nil, err
	}
	for _, app := range found {
		conceal(actor, app)
	}
	return page.Cut(args, found, func(row *db.App) string { return page.Cursor(list, row.Slug) }), nil
}
