package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
)

// world is what the catalog knows of the things a manifest names.
type world struct {
	publisher
	appID     *ids.ID // nil when there is no such app
	family    *string
	adapter   bool
	artifacts map[string]candidate // by digest
}

// candidate is the artifact that a digest in a manifest names.
type candidate struct {
	ID          ids.ID          `json:"id"`
	Digest      string          `json:"digest"`
	Stage       lifecycle.Stage `json:"stage"`
	Quarantined bool            `json:"quarantined"`
	Ref         string          `json:"ref"`
}

// worldSQL finds an app, an adapter and artifacts. Of two artifacts of a digest the one of the publisher's tenant comes
// before the platform's, and that of the reference which the manifest names before both.
const worldSQL = `SELECT app.id, app.permission_family, app.publisher_tenant_id, app.publisher_project_id,
	EXISTS (SELECT FROM adapter d WHERE d.name = $2 AND (d.project_id IS NULL OR app.sandbox AND d.project_id = app.publisher_project_id)),
	(SELECT coalesce(jsonb_agg(jsonb_build_object('id', x.id, 'digest', x.digest, 'stage', x.stage, 'ref', x.ref, 'quarantined', x.quarantined_at IS NOT NULL)), '[]')
		FROM (SELECT DISTINCT ON (f.digest) f.* FROM artifact f WHERE f.digest = ANY ($3)
			AND (f.tenant_id IS NULL OR f.tenant_id = app.publisher_tenant_id) ORDER BY f.digest, f.ref = ANY ($4) DESC, f.tenant_id IS NULL) x)
	FROM (SELECT) one LEFT JOIN app ON app.slug = $1`

func scanWorld(row pgx.CollectableRow) (*world, error) {
	w := &world{artifacts: map[string]candidate{}}
	var encoded []byte
	if err := row.Scan(&w.appID, &w.family, &w.tenant, &w.project, &w.adapter, &encoded); err != nil {
		return nil, err
	}
	var list []candidate
	if err := json.Unmarshal(encoded, &list); err != nil {
		return nil, fmt.Errorf("read the artifacts: %w", err)
	}
	for _, one := range list {
		w.artifacts[one.Digest] = one
	}
	return w, nil
}

func worldOf(ctx context.Context, t *tx.Tx, m *manifest.Manifest) (*world, error) {
	found, err := t.Query(ctx, worldSQL, m.App, m.Adapter, digests(m), references(m))
	if err != nil {
		return nil, fmt.Errorf("look up what the manifest names: %w", err)
	}
	w, err := pgx.CollectOneRow(found, scanWorld)
	if err != nil {
		return nil, fmt.Errorf("look up what the manifest names: %w", err)
	}
	return w, nil
}

func digests(parsed *manifest.Manifest) []string {
	out := make([]string, len(parsed.Artifacts))
	for i, artifact := range parsed.Artifacts {
		out[i] = artifact.Digest
	}
	return out
}

// references are the addresses of the artifacts.
func references(parsed *manifest.Manifest) []string {
	out := make([]string, len(parsed.Artifacts))
	for i, artifact := range parsed.Artifacts {
		out[i] = artifact.Ref
	}
	return out
}

// pins are the ids of the artifacts.
func (w *world) pins() []string {
	var out []string
	for _, one := range w.artifacts {
		out = append(out, string(one.ID))
	}
	return out
}

// findings checks a manifest against the catalog.
func (w *world) findings(m *manifest.Manifest) []fault.Reason {
	found := w.named(m)
	for i, artifact := range m.Artifacts {
		path := fmt.Sprintf("artifacts.%d.digest", i)
		one, ok := w.artifacts[artifact.Digest]
		switch {
		case !ok:
			found = append(found, fault.Reason{Code: fault.UnknownValue,
				Message: "no artifact with this digest is published for the app's publisher or for all projects: " +
					w.whoseTurn("artifact.publish"), Path: path})
		case one.Stage == lifecycle.StageRetired:
			found = append(found, fault.Reason{Code: fault.UnknownValue,
				Message: "the artifact with this digest is RETIRED", Path: path})
		case one.Quarantined:
			found = append(found, fault.Reason{Code: fault.ArtifactQuarantined,
				Message: "the artifact with this digest is in quarantine", Path: path})
		case one.Ref != artifact.Ref:
			found = append(found, fault.Reason{Code: fault.BadValue, Path: fmt.Sprintf("artifacts.%d.ref", i),
				Message: fmt.Sprintf("the artifact with this digest was published from %.300s: use that address",
					one.Ref)})
		}
	}
	return found
}

// named checks everything but the artifacts against the catalog.
func (w *world) named(m *manifest.Manifest) []fault.Reason {
	var found []fault.Reason
	add := func(path, format string, args ...any) {
		found = append(found, fault.Reason{Code: fault.UnknownValue, Message: fmt.Sprintf(format, args...), Path: path})
	}
	switch {
	case w.appID == nil:
		add("app", "the catalog has no app %q: %s", m.App, w.whoseTurn("app.manage"))
	case *w.family != m.PermissionFamily:
		add("permissionFamily", "the app's family is %s", *w.family)
	}
	if !w.adapter {
		add("adapter", "no adapter %q is registered that the app may use: the platform's staff registers adapters "+
			"for all (adapter.register), a publisher one for apps in its project's sandbox (sandbox.manage)", m.Adapter)
	}
	return found
}

// whoseTurn says who can do for the app what needs the key, for callers that cannot.
func (w *world) whoseTurn(key string) string {
	switch {
	case w.appID == nil:
		return "the platform's staff creates the app (app.manage) and names its publisher; or you create one of your " +
			"own in a sandbox (sandbox.manage)"
	case w.project == nil:
		return "the platform publishes the app, and its staff can do this (" + key +
			" on the platform); or the staff gives an app to your project (app.manage)"
	}
	return "one project publishes the app, and callers with " + key + " on it can do this"
}

// refusedPublisher adds to a refusal who can publish versions of the app.
func (w *world) refusedPublisher(err error) error {
	refused, is := fault.As(err)
	if !is || refused.Code != fault.Forbidden {
		return err
	}
	return refused.With(fault.Reason{Code: fault.Forbidden, Message: w.whoseTurn(authz.ManifestPublish.String()),
		Path: "input.document.app"})
}
