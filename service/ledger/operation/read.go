package operation

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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
)

// list names the cursors of operation lists.
const list = "operations"

// Scan reads a row of Columns.
func Scan(row pgx.CollectableRow) (*View, error) {
	view := &View{}
	var err error
	view.Operation, err = rows.Operation(rows.Also{CollectableRow: row, Into: []any{&view.waits}})
	return view, err
}

// BriefFields are the fields of the API's Operation that a Brief has.
var BriefFields = rows.Fields{
	"id": {"id"}, "kind": {"kind"}, "state": {"state"}, "outcome": {"outcome"}, "phase": {"phase"},
	"percent": {"percent"},
	"message": {"message"}, "createdAt": {"created_at"}, "startedAt": {"started_at"}, "endedAt": {"ended_at"},
	"steps": nil,
}

// Brief is the part of an operation that lists and the pages of instances show.
var Brief = rows.PartOf(rows.OperationTable, BriefFields)

// ScanBrief reads a row of Brief.
func ScanBrief(row pgx.CollectableRow) (*View, error) {
	stored, err := Brief.Scan(row)
	return &View{Operation: stored}, err
}

// StepFields are the fields of the API's OperationStep that a BriefStep has.
var StepFields = rows.Fields{
	"id": {"id"}, "name": {"name"}, "ordinal": {"ordinal"}, "state": {"state"}, "attempt": {"attempt"},
	"message":   {"message"},
	"startedAt": {"started_at"}, "endedAt": {"ended_at"},
}

// BriefStep is a step without its evidence.
var BriefStep = rows.PartOf(rows.OperationStepTable, StepFields)

// object is what an operation is to authorisation.
func (v *View) object() authz.Object {
	object := authz.Object{TenantID: v.TenantID, ProjectID: v.ProjectID, AppSlug: v.AppSlug}
	if v.InstanceID != nil {
		object.InstanceID = *v.InstanceID
	}
	return object
}

// Get reads an operation. It requires operation.read. NOT_FOUND when it is missing or hidden.
func Get(ctx context.Context, database *tx.DB, id ids.ID) (*View, error) {
	found, err := Many(ctx, database, []ids.ID{id})
	if err != nil {
		return nil, err
	}
	if found[id] == nil {
		return nil, fault.NoSuch()
	}
	return found[id], nil
}

// Many reads operations by id; those missing or hidden are left out. It requires operation.read.
func Many(ctx context.Context, database *tx.DB, wanted []ids.ID) (map[ids.ID]*View, error) {
	var found []*View
	actor, err := database.Read(ctx, tx.Rows(&found, Scan,
		`SELECT `+Columns+` FROM operation WHERE id = ANY ($1)`, wanted))
	if err != nil {
		return nil, err
	}
	byID := make(map[ids.ID]*View, len(found))
	for _, view := range found {
		if actor.AllowsOn(authz.OperationRead, view.object()) {
			byID[view.ID] = view
		} else if len(wanted) == 1 {
			return nil, authz.RequireOn(actor, authz.OperationRead, view.object())
		}
	}
	return byID, nil
}

// Latest reads an operation with its steps for many watchers at once, each of which was authorised.
func Latest(ctx context.Context, database *tx.DB, id ids.ID) (*View, error) {
	batch := &pgx.Batch{}
	view := &View{Loaded: []*db.OperationStep{}}
	batch.Queue(`SELECT `+Columns+` FROM operation WHERE id = $1`, id).Query(func(found pgx.Rows) error {
		read, err := pgx.CollectExactlyOneRow(found, Scan)
		if err == nil {
			view.Operation, view.waits = read.Operation, read.waits
		}
		return err
	})
	batch.Queue(`SELECT `+rows.OperationStepColumns+` FROM operation_step WHERE operation_id = $1
		ORDER BY ordinal`, id).
		Query(func(found pgx.Rows) (err error) {
			view.Loaded, err = pgx.CollectRows(found, rows.OperationStep)
			return err
		})
	if err := database.Feed().SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read operation %s: %w", id, err)
	}
	return view, nil
}

