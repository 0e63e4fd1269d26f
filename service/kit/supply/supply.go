// Package supply says which artifacts the nodes of an instance may have: for the verb that requests a task, and for the
// one that opens a delivery later. The answer may have changed when the bytes are requested, so that the verb that
// gives them checks again.
package supply

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Artifact is an artifact that an instance may have.
type Artifact struct {
	ID                           ids.ID
	Kind                         lifecycle.ArtifactKind
	Name, Digest, Ref, MediaType string
	quarantined                  bool
	whyQuarantined               string
}

// findSQL finds the artifact of a digest for an instance: one that its manifest pins, or the manifest that an operation
// under way leads it to, else one of its own tenant that is in use. Nothing that is retired.
const findSQL = `SELECT a.id, a.kind, a.name, a.digest, a.ref, a.media_type, a.quarantined_at IS NOT NULL,
	a.quarantine_reason
	FROM instance i JOIN artifact a ON a.digest = $2 AND a.stage <> 'RETIRED'
	CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM manifest_artifact p WHERE p.artifact_id = a.id
	AND (p.manifest_id = i.manifest_id
		OR p.manifest_id IN (SELECT o.desired_change->'platform'->'to'->>'manifestId' FROM operation o
			WHERE o.instance_id = i.id AND o.ended_at IS NULL))) AS pinned) x
	WHERE i.id = $1 AND (x.pinned OR a.tenant_id = i.tenant_id AND a.stage IN ('ACTIVE', 'DEPRECATED'))
	ORDER BY x.pinned DESC, a.tenant_id IS NULL, a.id LIMIT 1`

// Find returns the artifact of a digest that the instance's nodes may have, as far as row-level security shows the
// caller the instance, its operations and its tenant's artifacts.
//
// Faults, at the path: NOT_FOUND when it does not exist, ARTIFACT_QUARANTINED, POLICY_DENIED when the policy does not
// let its source through.
func Find(ctx context.Context, t *tx.Tx, rules *policy.Effective, instanceID ids.ID, digest, path string) (*Artifact,
	error) {
	out, err := Look(ctx, t, instanceID, digest)
	switch {
	case err != nil:
		return nil, err
	case out == nil:
		return nil, fault.New(fault.NotFound,
			"the instance's manifest does not pin artifact %.80s, and its tenant has none with this digest in use",
			digest).At(path)
	case out.quarantined:
		return nil, Quarantined(digest, out.whyQuarantined).At(path)
	}
	return out, rules.Source(out.Ref, path)
}

// Look is Find without the checks of quarantine and policy; nil when the artifact does not exist.
func Look(ctx context.Context, t *tx.Tx, instanceID ids.ID, digest string) (*Artifact, error) {
	out := &Artifact{}
	err := t.QueryRow(ctx, findSQL, instanceID, digest).Scan(&out.ID, (*string)(&out.Kind), &out.Name, &out.Digest,
		&out.Ref, &out.MediaType,
		&out.quarantined, &out.whyQuarantined)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find artifact %s: %w", digest, err)
	}
	return out, nil
}

// Quarantined returns the refusal of an artifact in quarantine.
func Quarantined(digest, why string) *fault.Fault {
	if why == "" {
		why = "no reason was given"
	}
	return fault.New(fault.ArtifactQuarantined, "artifact %.80s is in quarantine: %.500s", digest, why)
}
