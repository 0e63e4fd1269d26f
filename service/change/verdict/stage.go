package verdict

import (
	"context"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// hold keeps a version from being promoted, halted or shared out again until the commit, and reads its stage and
// canary.
func hold(ctx context.Context, t *tx.Tx, stored *db.Manifest) error {
	if err := t.QueryRow(ctx, `SELECT platform.hold_manifest($1)`, stored.ID).Scan(&stored.Stage); err != nil {
		return fmt.Errorf("lock manifest %s: %w", stored.ID, err)
	}
	if stored.Stage != lifecycle.StageCanary {
		return nil
	}
	err := t.QueryRow(ctx, `SELECT canary_percent, canary_halted_at FROM manifest WHERE id = $1`, stored.ID).
		Scan(&stored.CanaryPercent, &stored.CanaryHaltedAt)
	if err != nil {
		return fmt.Errorf("read canary %s: %w", stored.ID, err)
	}
	return nil
}

// enter returns why a version's stage keeps a project out: an active one takes all, a canary the projects that it has
// chosen until it is halted. What is "new instance" or "upgrade", and path the input field. The fault is
// FAILED_PRECONDITION, with reason NOT_IN_CANARY for a canary.
func enter(stored *db.Manifest, projectID ids.ID, what, path string) error {
	switch {
	case stored.Stage.Launchable():
		return nil
	case stored.Stage != lifecycle.StageCanary:
		return fault.New(fault.FailedPrecondition, "version %s is %s and takes no %s", stored.Version,
			strings.ToLower(string(stored.Stage)), what).At(path)
	case stored.CanaryHaltedAt != nil:
		return outside(path, "the canary of version %s was halted and takes no %s", stored.Version, what)
	case !rollout.Chosen(projectID, stored.ID, stored.CanaryPercent):
		return outside(path, "version %s is in a canary that this project is not part of", stored.Version)
	}
	return nil
}

func outside(path, format string, args ...any) error {
	refused := fault.New(fault.FailedPrecondition, format, args...)
	return refused.With(fault.Reason{Code: fault.NotInCanary, Message: refused.Message, Path: path})
}
