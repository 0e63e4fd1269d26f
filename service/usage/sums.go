package usage

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Sum is a sum of records.
type Sum struct {
	// Hour is nil for the sum of all.
	Hour        *time.Time
	Basis       metering.Basis
	Meter, Unit string
	BorneBy     metering.Bearer
	BorneReason *string
	Quantity    string
	Records     int
}

func scanSum(row pgx.CollectableRow) (*Sum, error) {
	x := &Sum{}
	return x, row.Scan(&x.Hour, &x.Basis, &x.Meter, &x.Unit, &x.BorneBy, &x.BorneReason, &x.Quantity, &x.Records)
}

// Sums adds up a project's usage by meter and bearer, and by hour when hourly is true. It requires usage.read;
// NOT_FOUND for a project that the caller cannot see.
func (s *Service) Sums(ctx context.Context, filter Filter, hourly bool) ([]*Sum, error) {
	var found []*Sum
	err := s.read(ctx, filter.ProjectID, tx.Rows(&found, scanSum,
		`SELECT CASE WHEN $6 THEN date_trunc('hour', from_at, 'UTC') END, basis, meter, unit, borne_by, borne_reason,
			trim_scale(sum(quantity))::text, count(*) FROM usage_record`+where+`
		GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1 DESC, 2, 3, 4, 5, 6 LIMIT $7`, filter.args(hourly, maxSums)...))
	return found, err
}

// Source is where usage comes from.
type Source struct {
	Source     ids.ID
	Basis      metering.Basis
	RecordedTo *time.Time
	ProvedTo   *time.Time
	Failures   int
	LastError  string
}

func scanSource(row pgx.CollectableRow) (*Source, error) {
	x := &Source{}
	return x, row.Scan(&x.Source, &x.Basis, &x.RecordedTo, &x.ProvedTo, &x.Failures, &x.LastError)
}

// Sources reads where a project's usage comes from and how far it is recorded; of one source when it is given. It
// requires usage.read; NOT_FOUND for a project that the caller cannot see.
func (s *Service) Sources(ctx context.Context, projectID ids.ID, source *ids.ID) ([]*Source, error) {
	var found []*Source
	err := s.read(ctx, projectID, tx.Rows(&found, scanSource,
		`SELECT source, basis, recorded_to, platform.proved_to(source), failures, last_error FROM usage_source
			WHERE project_id = $1 AND ended_at IS NULL AND ($3::text IS NULL OR source = $3) ORDER BY source
			LIMIT $2`, projectID,
		maxSources, source))
	return found, err
}
