// Package usage holds the reads of metered usage and the verb by which an adapter reports it. What nodes' agents prove
// and what is read from adapters is recorded by the workers; service/ledger/usage is the ledger of both.
package usage

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	ledger "github.com/gpuaas/app-platform/service/ledger/usage"
)

// Bounds of the reads.
const (
	maxSums    = 1_000
	maxSources = 500
)

// list names the cursors of record lists.
const list = "usage"

// Service holds the reads and the verb.
type Service struct {
	// DB is the database.
	DB *tx.DB

	dimensions ledger.Dimensions
}

// Filter chooses records of a project.
type Filter struct {
	ProjectID  ids.ID
	InstanceID *ids.ID
	Meter      *string
	From, To   *time.Time
}

// where is the filter as a condition; its parameters are $1 to $5.
const where = ` WHERE project_id = $1 AND ($2::text IS NULL OR app_instance_id = $2) AND ($3::text IS NULL
	OR meter = $3)
	AND ($4::timestamptz IS NULL OR from_at >= $4) AND ($5::timestamptz IS NULL OR from_at < $5)`

// args are the condition's parameters.
func (f *Filter) args(more ...any) []any {
	return append([]any{f.ProjectID, f.InstanceID, f.Meter, f.From, f.To}, more...)
}

// Record is a usage record as it is shown.
type Record struct {
	Source, ProjectID                               ids.ID
	Meter, UsageID                                  string
	Basis                                           metering.Basis
	Unit, Quantity                                  string
	FromAt, ToAt                                    time.Time
	InstanceID, AllocationID, MemberID, OperationID *ids.ID
	ComponentKey, SKU, Region                       *string
	Session                                         string
	Retracts                                        *string
	BorneBy                                         metering.Bearer
	BorneReason, BorneOwner                         *string
	RecordedAt                                      time.Time
}

// columns are what scan reads.
const columns = `source, project_id, meter, usage_id, basis, unit, trim_scale(quantity)::text, from_at, to_at, app_instance_id, allocation_id,
	member_id, operation_id, component_key, sku, region, session, retracts, borne_by, borne_reason, borne_owner, recorded_at`

func scan(row pgx.CollectableRow) (*Record, error) {
	x := &Record{}
	return x, row.Scan(&x.Source, &x.ProjectID, &x.Meter, &x.UsageID, &x.Basis, &x.Unit, &x.Quantity,
		&x.FromAt, &x.ToAt, &x.InstanceID,
		&x.AllocationID, &x.MemberID, &x.OperationID, &x.ComponentKey, &x.SKU, &x.Region, &x.Session, &x.Retracts,
		&x.BorneBy,
		&x.BorneReason,
		&x.BorneOwner, &x.RecordedAt)
}

// place is a record's place in lists.
type place struct {
	at                  string
	source, meter, used string
}

// Records reads usage records of a project, newest first. It requires usage.read; NOT_FOUND for a project that the
// caller cannot see.
func (s *Service) Records(ctx context.Context, filter Filter, args page.Args) (*page.Page[*Record], error) {
	var after place
	if err := args.Decode(list, &after.at, &after.source, &after.meter, &after.used); err != nil {
		return nil, err
	}
	at, err := after.time()
	if err != nil {
		return nil, err
	}
	var found []*Record
	err = s.read(ctx, filter.ProjectID, tx.Rows(&found, scan, `SELECT `+columns+` FROM usage_record`+where+`
		AND ($6::timestamptz IS NULL OR (from_at, source, meter, usage_id) < ($6, $7, $8, $9))
		ORDER BY from_at DESC, source DESC, meter DESC, usage_id DESC LIMIT $10`,
		filter.args(at, after.source, after.meter, after.used, args.First+1)...))
	if err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *Record) string {
		return page.Cursor(list, row.FromAt.UTC().Format(time.RFC3339Nano), row.Source, row.Meter, row.UsageID)
	}), nil
}

// time is the place's moment; nil for the beginning.
func (p *place) time() (*time.Time, error) {
	if p.at == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339Nano, p.at)
	if err != nil {
		return nil, fault.New(fault.CursorInvalid, "the cursor is not from this list").At("after")
	}
	return &at, nil
}

// read runs a query of a project's rows for a caller with usage.read on it.
func (s *Service) read(ctx context.Context, projectID ids.ID, query tx.Query) error {
	var project *db.Project
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID), query)
	if err != nil {
		return err
	}
	if project == nil {
		return fault.NoSuch()
	}
	return authz.RequireOn(actor, authz.UsageRead, authz.Object{TenantID: project.TenantID, ProjectID: project.ID})
}
