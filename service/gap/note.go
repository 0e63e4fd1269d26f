package gap

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/onboarding"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Note is a gap that is about to be taken into the log.
type Note struct {
	ID  ids.ID
	App App
	// ManifestID and Version are the version that it was found with; nil and empty for none.
	ManifestID *ids.ID
	Version    string
	// Condition is the check that failed; empty for none.
	Condition          onboarding.Condition
	Kind               lifecycle.GapKind
	Title, Description string
	Evidence           []string
	InstanceID         *ids.ID
	// Key is what the caller was allowed it by, for the audit.
	Key authz.Key
}

// Take writes a gap that its caller was allowed to raise, and its audit. Of a version and a condition there is one: nil
// when the log has it already, in whatever state.
func Take(ctx context.Context, t *tx.Tx, note Note) (*Gap, error) {
	evidence := note.Evidence
	if evidence == nil {
		evidence = []string{}
	}
	by := t.Actor.Ref()
	row, err := one(ctx, t, `INSERT INTO gap (id, tenant_id, project_id, app_slug, manifest_id, version, condition,
		kind, state,
		title, description, evidence, instance_id, raiser_kind, raiser_id, raiser_name, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
		ON CONFLICT (manifest_id, condition) WHERE condition <> '' DO NOTHING RETURNING `+columns,
		note.ID, note.App.TenantID, note.App.ProjectID, note.App.Slug, note.ManifestID, note.Version,
		string(note.Condition),
		string(note.Kind), string(lifecycle.GapOpen), note.Title, note.Description, evidence, note.InstanceID,
		by.Kind, by.ID, by.Name, t.Now)
	if err != nil {
		return nil, fmt.Errorf("write a gap: %w", err)
	}
	if row == nil {
		return nil, nil
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: raising, Key: note.Key, Object: row.object(), ObjectID: row.ID,
		After: map[string]any{"app": row.AppSlug, "version": row.Version, "condition": row.Condition, "kind": row.Kind,
			"title": row.Title, "instance": row.InstanceID}})
}
