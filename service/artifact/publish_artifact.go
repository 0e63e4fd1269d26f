package artifact

import (
	"context"
	"errors"
	"fmt"
	"mime"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/origin"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// PublishArtifactInput is the input for a new artifact.
type PublishArtifactInput struct {
	Name, MediaType, Ref, IdempotencyKey string
	// empty for what the registry says; a blob needs it
	Digest    string  `json:",omitempty"`
	ProjectID *ids.ID `json:",omitempty"` // nil for the platform
}

// maxRef bounds an address, in bytes.
const maxRef = 512

// check refuses what is wrong with the input by itself, and returns the digest that it names; empty when it names none.
func (in PublishArtifactInput) check() (named string, err error) {
	var input check.Input
	input.Text("input.name", in.Name, 1, 100)
	if _, _, err := mime.ParseMediaType(in.MediaType); in.MediaType != "" &&
		(err != nil || len(in.MediaType) > maxWord) {
		input.Bad("input.mediaType", "must be a media type such as application/vnd.oci.image.manifest.v1+json")
	}
	if len(in.Ref) > maxRef {
		input.Bad("input.ref", "must have at most %d bytes", maxRef)
	}
	if in.Digest != "" && !digest.Valid(in.Digest) {
		input.Bad("input.digest", "must be sha256: and 64 lower-case hexadecimal digits")
	}
	if err := input.Err(); err != nil {
		return "", err
	}
	ref, err := fetch.Parse(in.Ref)
	switch {
	case err != nil:
		return "", at(err, "input.ref")
	case ref.File() && in.Digest == "":
		input.Bad("input.digest", "must be given for a file")
		return "", input.Err()
	case in.Digest == "" || ref.Digest == "":
		return in.Digest + ref.Digest, nil
	case in.Digest != ref.Digest:
		return "", fault.New(fault.DigestMismatch,
			"input.ref is pinned to another digest").At("input.digest")
	}
	return in.Digest, nil
}

// made is what an idempotency key stores.
type made struct {
	ID ids.ID `json:"id"`
}

// errGoOn rolls back the first transaction of a verb that reads a source.
var errGoOn = errors.New("the source has to be read")

// PublishArtifact stores an artifact as a draft, after all its bytes were read from its source and checked against
// their digests, and its signatures against the keys that the source trusts. Key: artifact.publish on the project, or
// on the platform.
//
// Faults: INVALID_ARGUMENT; POLICY_DENIED, SOURCE_UNKNOWN, DIAL_REFUSED, ARTIFACT_UNAVAILABLE, SIGNATURE_MISSING and
// SIGNATURE_UNTRUSTED at input.ref, DIGEST_MISMATCH at input.ref, or at input.digest when it is not the one that was
// wanted; CONFLICT when the owner has the digest, or the source changed meanwhile; UNAVAILABLE when the reading takes
// longer than the request may: it goes on, and a repeat waits for it.
//
// The source is read between two transactions: the first authorises and finds out whether this is a repeat, the second
// claims the idempotency key and writes.
func (s *Service) PublishArtifact(ctx context.Context, in PublishArtifactInput) (out *db.Artifact, err error) {
	named, err := in.check()
	if err != nil {
		return nil, err
	}
	var begun *publication
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		begun, err = begin(ctx, t, in)
		if err != nil || begun.repeated != nil {
			return err
		}
		return errGoOn
	})
	if err == nil {
		return begun.repeated, nil
	}
	if !errors.Is(err, errGoOn) {
		return nil, err
	}
	found, err := s.read(ctx, wanted{verb: "publishArtifact", from: begun.from, ref: in.Ref, digest: named,
		tenant: begun.object.TenantID, project: begun.object.ProjectID})
	if err != nil {
		return nil, at(err, "input.ref")
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = s.publish(ctx, t, in, begun.from, found)
		return err
	})
	return out, err
}

// publication is what a publishing begins with.
type publication struct {
	id       ids.ID
	object   authz.Object
	from     *origin.Source
	repeated *db.Artifact // what an earlier call with the same key made
}

// begin authorises, claims the idempotency key, checks the policy for where the artifact comes from, and finds its
// source.
func begin(ctx context.Context, t *tx.Tx, in PublishArtifactInput) (*publication, error) {
	const action = "publishArtifact"
	out := &publication{id: ids.New(ids.Artifact)}
	var err error
	if out.object, err = owner(ctx, t, action, in.ProjectID); err != nil {
		return nil, err
	}
	made := made{ID: out.id}
	key := idem.Key{Verb: action, TenantID: out.object.TenantID, ProjectID: out.object.ProjectID,
		Value: in.IdempotencyKey, Input: in}
	repeated, err := idem.Claim(ctx, t, key, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		if out.repeated, err = t.Artifact.Get(ctx, made.ID); err != nil {
			return nil, fmt.Errorf("load artifact %s: %w", made.ID, err)
		}
		return out, nil
	}
	rules, err := overlay.Load(ctx, t, out.object.TenantID, out.object.ProjectID)
	if err != nil {
		return nil, err
	}
	if err := rules.Source(in.Ref, "input.ref"); err != nil {
		return nil, audit.Refused(t, action, authz.ArtifactPublish, out.object, "", err)
	}
	out.from, err = origin.Find(ctx, t, tenantOf(out.object), in.Ref)
	return out, err
}

// owner is whose the new artifact will be, authorised.
func owner(ctx context.Context, t *tx.Tx, action string, projectID *ids.ID) (authz.Object, error) {
	if projectID == nil {
		return authz.Object{}, audit.Require(t, action, authz.ArtifactPublish, authz.Object{}, "")
	}
	project, err := t.Project.Query().Where(dbproject.ID(*projectID)).Only(ctx)
	if db.IsNotFound(err) {
		return authz.Object{}, audit.Missing(t, action, authz.ArtifactPublish, *projectID)
	}
	if err != nil {
		return authz.Object{}, fmt.Errorf("load project %s: %w", *projectID, err)
	}
	object := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	if err := audit.Require(t, action, authz.ArtifactPublish, object, project.ID); err != nil {
		return authz.Object{}, err
	}
	if project.DeletedAt != nil {
		return authz.Object{}, fault.New(fault.FailedPrecondition, "the project is deleted").At("input.projectId")
	}
	return object, nil
}

// tenantOf is the object's tenant; nil for the platform's.
func tenantOf(object authz.Object) *ids.ID {
	if object.TenantID == "" {
		return nil
	}
	return &object.TenantID
}
