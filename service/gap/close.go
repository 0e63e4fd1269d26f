package gap

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// maxRelease bounds the name of a release.
const maxRelease = 300

// CloseInput is the release that closes a gap.
type CloseInput struct {
	GapID      ids.ID
	Release    string
	ManifestID *ids.ID
	Reason     string
}

// Close links an accepted gap to the release that has what was missing, and ends it. Key: gap.decide on the platform.
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN; FAILED_PRECONDITION at input.gapId unless the gap is
// ACCEPTED, and at input.manifestId for a draft.
func (s *Service) Close(ctx context.Context, in CloseInput) (out *Gap, err error) {
	var input check.Input
	input.Text("input.release", in.Release, 1, maxRelease)
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "closeGap"
		before, err := lock(ctx, t, action, in.GapID)
		if err != nil {
			return err
		}
		if err := before.State.CanMove(lifecycle.GapClosed); err != nil {
			return fault.From(err).At("input.gapId")
		}
		if err := released(ctx, t, before, in.ManifestID); err != nil {
			return err
		}
		by := t.Actor.Ref()
		out, err = one(ctx, t, `UPDATE gap SET state = $2, closer_kind = $3, closer_id = $4, closer_name = $5,
			closed_at = $6,
			close_reason = $7, release = $8, release_manifest_id = $9 WHERE id = $1 RETURNING `+columns, before.ID,
			string(lifecycle.GapClosed), by.Kind, by.ID, by.Name, t.Now, in.Reason, in.Release, in.ManifestID)
		if err != nil {
			return fmt.Errorf("close gap %s: %w", before.ID, err)
		}
		return moved(ctx, t, action, before, out, in.Reason)
	})
	return out, err
}

// released refuses a version that is not one of the gap's app, or not released.
func released(ctx context.Context, t *tx.Tx, of *Gap, id *ids.ID) error {
	const path = "input.manifestId"
	if id == nil {
		return nil
	}
	var slug string
	var stage lifecycle.Stage
	err := t.QueryRow(ctx, `SELECT app_slug, stage FROM manifest WHERE id = $1`, *id).Scan(&slug, (*string)(&stage))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fault.NoSuch().At(path)
	case err != nil:
		return fmt.Errorf("load manifest %s: %w", *id, err)
	case slug != of.AppSlug:
		return fault.New(fault.InvalidArgument, "the version is of app %q: name one of %q", slug, of.AppSlug).At(path)
	case stage == lifecycle.StageDraft:
		return fault.New(fault.FailedPrecondition, "the version is a draft: close the gap when it is released").At(path)
	}
	return nil
}
