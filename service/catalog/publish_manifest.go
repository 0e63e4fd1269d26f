package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/idem"
)

// PublishManifestInput is what a new manifest is made from.
type PublishManifestInput struct {
	Document       json.RawMessage
	IdempotencyKey string
}

// PublishManifest stores a manifest as a draft. Key: manifest.publish on the platform.
// MANIFEST_INVALID when it does not lint; CONFLICT when the app has that version.
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

func publish(ctx context.Context, t *tx.Tx, in PublishManifestInput) (*db.Manifest, error) {
	const action = "publishManifest"
	if err := audit.Require(t, action, authz.ManifestPublish, authz.Object{}, ""); err != nil {
		return nil, err
	}
	parsed, err := manifest.Parse(in.Document)
	if err != nil {
		return nil, inDocument(err)
	}
	if in.Document, err = canonical(in.Document); err != nil {
		return nil, err
	}
	made := made{ID: ids.New(ids.Manifest)}
	repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, Value: in.IdempotencyKey, Input: in}, &made)
	if err != nil {
		return nil, err
	}
	if repeated {
		return t.Manifest.Get(ctx, made.ID)
	}
	world, err := worldOf(ctx, t, parsed)
	if err != nil {
		return nil, err
	}
	if reasons := world.findings(parsed); len(reasons) > 0 {
		return nil, inDocument(fault.New(fault.ManifestInvalid, "the manifest does not fit the catalog").With(reasons...))
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

func store(ctx context.Context, t *tx.Tx, id ids.ID, parsed *manifest.Manifest, document []byte, world *world) (*db.Manifest, error) {
	row, err := t.Manifest.Create().SetID(id).SetAppID(*world.appID).SetAppSlug(parsed.App).SetVersion(parsed.Version).
		SetDisplayName(parsed.DisplayName).SetSummary(parsed.Summary).SetDigest(digestOf(document)).SetDocument(document).
		SetAdapterName(parsed.Adapter).SetCreatedAt(t.Now).Save(ctx)
	if tx.Violates(err, "manifest_app_slug_version") {
		return nil, fault.New(fault.Conflict, "app %q has version %s", parsed.App, parsed.Version).At("input.document.version").Retry(false)
	}
	if err != nil {
		return nil, fmt.Errorf("store manifest: %w", err)
	}
	_, err = t.Exec(ctx, `INSERT INTO manifest_artifact (id, manifest_id, artifact_id)
		SELECT $1 || '/' || id, $1, id FROM artifact WHERE digest = ANY ($2)`, id, digests(parsed))
	if err != nil {
		return nil, fmt.Errorf("pin artifacts: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: "publishManifest", Key: authz.ManifestPublish, ObjectID: id,
		After: map[string]any{"app": row.AppSlug, "version": row.Version, "stage": row.Stage, "digest": row.Digest}})
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

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func digests(parsed *manifest.Manifest) []string {
	out := make([]string, len(parsed.Artifacts))
	for i, artifact := range parsed.Artifacts {
		out[i] = artifact.Digest
	}
	return out
}

// world is what the catalog knows of the things a manifest names.
type world struct {
	appID   *ids.ID // nil when there is no such app
	family  *string
	adapter bool
	digests []string // those of its artifacts that are published and not retired
}

const worldSQL = `SELECT (SELECT id FROM app WHERE slug = $1), (SELECT permission_family FROM app WHERE slug = $1),
	EXISTS (SELECT FROM adapter WHERE name = $2), ARRAY (SELECT digest FROM artifact WHERE digest = ANY ($3) AND stage <> 'RETIRED')`

func scanWorld(row pgx.CollectableRow) (*world, error) {
	w := new(world)
	return w, row.Scan(&w.appID, &w.family, &w.adapter, &w.digests)
}

func worldOf(ctx context.Context, t *tx.Tx, m *manifest.Manifest) (*world, error) {
	found, err := t.Query(ctx, worldSQL, m.App, m.Adapter, digests(m))
	if err != nil {
		return nil, fmt.Errorf("look up what the manifest names: %w", err)
	}
	w, err := pgx.CollectOneRow(found, scanWorld)
	if err != nil {
		return nil, fmt.Errorf("look up what the manifest names: %w", err)
	}
	return w, nil
}

// findings holds a manifest against the catalog.
func (w *world) findings(m *manifest.Manifest) []fault.Reason {
	var found []fault.Reason
	add := func(path, format string, args ...any) {
		found = append(found, fault.Reason{Code: fault.UnknownValue, Message: fmt.Sprintf(format, args...), Path: path})
	}
	switch {
	case w.appID == nil:
		add("app", "the catalog has no app %q", m.App)
	case *w.family != m.PermissionFamily:
		add("permissionFamily", "the app's family is %s", *w.family)
	}
	if !w.adapter {
		add("adapter", "no adapter %q is registered", m.Adapter)
	}
	for i, artifact := range m.Artifacts {
		if !slices.Contains(w.digests, artifact.Digest) {
			add(fmt.Sprintf("artifacts.%d.digest", i), "no artifact of this digest is published")
		}
	}
	return found
}

// LintManifest says what would keep a document from being published; nothing is stored and an
// empty answer means that it may. Key: manifest.read in any scope.
func (s *Service) LintManifest(ctx context.Context, document json.RawMessage) ([]fault.Reason, error) {
	parsed, parseErr := manifest.Parse(document)
	var found *world
	var queries []tx.Query
	if parseErr == nil {
		queries = append(queries, tx.Row(&found, scanWorld, worldSQL, parsed.App, parsed.Adapter, digests(parsed)))
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
