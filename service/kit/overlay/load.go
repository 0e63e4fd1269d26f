// Package overlay reads what policy and entitlement leave of a project's choices, for every verb that must not go
// beyond it. domain/policy decides what they allow; this package reads what it decides on.
package overlay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Load reads what policy leaves of a project's choices, in one statement; without a project and a tenant it is what the
// platform's own overlay leaves. Until the transaction ends no other writes an overlay of these levels: call it before
// a project or anything below it is locked.
func Load(ctx context.Context, t *tx.Tx, tenantID, projectID ids.ID) (*policy.Effective, error) {
	rows, err := t.Query(ctx, `SELECT overlay_id, overlay_scope, overlay_document FROM platform.policy_of($1, $2)`,
		tenantID, projectID)
	if err != nil {
		return nil, fmt.Errorf("load the policy of %s: %w", projectID, err)
	}
	levels, err := pgx.CollectRows(rows, Level)
	if err != nil {
		return nil, fmt.Errorf("load the policy of %s: %w", projectID, err)
	}
	return policy.Merge(levels...), nil
}

// Level scans an overlay's id, scope and document, at most 64 KiB of it.
func Level(row pgx.CollectableRow) (policy.Level, error) {
	var id ids.ID
	var scope lifecycle.PolicyScope
	var document []byte
	if err := row.Scan((*string)(&id), (*string)(&scope), &document); err != nil {
		return policy.Level{}, err
	}
	return LevelOf(id, scope, document)
}

// LevelOf reads a stored overlay.
func LevelOf(id ids.ID, scope lifecycle.PolicyScope, document []byte) (policy.Level, error) {
	parsed, err := policy.Parse(scope, document)
	if err != nil {
		// ours to mend, and no fault of the caller's input
		return policy.Level{}, fmt.Errorf("read overlay %s: %s", id, err)
	}
	return policy.Level{Scope: scope, OverlayID: &id, Document: parsed}, nil
}

// Levels is the overlays of a project for a pipelined read, widest first; policy.Merge takes them.
func Levels(into *[]policy.Level, projectID ids.ID) tx.Query {
	return tx.Rows(into, Level, `SELECT id, scope, document FROM policy_overlay
		WHERE superseded_at IS NULL AND (tenant_id IS NULL OR project_id = $1
			OR (project_id IS NULL AND tenant_id = (SELECT tenant_id FROM project WHERE id = $1)))
		ORDER BY project_id IS NOT NULL, tenant_id IS NOT NULL`, projectID)
}

// Lock locks one level, by the id of its project or tenant, empty for the platform's: alone to write what holds
// there, or along with all who rest on it.
func Lock(ctx context.Context, t *tx.Tx, level ids.ID, alone bool) error {
	if _, err := t.Exec(ctx, `SELECT platform.policy_lock($1, $2)`, level, alone); err != nil {
		return fmt.Errorf("lock the policy of %s: %w", level, err)
	}
	return nil
}
