package instance

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

const (
	list    = "instances" // names the cursors of instance lists
	members = "members"   // names the cursors of member lists
)

// Want lists the neighbours of an instance that a detail read loads in its one round trip.
type Want struct {
	Members       *page.Args
	Events        *page.Args
	LastOperation bool
	Steps         bool
	Nodes         bool
	Allocations   bool
	Manifest      bool
	// Brief are those of which a part is enough.
	Brief Brief
}

// Loaded are neighbours that were read with an instance; nil for those that were not.
type Loaded struct {
	Members       *page.Page[*db.Member]
	MembersArgs   page.Args
	Events        *page.Page[*event.Event]
	EventsArgs    page.Args
	LastOperation *operation.View // with its steps, where these are wanted
	Nodes         map[ids.ID]*db.ComputeNode
	Allocations   []*db.Allocation
	Manifest      *db.Manifest
	// Brief are those of which a part was read: they serve this answer alone.
	Brief Brief
}

// scan reads a row of rows.InstanceColumns.
func scan(row pgx.CollectableRow) (*View, error) { return viewOf(rows.Instance(row)) }

func viewOf(stored *db.Instance, err error) (*View, error) { return &View{Instance: stored}, err }

// readable reports whether the actor may read the instance, by its family's key.
func readable(actor *authz.Actor, row *db.Instance) error {
	key, err := authz.FamilyKey(row.PermissionFamily, "instance.read")
	if err != nil {
		return err
	}
	return authz.RequireOn(actor, key, object(row))
}

// Get reads an instance with the neighbours wanted, in one round trip. It requires
// <family>.instance.read, and leaves out neighbours that need another key which the caller lacks.
// NOT_FOUND when it is missing or hidden.
func (s *Service) Get(ctx context.Context, id ids.ID, want Want) (*View, error) {
	d := detail{id: id, want: want}
	actor, err := s.read(ctx, &d)
	if err != nil {
		return nil, err
	}
	d.want = permitted(actor, d.view.Instance, d.want)
	d.view.Loaded = d.loaded()
	return d.view, nil
}

// read sends the queries of a detail, and returns the caller who may read its instance.
func (s *Service) read(ctx context.Context, d *detail) (*authz.Actor, error) {
	queries, err := d.queries()
	if err != nil {
		return nil, err
	}
	actor, err := s.DB.Read(ctx, queries...)
	if err != nil {
		return nil, err
	}
	if d.view == nil {
		return nil, fault.NoSuch()
	}
	if err := readable(actor, d.view.Instance); err != nil {
		return nil, err
	}
	if d.lost {
		return nil, event.Expired()
	}
	return actor, nil
}

// Many reads instances by id; those missing or hidden are left out.
func (s *Service) Many(ctx context.Context, wanted []ids.ID) (map[ids.ID]*View, error) {
	var found []*View
	actor, err := s.DB.Read(ctx, tx.Rows(&found, scan,
		`SELECT `+rows.InstanceColumns+` FROM instance WHERE id = ANY ($1)`, wanted))
	if err != nil {
		return nil, err
	}
	byID := make(map[ids.ID]*View, len(found))
	for _, view := range visible(actor, found) {
		byID[view.ID] = view
	}
	return byID, nil
}

// Filter chooses instances of a project; empty fields choose all.
type Filter struct {
	Statuses []lifecycle.InstanceStatus
	AppSlug  string
	System   *bool  // only those of system apps, or only others; nil for both
	Search   string // part of the name, at most 100 characters
	// LastOperations loads the last operation of each as well, where the caller may read it.
	LastOperations bool
	// Brief reads the columns of BriefFields alone, BriefOperations of last operations those of operation.BriefFields.
	Brief, BriefOperations bool
}

