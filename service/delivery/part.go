package delivery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/kit/supply"
)

// part is what one request gets: a part of an artifact, and where it comes from.
type part struct {
	digest, mediaType string
	role              lifecycle.PartRole
	size              int64
	ref               string
	from              origin.Source
}

// partSQL looks whether a token still holds, and at the part that is asked for: all that may have changed since the
// delivery was opened.
const partSQL = `SELECT t.ended_at IS NOT NULL, n.status = 'RETIRED', a.stage = 'RETIRED', a.quarantined_at IS NOT NULL, a.quarantine_reason,
	a.ref, a.source_id IS NOT NULL AND s.id IS NULL, coalesce(p.role, ''), coalesce(p.media_type, ''), coalesce(p.size_bytes, 0),
	coalesce(s.id, ''), coalesce(s.kind, 'OCI'), coalesce(s.region, ''), coalesce(s.credential_user, ''), platform.source_credential(s.id)
	FROM node_task t JOIN compute_node n ON n.id = t.node_id JOIN artifact a ON a.id = $3
	LEFT JOIN LATERAL (SELECT * FROM artifact_part WHERE artifact_id = a.id AND digest = $4 ORDER BY position LIMIT 1) p ON true
	LEFT JOIN artifact_source s ON s.id = a.source_id AND s.disabled_at IS NULL
	WHERE t.id = $1 AND t.node_id = $2`

// find is the part of a digest, for the token of a delivery.
//
// Faults: NOT_FOUND when it is no part of the artifact, or the artifact is retired; CONFLICT when the task has ended;
// ARTIFACT_QUARANTINED; SOURCE_UNKNOWN when the artifact's source was switched off.
func (s *Service) find(ctx context.Context, of token.Delivery, digest string) (*part, error) {
	out := &part{digest: digest}
	var ended, nodeGone, retired, quarantined, off bool
	var why string
	err := s.DB.Worker().QueryRow(ctx, partSQL, of.Task, of.Node, of.Artifact, digest).Scan(&ended, &nodeGone, &retired, &quarantined, &why,
		&out.ref, &off, (*string)(&out.role), &out.mediaType, &out.size, (*string)(&out.from.ID), (*string)(&out.from.Kind), &out.from.Region,
		&out.from.CredentialUser, &out.from.Sealed)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && nodeGone:
		return nil, fault.New(fault.Unauthenticated, "the token's task is gone")
	case err != nil:
		return nil, fmt.Errorf("look for a part of %s: %w", of.Artifact, err)
	case ended:
		return nil, fault.New(fault.Conflict, "the task that the token is for has ended").Retry(false)
	case quarantined:
		return nil, supply.Quarantined(digest, why)
	case retired || out.role == "":
		return nil, fault.New(fault.NotFound, "%.80s is no part of an artifact that may be had", digest)
	case off:
		return nil, fault.New(fault.SourceUnknown, "the artifact's source is switched off")
	}
	return out, nil
}

const (
	// rememberFor is how long an opened credential is remembered, in memory alone.
	rememberFor = time.Minute
	// maxRemembered bounds the credentials that are remembered.
	maxRemembered = 64
)

// credentials remembers what was opened a moment ago, by the envelope that it was in: the keeper of secrets is not asked
// for every part of every artifact, and a credential that was changed is another envelope.
type credentials struct {
	mu   sync.Mutex
	held map[[sha256.Size]byte]remembered
}

type remembered struct {
	fetch.Credential
	until time.Time
}

// credential is the source's credential.
func (s *Service) credential(ctx context.Context, from *origin.Source) (fetch.Credential, error) {
	if from.Sealed == nil {
		return fetch.Credential{}, nil
	}
	envelope, now := sha256.Sum256(from.Sealed), s.DB.Now()
	if known, ok := s.opened.recall(envelope, now); ok {
		return known, nil
	}
	opened, err := from.Credential(ctx, s.Vault)
	if err == nil {
		s.opened.remember(envelope, opened, now)
	}
	return opened, err
}

func (c *credentials) recall(envelope [sha256.Size]byte, now time.Time) (fetch.Credential, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.held[envelope]
	if ok && now.After(known.until) {
		delete(c.held, envelope)
		return fetch.Credential{}, false
	}
	return known.Credential, ok
}

func (c *credentials) remember(envelope [sha256.Size]byte, opened fetch.Credential, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil || len(c.held) >= maxRemembered {
		c.held = make(map[[sha256.Size]byte]remembered)
	}
	c.held[envelope] = remembered{opened, now.Add(rememberFor)}
}
