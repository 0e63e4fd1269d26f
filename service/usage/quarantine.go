package usage

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// quarantined names the cursors of the quarantine's lists.
const quarantined = "usage quarantine"

// Quarantined is a record that was rejected.
type Quarantined struct {
	ID, ProjectID, Source                ids.ID
	Meter, UsageID, Code, Field, Message string
	Record                               json.RawMessage
	CreatedAt                            time.Time
}

func scanQuarantined(row pgx.CollectableRow) (*Quarantined, error) {
	x := &Quarantined{}
	return x, row.Scan(&x.ID, &x.ProjectID, &x.Source, &x.Meter, &x.UsageID, &x.Code, &x.Field, &x.Message,
		(*[]byte)(&x.Record),
		&x.CreatedAt)
}

// Quarantine reads rejected records, newest first: a project's, or without one the platform's; only those of the
// instance when one is given. It requires usage.read there; NOT_FOUND for a project that the caller cannot see.
func (s *Service) Quarantine(ctx context.Context, projectID, instanceID *ids.ID,
	args page.Args) (*page.Page[*Quarantined], error) {
	var after ids.ID
	if err := args.Decode(quarantined, &after); err != nil {
		return nil, err
	}
	var found []*Quarantined
	query := tx.Rows(&found, scanQuarantined, `SELECT id, project_id, source, meter, usage_id, code, field, message,
		record, created_at
		FROM usage_quarantine WHERE ($1::text IS NULL OR project_id = $1) AND ($2 = '' OR id < $2) AND ($4::text IS NULL
		OR source = $4)
		ORDER BY id DESC LIMIT $3`, projectID, after, args.First+1, instanceID)
	if err := s.readAnywhere(ctx, projectID, query); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *Quarantined) string { return page.Cursor(quarantined, row.ID) }), nil
}

// readAnywhere is read, of the whole platform without a project.
func (s *Service) readAnywhere(ctx context.Context, projectID *ids.ID, query tx.Query) error {
	if projectID != nil {
		return s.read(ctx, *projectID, query)
	}
	actor, err := s.DB.Read(ctx, query)
	if err != nil {
		return err
	}
	return authz.RequireOn(actor, authz.UsageRead, authz.Object{})
}
