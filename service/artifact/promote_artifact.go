package artifact

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbartifact "github.com/gpuaas/app-platform/ent/generated/db/artifact"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/check"
)

// maxNamed bounds the objects that a refusal names.
const maxNamed = 10

// PromoteArtifactInput is a step of trust.
type PromoteArtifactInput struct {
	ArtifactID ids.ID
	To         lifecycle.Stage
	Reason     string
}

// PromoteArtifact moves an artifact to its next stage. Key: artifact.promote on the platform.
//
// From DRAFT to STAGED its registry is asked again, before and outside of the transaction. An
// artifact that an active manifest pins stays active, and one that a live instance uses is not
// retired. FAILED_PRECONDITION names both stages when the step is none; CONFLICT when another
// promotion came first.
func (s *Service) PromoteArtifact(ctx context.Context, in PromoteArtifactInput) (out *db.Artifact, err error) {
	var input check.Input
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	var seen *db.Artifact
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		seen, err = load(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	var found *Found
	if seen.Stage == lifecycle.StageDraft && in.To == lifecycle.StageStaged {
		if found, err = s.Registries.Fetch(ctx, seen.Ref); err != nil {
			return nil, err
		}
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = s.promote(ctx, t, in, seen, found)
		return err
	})
	return out, err
}

// load locks the artifact, authorised, and refuses a step that the table does not hold.
func load(ctx context.Context, t *tx.Tx, in PromoteArtifactInput) (*db.Artifact, error) {
	const action = "promoteArtifact"
	if err := audit.Require(t, action, authz.ArtifactPromote, authz.Object{}, in.ArtifactID); err != nil {
		return nil, err
	}
	row, err := t.Artifact.Query().Where(dbartifact.ID(in.ArtifactID)).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, authz.ArtifactPromote, in.ArtifactID)
	}
	if err != nil {
		return nil, fmt.Errorf("load artifact %s: %w", in.ArtifactID, err)
	}
	if err := row.Stage.CanMove(in.To); err != nil {
		return nil, fault.From(err).At("input.to")
	}
	return row, nil
}

func (s *Service) promote(ctx context.Context, t *tx.Tx, in PromoteArtifactInput, seen *db.Artifact, found *Found) (*db.Artifact, error) {
	row, err := load(ctx, t, in)
	if err != nil {
		return nil, err
	}
	if row.Stage != seen.Stage {
		return nil, fault.New(fault.Conflict, "the artifact was %s when this began and is %s now", seen.Stage, row.Stage).At("input.artifactId")
	}
	update := row.Update().SetStage(in.To)
	switch {
	case found != nil:
		evidence, err := s.evidence(found)
		if err != nil {
			return nil, err
		}
		update.SetEvidence(evidence).SetSizeBytes(found.SizeBytes)
	case in.To == lifecycle.StageDeprecated:
		err = nobody(ctx, t, "an active manifest pins the artifact", `SELECT 'manifest ' || m.id || ' (' || m.app_slug || ' ' || m.version || ')'
			FROM manifest m JOIN manifest_artifact p ON p.manifest_id = m.id WHERE p.artifact_id = $1 AND m.stage = 'ACTIVE' ORDER BY m.id LIMIT $2`, row.ID)
	case in.To == lifecycle.StageRetired:
		err = nobody(ctx, t, "live instances use the artifact", `SELECT 'instance ' || i.id || ' (' || i.name || ')' FROM instance i
			JOIN manifest_artifact p ON p.manifest_id = i.manifest_id WHERE p.artifact_id = $1 AND i.released_at IS NULL ORDER BY i.id LIMIT $2`, row.ID)
	}
	if err != nil {
		return nil, err
	}
	moved, err := update.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("promote artifact %s: %w", row.ID, err)
	}
	return moved, audit.Write(ctx, t, audit.Entry{Action: "promoteArtifact", Key: authz.ArtifactPromote, ObjectID: row.ID, Reason: in.Reason,
		Before: map[string]any{"stage": row.Stage}, After: map[string]any{"stage": moved.Stage, "digest": moved.Digest}})
}

// nobody refuses with FAILED_PRECONDITION when the query finds users of the artifact, naming up to 10.
func nobody(ctx context.Context, t *tx.Tx, text, query string, id ids.ID) error {
	found, err := t.Query(ctx, query, id, maxNamed)
	if err != nil {
		return fmt.Errorf("look for users of artifact %s: %w", id, err)
	}
	users, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for users of artifact %s: %w", id, err)
	}
	if len(users) == 0 {
		return nil
	}
	refused := fault.New(fault.FailedPrecondition, "%s", text)
	for _, user := range users {
		refused = refused.With(fault.Reason{Code: fault.FailedPrecondition, Message: user, Path: "input.to"})
	}
	return refused
}
