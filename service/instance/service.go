package instance

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/contract"
)

// Service holds the verbs on instances.
type Service struct {
	// DB is the database.
	DB *tx.DB
	// Calls reach adapters, for actions and plans; nil for an API that only reads and launches.
	Calls *contract.Calls
}

// Bounds of what callers write.
const (
	maxAllocations = 256
	maxReason      = 1_000
	callTimeout    = 30 * time.Second // an action's answer
	storeTimeout   = 10 * time.Second // remembering it
)

// namePattern is what a name may be: it becomes part of host and file names.
var namePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,38}[a-z0-9]$`)

// object is what authorisation looks at in an instance.
func object(row *db.Instance) authz.Object {
	return authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID, InstanceID: row.ID,
		AppSlug: row.AppSlug}
}

// manifestOf parses the manifest that an instance was launched from.
func manifestOf(ctx context.Context, t *tx.Tx, row *db.Instance) (*manifest.Manifest, error) {
	stored, err := t.Manifest.Get(ctx, row.ManifestID)
	if err != nil {
		return nil, fmt.Errorf("load manifest %s: %w", row.ManifestID, err)
	}
	return manifest.Parse(stored.Document)
}

// checkReason refuses a reason that is too long.
func checkReason(reason string) error {
	if len(reason) > maxReason {
		return fault.New(fault.InvalidArgument, "the reason may have at most %d bytes", maxReason).At("input.reason")
	}
	return nil
}
