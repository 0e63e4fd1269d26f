package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/kit/supply"
)

// Part is a part of an artifact that the holder of a token may fetch.
type Part struct {
	// Digest names the part, and MediaType is the one that its publisher chose.
	Digest, MediaType string
	// Size is in bytes.
	Size int64

	role lifecycle.PartRole
	ref  string
	from origin.Source
}

// partSQL reads whether a token is still valid, and the requested part: all that may have changed since the delivery
// was opened.
const partSQL = `SELECT t.ended_at IS NOT NULL, n.status = 'RETIRED'
	OR NOT platform.node_enters(n.id, $5), a.stage = 'RETIRED', a.quarantined_at IS NOT NULL,
	a.quarantine_reason, a.ref, a.source_id IS NOT NULL AND s.id IS NULL,
	coalesce(p.role, ''), coalesce(p.media_type, ''), coalesce(p.size_bytes, 0),
	coalesce(s.id, ''), coalesce(s.kind, 'OCI'), coalesce(s.region, ''), coalesce(s.credential_user, ''),
	platform.source_credential(s.id), coalesce(s.location, ''), coalesce(s.tenant_id, CASE
	WHEN s.id IS NULL THEN a.tenant_id END), coalesce(platform.slug_of(a.tenant_id), '')
	FROM node_task t JOIN compute_node n ON n.id = t.node_id JOIN artifact a ON a.id = $3
	LEFT JOIN LATERAL (
		SELECT * FROM artifact_part WHERE artifact_id = a.id AND digest = $4 ORDER BY position LIMIT 1) p ON true
	LEFT JOIN artifact_source s ON s.id = a.source_id AND s.disabled_at IS NULL
	WHERE t.id = $1 AND t.node_id = $2`

// Part returns the part of a digest for the token of a delivery, and counts its delivery until leave is called.
//
// Faults: UNAUTHENTICATED and TOKEN_EXPIRED for the token; NOT_FOUND when the artifact has no such part, or is retired;
// CONFLICT when the task has ended; ARTIFACT_QUARANTINED; SOURCE_UNKNOWN when the artifact's source was switched off;
// RATE_LIMITED and UNAVAILABLE when the node or the process fetches too many parts at once.
func (s *Service) Part(ctx context.Context, text, wanted string) (found *Part, leave func(), err error) {
	of, err := s.Keys.VerifyDelivery(text, s.DB.Now())
	if err != nil {
		s.DB.Deny(tx.Denial{
			Request: authz.Request(ctx), Action: "fetchArtifactPart", Key: authz.TaskExecute.String(),
			Code: string(fault.From(err).Code), At: s.DB.Now(),
		})
		return nil, nil, err
	}
	if !digest.Valid(wanted) {
		return nil, nil, fault.New(fault.NotFound, "the address must end with sha256: and 64 hexadecimal digits")
	}
	leave, err = s.underWay.enter(of.Node)
	if err != nil {
		return nil, nil, err
	}
	found, err = s.find(ctx, of, wanted)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return found, leave, nil
}

// find reads a part and whether the token is still valid.
func (s *Service) find(ctx context.Context, of token.Delivery, digest string) (*Part, error) {
	out := &Part{Digest: digest}
	var ended, nodeGone, retired, quarantined, off bool
	var why, owner string
	err := s.DB.Worker().QueryRow(ctx, partSQL, of.Task, of.Node, of.Artifact, digest, of.Credential).Scan(
		&ended, &nodeGone, &retired, &quarantined, &why, &out.ref, &off, (*string)(&out.role),
		&out.MediaType, &out.Size,
		(*string)(&out.from.ID), (*string)(&out.from.Kind), &out.from.Region, &out.from.CredentialUser,
		&out.from.Sealed,
		&out.from.Location, &out.from.TenantID, &owner)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && nodeGone:
		return nil, fault.New(fault.Unauthenticated,
			"the token's task, or the credential of its node, has ended: open the delivery again")
	case err != nil:
		return nil, fmt.Errorf("find a part of %s: %w", of.Artifact, err)
	case ended:
		return nil, fault.New(fault.Conflict, "the task that the token is for has ended").Retry(false)
	case quarantined:
		return nil, supply.Quarantined(digest, why)
	case retired || out.role == "":
		return nil, fault.New(fault.NotFound, "%.80s is not part of an artifact that is available", digest)
	case off:
		return nil, fault.New(fault.SourceUnknown, "the artifact's source is switched off")
	}
	out.from.Withhold(out.ref, owner)
	return out, nil
}
