package artifact

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/origin"
)

// found is what a source has under an address.
type found struct {
	*content  // nil when the owner has the digest already
	digest    string
	ref       string // pinned
	signature signature.Finding
	// altered is why its bytes are not those of its digest; nil when they are.
	altered *fault.Fault
}

// wanted is what is read.
type wanted struct {
	verb   string
	from   *origin.Source
	ref    string
	digest string // empty for what the reference says
	tenant ids.ID // whose artifact it is or will be
	// project separates the readings of one tenant's projects.
	project ids.ID
	// again is the artifact that is verified again: all of it is read, whatever was read before.
	again ids.ID
}

// read reads from the source, apart from the request: it may take longer. DIAL_REFUSED, ARTIFACT_UNAVAILABLE or
// DIGEST_MISMATCH, at no field.
func (s *Service) read(ctx context.Context, w wanted) (*found, error) {
	key := errandKey{Verb: w.verb, Ref: w.ref, Digest: w.digest, Tenant: w.tenant, Project: w.project,
		Source: w.from.ID, ID: w.again}
	return s.desk.run(ctx, key, func(ctx context.Context, bytes *atomic.Int64) (*found, error) {
		out, err := s.readNow(ctx, w, bytes)
		return out, withheld(w.from, err)
	})
}

func (s *Service) readNow(ctx context.Context, w wanted, bytes *atomic.Int64) (*found, error) {
	credential, err := w.from.Credential(ctx, s.Vault)
	if err != nil {
		return nil, err
	}
	session, err := s.Reach.Open(ctx, w.from.Kind, w.from.Region, w.ref, credential)
	if err != nil {
		return nil, failed(ctx, w.ref, err)
	}
	defer session.Close()
	out := &found{digest: w.digest}
	if !session.Ref().File() {
		if out.digest, err = resolve(ctx, session, w.digest); err != nil {
			return nil, err
		}
	}
	out.ref = session.Ref().Pinned(out.digest)
	r := &reading{session: session, bytes: bytes}
	if out.content, err = r.outline(ctx, out.digest); err != nil {
		return nil, err
	}
	known, has, err := s.known(ctx, w, out)
	if err != nil || has {
		out.content = nil
		return out, err
	}
	if err := r.fill(ctx, out.content, known); err != nil {
		return nil, err
	}
	out.signature, err = r.signatures(ctx, out.digest, w.from.Keys)
	return out, err
}

// resolve returns the digest that is read: a tag is resolved once.
func resolve(ctx context.Context, session *fetch.Session, wanted string) (string, error) {
	digest, err := session.Resolve(ctx)
	if err != nil {
		return "", failed(ctx, "tag "+session.Ref().Tag, err)
	}
	if wanted != "" && digest != wanted {
		return "", fault.New(fault.DigestMismatch, "the source has digest %s under this tag, and %s was requested",
			digest, wanted)
	}
	return digest, nil
}

// known are the parts that were read before in the same source, as far as the caller sees, and whether the owner has
// the artifact itself: it needs not be read then.
func (s *Service) known(ctx context.Context, w wanted, found *found) (map[string]bool, bool, error) {
	if w.again != "" {
		return nil, false, nil
	}
	var read []string
	var has []bool
	_, err := s.DB.Read(ctx,
		tx.Rows(&read, pgx.RowTo[string], `SELECT DISTINCT p.digest FROM artifact_part p
			JOIN artifact a ON a.id = p.artifact_id
			WHERE a.source_id = $1 AND a.verified_at IS NOT NULL AND a.quarantined_at IS NULL
			AND p.digest = ANY ($2)`, w.from.ID, found.digests()),
		tx.Rows(&has, pgx.RowTo[bool],
			`SELECT EXISTS (SELECT FROM artifact WHERE digest = $1
				AND coalesce(tenant_id, '') = $2)`, found.digest, w.tenant))
	if err != nil {
		return nil, false, err
	}
	out := make(map[string]bool, len(read))
	if found.kind == lifecycle.ArtifactBlob {
		read = nil // that a file was read somewhere says nothing of what lies at this address
	}
	for _, digest := range read {
		out[digest] = true
	}
	return out, len(has) == 1 && has[0], nil
}

// readAgain is read for an artifact that is there: bytes that are not those of its digest are a finding, and no
// failure.
func (s *Service) readAgain(ctx context.Context, w wanted) (*found, error) {
	out, err := s.read(ctx, w)
	if refused, ok := fault.As(err); ok && refused.Code == fault.DigestMismatch {
		return &found{digest: w.digest, ref: w.ref, altered: refused}, nil
	}
	return out, err
}

// at puts a fault at a field, unless it names one already.
func at(err error, path string) error {
	refused, ok := fault.As(err)
	if !ok {
		return err
	}
	if len(refused.Reasons) == 0 {
		return refused.At(path)
	}
	copied := *refused
	copied.Reasons = nil
	for _, reason := range refused.Reasons {
		if reason.Path == "" {
			reason.Path = path
		}
		copied.Reasons = append(copied.Reasons, reason)
	}
	return &copied
}

// withheld adds to the failure of a source that was read without the platform's name the path below which it is shown.
func withheld(from *origin.Source, err error) error {
	refused, ok := fault.As(err)
	if !ok || !from.Withheld || refused.Code != fault.ArtifactUnavailable {
		return err
	}
	return fault.New(refused.Code,
		"%s; the platform read it without a credential: for a tenant's artifacts it uses its own only below %s",
		refused.Message, origin.TenantPart(from.Location, "TENANT")).Because(err).Retry(false)
}