// Differs reports whether a watcher would see a difference.
func (v *View) Differs(from *View) bool {
	a, b := v.Operation, from.Operation
	return a.State != b.State || a.Phase != b.Phase || a.Percent != b.Percent || a.Message != b.Message ||
		a.DispatchAttempt != b.DispatchAttempt || a.ClaimEpoch != b.ClaimEpoch ||
		(a.EndedAt == nil) != (b.EndedAt == nil) ||
		(a.ForcedAt == nil) != (b.ForcedAt == nil) || a.CancelMessage != b.CancelMessage ||
		!bytes.Equal(v.waits, from.waits)
}

// Steps reads the steps of operations, in order. The caller has authorised the operations.
func Steps(ctx context.Context, database *tx.DB, wanted []ids.ID) (map[ids.ID][]*db.OperationStep, error) {
	var found []*db.OperationStep
	_, err := database.Read(ctx, tx.Rows(&found, rows.OperationStep,
		`SELECT `+rows.OperationStepColumns+` FROM operation_step WHERE operation_id = ANY ($1)
			ORDER BY operation_id, ordinal`, wanted))
	if err != nil {
		return nil, err
	}
	byOperation := make(map[ids.ID][]*db.OperationStep, len(wanted))
	for _, step := range found {
		byOperation[step.OperationID] = append(byOperation[step.OperationID], step)
	}
	return byOperation, nil
}

// Filter chooses operations of a list; empty fields choose all.
type Filter struct {
	ProjectID  ids.ID
	InstanceID ids.ID
	States     []lifecycle.OperationState
}

// query is a list's query. It names only the filters that are set, so that each has a plan of its own:
// one that holds for all of them is a scan of everything.
func (f Filter) query(after ids.ID, limit int) (string, []any) {
	conditions, given := []string{"true"}, []any{limit}
	add := func(condition string, value any) {
		given = append(given, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(given)))
	}
	if f.ProjectID != "" {
		add("project_id = $%d", f.ProjectID)
	}
	if f.InstanceID != "" {
		add("instance_id = $%d", f.InstanceID)
	}
	if after != "" {
		add("id < $%d", after)
	}
	if len(f.States) > 0 {
		add("state = ANY ($%d)", states(f.States))
		if !slices.ContainsFunc(f.States, lifecycle.OperationState.Terminal) {
			conditions = append(conditions, "ended_at IS NULL") // by the index of those, and not through all history
		}
	}
	return `SELECT ` + Columns + ` FROM operation WHERE ` + strings.Join(conditions,
		" AND ") + ` ORDER BY id DESC LIMIT $1`, given
}

// List reads operations of a project or an instance, newest first. It requires operation.read; NOT_FOUND when a project
// is named that the caller cannot see.
func List(ctx context.Context, database *tx.DB, filter Filter, args page.Args) (*page.Page[*View], error) {
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var found []*View
	var project *db.Project
	sql, given := filter.query(after, args.First+1)
	actor, err := database.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, filter.ProjectID),
		tx.Rows(&found, Scan, sql, given...))
	if err != nil {
		return nil, err
	}
	if filter.ProjectID != "" {
		if project == nil {
			return nil, fault.NoSuch()
		}
		if err := authz.RequireOn(actor, authz.OperationRead,
			authz.Object{TenantID: project.TenantID, ProjectID: project.ID}); err != nil {
			return nil, err
		}
	}
	for _, view := range found { // of one project, if not of one instance: all may be read or none
		if err := authz.RequireOn(actor, authz.OperationRead, view.object()); err != nil {
			return nil, err
		}
	}
	return page.Cut(args, found, func(v *View) string { return page.Cursor(list, v.ID) }), nil
}

func states(wanted []lifecycle.OperationState) []string {
	names := make([]string, len(wanted))
	for i, state := range wanted {
		names[i] = string(state)
	}
	return names
}
