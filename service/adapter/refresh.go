package adapter

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

const (
	refreshMost   = 1_000 // adapters of one refresh
	refreshAtOnce = 4
)

// Refresh reads the description of every registered adapter again, since one may have been registered before it ran, or
// rebuilt since. It runs as the workers; the caller decides how often. An adapter that does not answer keeps its last
// description, and lastError gets the reason.
func (s *Service) Refresh(ctx context.Context) error {
	found, err := s.DB.Worker().Query(ctx, `SELECT `+rows.AdapterColumns+` FROM adapter
		WHERE NOT EXISTS (SELECT FROM project p WHERE p.id = adapter.project_id AND p.deleted_at IS NOT NULL)
		ORDER BY project_id IS NOT NULL, name LIMIT $1`, refreshMost)
	if err != nil {
		return fmt.Errorf("list adapters: %w", err)
	}
	adapters, err := pgx.CollectRows(found, rows.Adapter)
	if err != nil {
		return fmt.Errorf("list adapters: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(refreshAtOnce)
	for _, row := range adapters {
		group.Go(func() error { return s.refresh(ctx, row) })
	}
	return group.Wait()
}

// refresh calls one adapter; nothing is written when its address was changed meanwhile.
func (s *Service) refresh(ctx context.Context, row *db.Adapter) error {
	said, unreached := s.describe(ctx, adapterclient.Target{Name: row.Name, URL: row.URL, Authority: row.Authority,
		Sandbox: row.ProjectID != nil})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, err := s.DB.Worker().Exec(ctx, `UPDATE adapter SET description = coalesce($3, description), last_error = $4,
		last_seen_at = CASE WHEN $4 = '' THEN $5 ELSE last_seen_at END WHERE id = $1 AND url = $2 AND authority = $6`,
		row.ID, row.URL, said, text(unreached), s.DB.Now(), row.Authority)
	if err != nil {
		return fmt.Errorf("store the description of adapter %s: %w", row.Name, err)
	}
	return nil
}
