package artifact

import (
	"context"
	"errors"
	"fmt"
	"mime"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/check"
	"github.com/gpuaas/app-platform/service/idem"
	"github.com/gpuaas/app-platform/service/overlay"
)

// PublishArtifactInput is what a new artifact is made from.
type PublishArtifactInput struct {
	Name, MediaType, Ref, IdempotencyKey string
	Digest                               string  `json:",omitempty"` // empty for what the registry says; a blob needs it
	ProjectID                            *ids.ID `json:",omitempty"` // nil for the platform
}

func (in PublishArtifactInput) check() error {
	var input check.Input
	input.Text("input.name", in.Name, 1, 100)
	if _, _, err := mime.ParseMediaType(in.MediaType); err != nil || len(in.MediaType) > 255 {
		input.Bad("input.mediaType", "a media type such as application/vnd.oci.image.manifest.v1+json")
	}
	if len(in.Ref) > 512 {
		input.Bad("input.ref", "at most 512 characters")
	}
	return input.Err()
}

// made is what an idempotency key remembers.
type made struct {
	ID ids.ID `json:"id"`
}

// errGoOn ends the first transaction of PublishArtifact without a trace.
var errGoOn = errors.New("the artifact has to be fetched")

// PublishArtifact stores an artifact as a draft, after its manifest was fetched and held against
// its digest. Key: artifact.publish on the platform. The faults are those of Registries.Fetch,
// POLICY_DENIED at input.ref when the platform's policy does not let its source through, and CONFLICT when
// the digest is published.
//
// The registry is asked between two transactions, as it may take its time: the first authorises
// and looks whether this is a repeat, the second claims the idempotency key and writes.
func (s *Service) PublishArtifact(ctx context.Context, in PublishArtifactInput) (out *db.Artifact, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if _, err := s.Registries.parseRef(in.Ref); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if out, _, err = claim(ctx, t, in); out != nil || err != nil {
			return err
		}
		if err := permitted(ctx, t, in.Ref); err != nil {
			return err
		}
		return errGoOn
	})
	if !errors.Is(err, errGoOn) {
		return out, err
	}
	found, err := s.Registries.Fetch(ctx, in.Ref)
	if err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = s.store(ctx, t, in, found)
		return err
	})
	return out, err
}

// claim authorises and claims the idempotency key; it answers the artifact when the key was used
// before, and the id to use when not.
func claim(ctx context.Context, t *tx.Tx, in PublishArtifactInput) (*db.Artifact, ids.ID, error) {
	const action = "publishArtifact"
	if err := audit.Require(t, action, authz.ArtifactPublish, authz.Object{}, ""); err != nil {
		return nil, "", err
	}
	made := made{ID: ids.New(ids.Artifact)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, Value: in.IdempotencyKey, Input: in}, &made)
	if err != nil || !repeated {
		return nil, made.ID, err
	}
	row, err := t.Artifact.Get(ctx, made.ID)
	return row, made.ID, err
}

// permitted asks the platform's policy for where an artifact comes from: before its registry is dialled, and
// again when it is stored.
func permitted(ctx context.Context, t *tx.Tx, ref string) error {
	rules, err := overlay.Load(ctx, t, "", "")
	if err != nil {
		return err
	}
	return audit.Refused(t, "publishArtifact", authz.ArtifactPublish, authz.Object{}, "", rules.Source(ref, "input.ref"))
}

func (s *Service) store(ctx context.Context, t *tx.Tx, in PublishArtifactInput, found *Found) (*db.Artifact, error) {
	repeated, id, err := claim(ctx, t, in)
	if repeated != nil || err != nil {
		return repeated, err
	}
	if err := permitted(ctx, t, in.Ref); err != nil {
		return nil, err
	}
	evidence, err := s.evidence(found)
	if err != nil {
		return nil, err
	}
	row, err := t.Artifact.Create().SetID(id).SetName(in.Name).SetMediaType(in.MediaType).SetRef(in.Ref).SetDigest(found.Digest).
		SetSizeBytes(found.SizeBytes).SetEvidence(evidence).SetCreatedAt(t.Now).Save(ctx)
	if tx.Violates(err, "artifact_digest_key") {
		return nil, fault.New(fault.Conflict, "an artifact of digest %s is published", found.Digest).At("input.ref").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("store artifact: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: "publishArtifact", Key: authz.ArtifactPublish, ObjectID: row.ID,
		After: map[string]any{"name": row.Name, "ref": row.Ref, "stage": row.Stage, "evidence": evidence}})
}