// List reads the instances of a project, newest first; those of families that the caller may not
// read are left out. NOT_FOUND when the project is missing or hidden, FORBIDDEN when no family may
// be read in it, INVALID_ARGUMENT at filter.search.
func (s *Service) List(ctx context.Context, projectID ids.ID, filter Filter, args page.Args) (*page.Page[*View],
	error) {
	after, err := After(args)
	if err != nil {
		return nil, err
	}
	if len(filter.Search) > 100 {
		return nil, fault.New(fault.InvalidArgument, "filter.search may have at most 100 bytes").At("filter.search")
	}
	var project *db.Project
	var found []*View
	var last []*operation.View
	chosen, given := chosenSQL(projectID, filter, after, args.First+1)
	columns, scanned := rows.InstanceColumns, scan
	if filter.Brief {
		columns, scanned = brief.Columns, scanBrief
	}
	queries := []tx.Query{
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Rows(&found, scanned, `SELECT `+columns+chosen, given...),
	}
	if filter.LastOperations {
		columns, scanned := operation.Columns, operation.Scan
		if filter.BriefOperations {
			columns, scanned = operation.Brief.Columns, operation.ScanBrief
		}
		queries = append(queries, tx.Rows(&last, scanned,
			`SELECT `+columns+` FROM operation WHERE id IN (SELECT last_operation_id`+chosen+`)`, given...))
	}
	actor, err := s.DB.Read(ctx, queries...)
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	if err := authz.RequireAny(actor, where, authz.FamilyKeys("instance.read")...); err != nil {
		return nil, err
	}
	cut := page.Cut(args, found, func(v *View) string { return page.Cursor(list, v.ID) })
	kept := keepVisible(actor, cut)
	attach(actor, kept.Rows, last)
	return kept, nil
}

// After returns the instance that a page of a list comes after; empty for the first page. CURSOR_INVALID at `after`.
func After(args page.Args) (after ids.ID, err error) {
	err = args.Decode(list, &after)
	return after, err
}

// attach gives each instance its last operation, if the actor may read that.
func attach(actor *authz.Actor, views []*View, operations []*operation.View) {
	if len(operations) == 0 {
		return
	}
	byID := make(map[ids.ID]*operation.View, len(operations))
	for _, one := range operations {
		byID[one.ID] = one
	}
	for _, view := range views {
		if view.LastOperationID != nil && actor.AllowsOn(authz.OperationRead, object(view.Instance)) {
			view.Loaded = &Loaded{LastOperation: byID[*view.LastOperationID]}
		}
	}
}

// chosenSQL returns a list's query from FROM on. It names only the filters that are set, so that every
// list has a plan of its own.
func chosenSQL(projectID ids.ID, filter Filter, after ids.ID, limit int) (string, []any) {
	sql := strings.Builder{}
	sql.WriteString(` FROM instance WHERE project_id = $1`)
	args := []any{projectID, limit}
	add := func(condition string, value any) {
		args = append(args, value)
		sql.WriteString(" AND " + strings.ReplaceAll(condition, "?", "$"+string(rune('0'+len(args)))))
	}
	if after != "" {
		add("id < ?", after)
	}
	if len(filter.Statuses) > 0 {
		add("status = ANY (?)", lifecycleNames(filter.Statuses))
	}
	if filter.AppSlug != "" {
		add("app_slug = ?", filter.AppSlug)
	}
	if filter.System != nil {
		add("system = ?", *filter.System)
	}
	if filter.Search != "" {
		add("strpos(name, ?) > 0", filter.Search)
	}
	sql.WriteString(` ORDER BY id DESC LIMIT $2`)
	return sql.String(), args
}

func lifecycleNames(statuses []lifecycle.InstanceStatus) []string {
	names := make([]string, len(statuses))
	for i, status := range statuses {
		names[i] = string(status)
	}
	return names
}

func visible(actor *authz.Actor, found []*View) []*View {
	kept := make([]*View, 0, len(found))
	for _, view := range found {
		if readable(actor, view.Instance) == nil {
			kept = append(kept, view)
		}
	}
	return kept
}

// keepVisible drops rows after the cut, so that the cursor still marks the end of the page.
func keepVisible(actor *authz.Actor, cut *page.Page[*View]) *page.Page[*View] {
	rows, cursors := cut.Rows, cut.Cursors
	cut.Rows, cut.Cursors = nil, nil
	for i, view := range rows {
		if readable(actor, view.Instance) == nil {
			cut.Rows, cut.Cursors = append(cut.Rows, view), append(cut.Cursors, cursors[i])
		}
	}
	return cut
}
