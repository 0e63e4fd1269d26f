// Package system holds the bounds of system apps: those that the platform's operator runs for the platform, in a tenant
// of its own.
package system

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// OwnSQL reads the id of the platform's own tenant; NULL until it exists.
const OwnSQL = `SELECT platform.own_tenant()`

// Runs returns why an app may not run in a tenant: FAILED_PRECONDITION at the path for a system app and every tenant
// but the platform's own. Tenants do not see such an app; the platform's staff does.
func Runs(ctx context.Context, t *tx.Tx, app *db.App, tenantID ids.ID, path string) error {
	if !app.System {
		return nil
	}
	var own *ids.ID
	if err := t.QueryRow(ctx, OwnSQL).Scan(&own); err != nil {
		return fmt.Errorf("find the platform's own tenant: %w", err)
	}
	return RunsIn(app, tenantID, own, path)
}

// RunsIn is Runs where the platform's own tenant is known; nil for none.
func RunsIn(app *db.App, tenantID ids.ID, own *ids.ID, path string) error {
	if !app.System || own != nil && *own == tenantID {
		return nil
	}
	return fault.New(fault.FailedPrecondition,
		"app %q is a system app: it runs in projects of the platform's own tenant "+
			"alone", app.Slug).At(path)
}
