package secret

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
)

// pulled is the spec of a secret for PurposeArtifactPull.
type pulled struct {
	Registry   string `json:"registry"`
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

// rules checks whether the secret may be issued, and fills in what it is bound to and its purpose.
func (in IssueInput) rules(ctx context.Context, t *tx.Tx, to *target, out *View) error {
	var released *time.Time // it is held against its end until the commit
	if err := t.QueryRow(ctx, `SELECT released_at FROM instance WHERE id = $1 FOR SHARE`,
		in.InstanceID).Scan(&released); err != nil {
		return fmt.Errorf("lock instance %s: %w", in.InstanceID, err)
	}
	if released != nil {
		return fault.New(fault.FailedPrecondition, "the instance was torn down").At("input.instanceId")
	}
	if err := in.purposes(ctx, t, to, out); err != nil {
		return err
	}
	if in.Audience == lifecycle.SecretForNode {
		if err := in.bind(ctx, t, out); err != nil {
			return err
		}
	}
	var live int
	err := t.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM runtime_secret WHERE instance_id = $1
		AND revoked_at IS NULL
		AND expires_at > $2
		AND (delivery <> 'ONCE' OR deliveries = 0) LIMIT $3) l`, in.InstanceID, t.Now, maxLive).Scan(&live)
	if err != nil {
		return fmt.Errorf("count secrets of %s: %w", in.InstanceID, err)
	}
	if live >= maxLive {
		return fault.New(fault.LimitExceeded, "the instance has %d live secrets, which is the maximum",
			maxLive).At("input.instanceId").Retry(true)
	}
	return nil
}

// purposes checks the purpose against the manifest and the policy, and sets the spec.
func (in IssueInput) purposes(ctx context.Context, t *tx.Tx, to *target, out *View) (err error) {
	out.Spec = json.RawMessage(`{}`)
	if in.Purpose != PurposeArtifactPull {
		if !slices.Contains(to.declared.SecretPurposes, in.Purpose) {
			return denied("the instance's manifest does not declare secrets for %q", in.Purpose)
		}
		return to.effective.Purpose(in.Purpose)
	}
	pinned, err := pinnedRef(ctx, t, in.InstanceID, in.ArtifactDigest)
	if err != nil {
		return err
	}
	place, _, _ := strings.Cut(pinned, "@")
	registry, repository, _ := strings.Cut(place, "/")
	if out.Spec, err = json.Marshal(pulled{Registry: registry, Repository: repository,
		Digest: in.ArtifactDigest}); err != nil {
		return err
	}
	return policy.Join(to.effective.Purpose(in.Purpose), to.effective.Source(pinned, "input.artifactDigest"))
}

// pinnedRef returns the reference of the artifact with a digest that the instance's manifest pins. It comes from the
// artifact's row, which was checked, and not from the text of the manifest. INVALID_ARGUMENT when it pins none.
func pinnedRef(ctx context.Context, t *tx.Tx, instanceID ids.ID, digest string) (ref string, err error) {
	err = t.QueryRow(ctx, `SELECT a.ref FROM instance i JOIN manifest_artifact p ON p.manifest_id = i.manifest_id
		JOIN artifact a ON a.id = p.artifact_id WHERE i.id = $1 AND a.digest = $2
		AND a.stage <> 'RETIRED'`, instanceID, digest).Scan(&ref)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fault.New(fault.InvalidArgument,
			"the instance's manifest pins no such artifact").At("input.artifactDigest")
	}
	if err != nil {
		return "", fmt.Errorf("find the artifact %s of %s: %w", digest, instanceID, err)
	}
	return ref, nil
}

func denied(format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return fault.New(fault.PolicyDenied, "%s", message).With(fault.Reason{Code: fault.PurposeDenied, Message: message,
		Path: "input.purpose"})
}

// bind ties the secret to the node that the member is on now. A member of another instance counts as unknown.
func (in IssueInput) bind(ctx context.Context, t *tx.Tx, out *View) error {
	var status lifecycle.MemberStatus
	err := t.QueryRow(ctx, `SELECT node_id, status FROM member WHERE id = $1 AND instance_id = $2
		FOR SHARE`, *in.MemberID,
		in.InstanceID).
		Scan(&out.NodeID, &status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fault.New(fault.InvalidArgument, "the instance has no such member").At("input.memberId")
	case err != nil:
		return fmt.Errorf("load member %s: %w", *in.MemberID, err)
	case status == lifecycle.MemberRemoved:
		return fault.New(fault.FailedPrecondition, "member %s is removed", *in.MemberID).At("input.memberId")
	case out.NodeID == nil:
		return fault.New(fault.FailedPrecondition, "member %s is on no node", *in.MemberID).At("input.memberId")
	}
	return nil
}

// sealed creates the value of the secret's version and puts it into custody.
func (s *Service) sealed(t *tx.Tx, v *View, fresh *custody.Fresh) ([]byte, error) {
	value, err := s.value(t, v)
	if err != nil {
		return nil, err
	}
	return fresh.Seal([]byte(value), associated(v.TenantID, v.ID, v.Version))
}

// value is a pull token, or 32 random bytes as text for whatever the app does with them.
func (s *Service) value(t *tx.Tx, v *View) (string, error) {
	if v.Purpose != PurposeArtifactPull {
		random := make([]byte, 32)
		_, _ = rand.Read(random)
		return base64.RawURLEncoding.EncodeToString(random), nil
	}
	var what pulled
	if err := json.Unmarshal(v.Spec, &what); err != nil {
		return "", fmt.Errorf("read the spec of %s: %w", v.ID, err)
	}
	return s.Keys.SignPull(token.Pull{Registry: what.Registry, Repository: what.Repository, Digest: what.Digest,
		Subject: holder(v),
		Secret:  v.ID, ExpiresAt: v.ExpiresAt}, t.Now)
}

// holder is what a secret is bound to: the node, or the instance for its adapter.
func holder(v *View) ids.ID {
	if v.NodeID != nil {
		return *v.NodeID
	}
	return v.InstanceID
}
