package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// PublishManifestInput is the input for a new manifest.
type PublishManifestInput struct {
	Document       json.RawMessage
	IdempotencyKey string
}

// PublishManifest stores a manifest as a draft. Key: manifest.publish on the app's publisher, or on the platform.
// MANIFEST_INVALID when it does not lint, or pins what is neither the publisher's tenant's nor the platform's, is
// retired or in quarantine; CONFLICT when the app has that version.
//
// The document arrives decoded from the request, so that the publisher's own bytes are not known
// here. What is stored, and what the digest covers, is its one canonical form: members sorted by
// name, no white space, no HTML escapes, numbers as they were written.
func (s *Service) PublishManifest(ctx context.Context, in PublishManifestInput) (out *db.Manifest, err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = publish(ctx, t, in)
		return err
	})
	return out, err
}

const publishing = "publishManifest"

func publish(ctx context.Context, t *tx.Tx, in PublishManifestInput) (*db.Manifest, error) {
	if !t.Actor.AllowsAnywhere(authz.ManifestPublish) {
		return nil, audit.Require(t, publishing, authz.ManifestPublish, authz.Object{}, "")
	}
	parsed, err := manifest.New(in.Document)
	if err != nil {
		return nil, inDocument(err)
	}
	if in.Document, err = canonical(in.Document); err != nil {
		return nil, err
	}
	world, err := worldOf(ctx, t, parsed)
	if err != nil {
		return nil, err
	}
	if world.appID != nil {
		if err := audit.Require(t, publishing, authz.ManifestPublish, world.object(), *world.appID); err != nil {
			return nil, world.refusedPublisher(err)
		}
	}
	made, object := made{ID: ids.New(ids.Manifest)}, world.object()
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: publishing, TenantID: object.TenantID,
		ProjectID: object.ProjectID, Value: in.IdempotencyKey, Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return t.Manifest.Get(ctx, made.ID)
	}
	if reasons := world.findings(parsed); len(reasons) > 0 {
		return nil, inDocument(fault.New(fault.ManifestInvalid, "the manifest does not fit the catalog").
			With(reasons...))
	}
	return store(ctx, t, made.ID, parsed, in.Document, world)
}

// inDocument places the findings below the input's document.
func inDocument(err error) error {
	found := fault.From(err)
	placed := *found
	placed.Reasons = fault.Prefixed("input.document", found.Reasons)
	return &placed
}

func store(ctx context.Context, t *tx.Tx, id ids.ID, parsed *manifest.Manifest, document []byte,
	world *world) (*db.Manifest, error) {
	row, err := t.Manifest.Create().SetID(id).SetAppID(*world.appID).SetAppSlug(parsed.App).SetVersion(parsed.Version).
		SetDisplayName(parsed.DisplayName).SetSummary(parsed.Summary).SetDigest(digest.Of(document)).
		SetDocument(document).
		SetAdapterName(parsed.Adapter).SetArtifactKind(parsed.ArtifactKind).SetCreatedAt(t.Now).Save(ctx)
	if tx.Violates(err, "manifest_app_slug_version") {
		return nil, fault.New(fault.Conflict, "app %q has version %s already", parsed.App, parsed.Version).
			At("input.document.version").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("store manifest: %w", err)
	}
	_, err = t.Exec(ctx, `INSERT INTO manifest_artifact (id, manifest_id, artifact_id)
		SELECT $1 || '/' || pinned, $1, pinned FROM unnest($2::text[]) pinned`, id, world.pins())
	if err != nil {
		return nil, fmt.Errorf("pin artifacts: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: publishing, Key: authz.ManifestPublish, Object: world.object(),
		ObjectID: id,
		After:    map[string]any{"app": row.AppSlug, "version": row.Version, "stage": row.Stage, "digest": row.Digest}})
}

// canonical is the document's one form: see PublishManifest.
func canonical(document []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fault.New(fault.ManifestInvalid, "the document is not JSON").At("input.document").Because(err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// LintManifest says what would keep a document from being published; nothing is stored and an
// empty answer means that it may. Key: manifest.read in any scope.
func (s *Service) LintManifest(ctx context.Context, document json.RawMessage) ([]fault.Reason, error) {
	parsed, parseErr := manifest.New(document)
	var found *world
	var queries []tx.Query
	if parseErr == nil {
		queries = append(queries, tx.Row(&found, scanWorld, worldSQL, parsed.App, parsed.Adapter, digests(parsed),
			references(parsed)))
	}
	actor, err := s.DB.Read(ctx, queries...)
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ManifestRead); err != nil {
		return nil, err
	}
	if parseErr != nil {
		if !fault.Is(parseErr, fault.ManifestInvalid) {
			return nil, parseErr
		}
		return fault.From(parseErr).Reasons, nil
	}
	return found.findings(parsed), nil
}
