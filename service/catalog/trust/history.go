package trust

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// maxSteps and maxReports bound what is read of one object.
const (
	maxSteps   = 100
	maxReports = 50
)

// owned is a row with the publisher whose keys say what of it is shown.
type owned[T any] struct {
	tenant, project *ids.ID
	row             *T
}

// ownedBy returns the scan function of a row's columns and then its publisher's tenant and project.
func ownedBy[T any](scan func(pgx.CollectableRow) (*T, error)) func(pgx.CollectableRow) (owned[T], error) {
	return func(row pgx.CollectableRow) (one owned[T], err error) {
		one.row, err = scan(rows.Also{CollectableRow: row, Into: []any{&one.tenant, &one.project}})
		return one, err
	}
}

// object is what the publisher's keys are requested on.
func (o owned[T]) object() authz.Object {
	return authz.Object{TenantID: rows.Value(o.tenant), ProjectID: rows.Value(o.project)}
}

// EvidenceOf reads the newest 50 reports of several manifests at once, newest first, without their bytes. Those of apps
// on whose publisher the caller does not hold manifest.read are left out.
func (s *Service) EvidenceOf(ctx context.Context, manifests []ids.ID) (map[ids.ID][]*db.PromotionEvidence, error) {
	var found []owned[db.PromotionEvidence]
	actor, err := s.DB.Read(ctx, tx.Rows(&found, ownedBy(rows.PromotionEvidence), `SELECT
		`+rows.PromotionEvidenceColumns+`, a.publisher_tenant_id, a.publisher_project_id
		FROM manifest m JOIN app a ON a.id = m.app_id
		JOIN LATERAL (SELECT * FROM promotion_evidence p WHERE p.manifest_id = m.id ORDER BY p.id DESC LIMIT $2)
			promotion_evidence ON true
		WHERE m.id = ANY ($1) ORDER BY promotion_evidence.id DESC`, manifests, maxReports))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*db.PromotionEvidence, len(manifests))
	for _, one := range found {
		if actor.AllowsOn(authz.ManifestRead, one.object()) {
			out[one.row.ManifestID] = append(out[one.row.ManifestID], one.row)
		}
	}
	return out, nil
}

// HistoryOf reads the newest 100 steps of several artifacts and manifests at once, newest first. Key: manifest.read or
// artifact.read in any scope. Who took a step and why is for those alone who hold one of them on the publisher.
func (s *Service) HistoryOf(ctx context.Context, objects []ids.ID) (map[ids.ID][]*db.Promotion, error) {
	var found []owned[db.Promotion]
	actor, err := s.DB.Read(ctx, tx.Rows(&found, ownedBy(rows.Promotion), `SELECT `+rows.PromotionColumns+`,
		coalesce(a.publisher_tenant_id, f.tenant_id), coalesce(a.publisher_project_id, f.project_id)
		FROM unnest($1::text[]) o (id)
		JOIN LATERAL (SELECT * FROM promotion s WHERE s.object_id = o.id ORDER BY s.id DESC LIMIT $2) promotion ON true
		LEFT JOIN manifest m ON m.id = o.id LEFT JOIN app a ON a.id = m.app_id LEFT JOIN artifact f ON f.id = o.id
		ORDER BY promotion.id DESC`, objects, maxSteps))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ManifestRead, authz.ArtifactRead); err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*db.Promotion, len(objects))
	for _, one := range found {
		step := one.row
		if !actor.AllowsOn(authz.ManifestRead, one.object()) && !actor.AllowsOn(authz.ArtifactRead, one.object()) {
			step.Reason, step.Override, step.ActorID, step.ActorName = "", "", "", ""
		}
		out[one.row.ObjectID] = append(out[one.row.ObjectID], one.row)
	}
	return out, nil
}
