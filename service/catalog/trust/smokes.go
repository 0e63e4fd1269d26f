package trust

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// SmokesOf reads the newest 50 reports of smokes of several artifacts at once, newest first, without their bytes. Those
// of artifacts on whose owner the caller does not hold artifact.read are left out.
func (s *Service) SmokesOf(ctx context.Context, artifacts []ids.ID) (map[ids.ID][]*db.ArtifactSmoke, error) {
	var found []owned[db.ArtifactSmoke]
	actor, err := s.DB.Read(ctx, tx.Rows(&found, ownedBy(rows.ArtifactSmoke), `SELECT
		`+rows.ArtifactSmokeColumns+`, f.tenant_id, f.project_id FROM artifact f
		JOIN LATERAL (SELECT * FROM artifact_smoke o WHERE o.artifact_id = f.id ORDER BY o.id DESC LIMIT $2)
			artifact_smoke ON true
		WHERE f.id = ANY ($1) ORDER BY artifact_smoke.id DESC`, artifacts, maxSmokes))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*db.ArtifactSmoke, len(artifacts))
	for _, one := range found {
		if actor.AllowsOn(authz.ArtifactRead, one.object()) {
			out[one.row.ArtifactID] = append(out[one.row.ArtifactID], one.row)
		}
	}
	return out, nil
}

// Smoked reads whether artifacts have a smoke of their kind that counts. Key: artifact.read in any scope.
func (s *Service) Smoked(ctx context.Context, artifacts []ids.ID) (map[ids.ID]bool, error) {
	type one struct {
		id     ids.ID
		smoked bool
	}
	var found []one
	actor, err := s.DB.Read(ctx, tx.Rows(&found, func(row pgx.CollectableRow) (x one, err error) {
		return x, row.Scan((*string)(&x.id), &x.smoked)
	}, `SELECT id, platform.smoked(id) FROM artifact WHERE id = ANY ($1)`, artifacts))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ArtifactRead); err != nil {
		return nil, err
	}
	out := make(map[ids.ID]bool, len(artifacts))
	for _, row := range found {
		out[row.id] = row.smoked
	}
	return out, nil
}

// Pin is an artifact that a version pins, with what says whether it was smoked.
type Pin struct {
	Name, Digest string
	Stage        lifecycle.Stage
	Kind         lifecycle.ArtifactKind
	// Platform marks an artifact of the platform.
	Platform, Smoked bool
}

// LacksSmoke returns what keeps the artifact from other tenants than its version's publisher: a signed report of a
// smoke of its kind. A platform's artifact that is ACTIVE lacks none: it has had one, or its staff set that aside.
func (p Pin) LacksSmoke() string {
	if p.Smoked || p.Platform && p.Stage == lifecycle.StageActive {
		return ""
	}
	return fmt.Sprintf(
		"artifact %s (%s) has no passed report of a smoke of its kind (%s) that a registered runner signed",
		p.Name, p.Digest, strings.Join(evidence.SmokeChecks(p.Kind), ", "))
}
