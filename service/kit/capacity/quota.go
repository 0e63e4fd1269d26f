package capacity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Hold locks the project when it has a quota or is counted for other reasons, so that two callers at once are counted
// one after the other, and returns it as it is then. It comes before every other lock of a verb but those of its
// policy.
func Hold(ctx context.Context, t *tx.Tx, seen *db.Project, counted bool) (*db.Project, error) {
	if seen.MaxMembers == nil && seen.MaxGpus == nil && !counted {
		return seen, nil
	}
	held, err := t.Project.Query().Where(dbproject.ID(seen.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock project %s: %w", seen.ID, err)
	}
	return held, nil
}

// Members refuses more members than the project may have, counting those that are there and not
// removed: LIMIT_EXCEEDED at the path.
func Members(ctx context.Context, t *tx.Tx, project *db.Project, more int, path string) error {
	if project.MaxMembers == nil || more <= 0 {
		return nil
	}
	present, err := count(ctx, t, project.ID, `SELECT count(*) FROM member m JOIN instance i ON i.id = m.instance_id
		WHERE i.project_id = $1 AND i.released_at IS NULL AND NOT m.removed`)
	if err != nil {
		return err
	}
	return WithinMembers(project, present, more, path)
}

// WithinMembers refuses more members than the project may have beside those that are present: LIMIT_EXCEEDED at the
// path.
func WithinMembers(project *db.Project, present, more int, path string) error {
	if project.MaxMembers == nil || present+more <= *project.MaxMembers {
		return nil
	}
	return fault.New(fault.LimitExceeded, "the project may have %d members, has %d, and this would be %d more",
		*project.MaxMembers, present, more).At(path)
}

// GPUs refuses more GPUs than the project may hold, counting those of every allocation that is not
// released, the newly placed ones among them: LIMIT_EXCEEDED at the path.
func GPUs(ctx context.Context, t *tx.Tx, project *db.Project, path string) error {
	if project.MaxGpus == nil {
		return nil
	}
	held, err := count(ctx, t, project.ID,
		`SELECT coalesce(sum(gpu_count), 0) FROM allocation WHERE project_id = $1 AND released_at IS NULL`)
	if err != nil || held <= *project.MaxGpus {
		return err
	}
	return fault.New(fault.LimitExceeded, "the project may have %d GPUs, and this would make %d", *project.MaxGpus,
		held).At(path)
}

func count(ctx context.Context, t *tx.Tx, project ids.ID, sql string) (n int, err error) {
	if err := t.QueryRow(ctx, sql, project).Scan(&n); err != nil {
		return 0, fmt.Errorf("count against the quota of %s: %w", project, err)
	}
	return n, nil
}
