package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Bounds of a secret.
const (
	minLife = 30 * time.Second
	maxLife = 24 * time.Hour
	// maxLive bounds the secrets of one instance that have neither ended nor been revoked.
	maxLive = 1_000
)

var (
	purposeForm = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,63}$`)
)

// IssueInput says what secret is issued.
type IssueInput struct {
	InstanceID ids.ID
	Purpose    string
	Audience   lifecycle.SecretAudience
	// MemberID is the member whose node may take delivery; for SecretForNode.
	MemberID *ids.ID
	// ArtifactDigest is what may be pulled, for PurposeArtifactPull.
	ArtifactDigest string
	TTLSeconds     int
	Delivery       lifecycle.SecretDelivery
	Reason         string
	IdempotencyKey string `json:"-"`
}

// Issue creates a secret. A repeat with the same key returns the same secret. It requires secret.issue on the
// instance's project; an operation's token may issue only for its own instance.
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN, POLICY_DENIED with PURPOSE_DENIED when the manifest
// does not declare the purpose or policy does not allow it, FAILED_PRECONDITION when the instance ended or the member
// is on no node, LIMIT_EXCEEDED, IDEMPOTENCY_KEY_REUSED, UNAVAILABLE when the keeper does not answer.
func (s *Service) Issue(ctx context.Context, in IssueInput) (out *View, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.prepared(ctx, func(ctx context.Context, t *tx.Tx, fresh *custody.Fresh) error {
		out, err = s.issue(ctx, t, in, fresh)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (in IssueInput) check() error {
	var wrong check.Input
	wrong.Reason("input.reason", in.Reason)
	if !purposeForm.MatchString(in.Purpose) {
		wrong.Bad("input.purpose",
			"must have 1 to 64 lower-case letters, digits, dots, hyphens and underscores, starting with a letter")
	}
	most := maxLife
	pull := in.Purpose == PurposeArtifactPull
	if pull {
		most = token.MaxPullLife
	}
	if life := time.Duration(in.TTLSeconds) * time.Second; life < minLife || life > most {
		wrong.Bad("input.ttlSeconds", "must be %d to %d seconds", int(minLife.Seconds()), int(most.Seconds()))
	}
	if pull && !digest.Valid(in.ArtifactDigest) {
		wrong.Bad("input.artifactDigest", "must be sha256: and 64 hexadecimal digits, as the manifest pins them")
	}
	if !pull && in.ArtifactDigest != "" {
		wrong.Bad("input.artifactDigest", "may be set only for the purpose %s", PurposeArtifactPull)
	}
	switch forNode := in.Audience == lifecycle.SecretForNode; {
	case forNode && in.MemberID == nil:
		wrong.Bad("input.memberId", "must be set for a secret of a node")
	case !forNode && in.MemberID != nil:
		wrong.Bad("input.memberId", "may be set only for a secret of a node")
	}
	return wrong.Err()
}

// target is what a secret is issued for.
type target struct {
	authz.Object
	effective *policy.Effective
	declared  declared
}

// declared is the part of a manifest that secrets come from.
type declared struct {
	Artifacts []struct {
		Ref    string `json:"ref"`
		Digest string `json:"digest"`
	} `json:"artifacts"`
	SecretPurposes []string `json:"secretPurposes"`
}

func (s *Service) issue(ctx context.Context, t *tx.Tx, in IssueInput, fresh *custody.Fresh) (*View, error) {
	const action = "issueRuntimeSecret"
	to, err := targetOf(ctx, t, action, in.InstanceID)
	if err != nil {
		return nil, err
	}
	out := &View{
		ID: ids.New(ids.RuntimeSecret), TenantID: to.TenantID, ProjectID: to.ProjectID, InstanceID: in.InstanceID,
		Purpose:  in.Purpose,
		Audience: in.Audience, MemberID: in.MemberID, Delivery: in.Delivery, Version: 1, IssuedBy: t.Actor.Ref(),
		CreatedAt: t.Now,
		ExpiresAt: t.Now.Add(time.Duration(in.TTLSeconds) * time.Second),
	}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, TenantID: to.TenantID, ProjectID: to.ProjectID,
		Value: in.IdempotencyKey, Input: in}, &out.ID)
	if err != nil {
		return nil, err
	}
	if repeated {
		return again(ctx, t, out.ID)
	}
	if err := in.rules(ctx, t, to, out); err != nil {
		return nil, audit.Refused(t, action, authz.SecretIssue, to.Object, in.InstanceID, err)
	}
	if fresh == nil {
		return nil, custody.ErrUnprepared
	}
	if err := s.store(ctx, t, out, fresh); err != nil {
		return nil, err
	}
	return out, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SecretIssue, Object: to.Object,
		ObjectID: out.ID, After: trail(out), Reason: in.Reason})
}

// again returns what an earlier call with the same key created; NOT_FOUND when it does not exist any more.
func again(ctx context.Context, t *tx.Tx, id ids.ID) (*View, error) {
	found, err := one(ctx, t, `SELECT `+columns+` FROM runtime_secret WHERE id = $1`, id)
	if err == nil && found == nil {
		err = fault.NoSuch()
	}
	return found, err
}

// targetOf loads the instance, with what policy leaves of its project's choices.
func targetOf(ctx context.Context, t *tx.Tx, action string, id ids.ID) (*target, error) {
	out := &target{}
	out.InstanceID = id
	var document []byte
	err := t.QueryRow(ctx, `SELECT i.tenant_id, i.project_id, m.document FROM instance i
		JOIN manifest m ON m.id = i.manifest_id WHERE i.id = $1`, id).
		Scan(&out.TenantID, &out.ProjectID, &document)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, audit.Missing(t, action, authz.SecretIssue, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load instance %s: %w", id, err)
	}
	if err := audit.Require(t, action, authz.SecretIssue, out.Object, id); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(document, &out.declared); err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", id, err)
	}
	out.effective, err = overlay.Load(ctx, t, out.TenantID, out.ProjectID)
	return out, err
}

// store creates and seals the value, and writes the row.
func (s *Service) store(ctx context.Context, t *tx.Tx, v *View, fresh *custody.Fresh) error {
	sealed, err := s.sealed(t, v, fresh)
	if err != nil {
		return err
	}
	_, err = t.Exec(ctx, `INSERT INTO runtime_secret (id, tenant_id, project_id, instance_id, member_id, node_id,
		purpose,
		audience, delivery, spec,
		version, sealed, keeper, expires_at, actor_kind, actor_id, actor_name, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
		v.ID, v.TenantID, v.ProjectID, v.InstanceID, v.MemberID, v.NodeID, v.Purpose, v.Audience, v.Delivery, v.Spec,
		v.Version, sealed, fresh.Keeper(), v.ExpiresAt, v.IssuedBy.Kind, v.IssuedBy.ID, v.IssuedBy.Name, v.CreatedAt)
	if err != nil {
		return fmt.Errorf("store a secret: %w", err)
	}
	return nil
}
