// Package pins reads what instances are pinned to, their manifests, and checks what is sent to adapters against them.
package pins

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// maxManifests bounds how many read manifests are kept; beyond, all are read again.
const maxManifests = 256

// Manifests keeps manifests as they were read: a published one never changes, and reading one takes
// longer than most operations' own work. The zero value is ready.
type Manifests struct {
	mu   sync.Mutex
	read map[ids.ID]*manifest.Manifest
}

// Of is the manifest, which its callers must not change.
func (m *Manifests) Of(ctx context.Context, pool *pgxpool.Pool, id ids.ID) (*manifest.Manifest, error) {
	m.mu.Lock()
	known := m.read[id]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var document []byte
	if err := pool.QueryRow(ctx, `SELECT document FROM manifest WHERE id = $1`, id).Scan(&document); err != nil {
		return nil, fmt.Errorf("load manifest %s: %w", id, err)
	}
	fresh, err := manifest.Stored(document)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", id, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read == nil || len(m.read) >= maxManifests {
		m.read = make(map[ids.ID]*manifest.Manifest)
	}
	m.read[id] = fresh
	return fresh, nil
}

// Unfit checks the config that an operation of the kind is to be sent with against the schema of the manifest that it
// leads to: what was accepted once is not believed twice. Nil when it fits, and for kinds that start nothing: what only
// takes away is sent whatever the config is.
func (m *Manifests) Unfit(ctx context.Context, pool *pgxpool.Pool, kind lifecycle.OperationKind, id ids.ID,
	config json.RawMessage) (*operation.Failure, error) {
	if !starts(kind) {
		return nil, nil
	}
	pinned, err := m.Of(ctx, pool, id)
	if err != nil {
		return nil, err
	}
	if len(pinned.ConfigSchema) == 0 { // as of manifests from before it was required
		return nil, nil
	}
	wrong := manifest.ValidateConfig(pinned.ConfigSchema, config)
	if len(wrong) == 0 {
		return nil, nil
	}
	return &operation.Failure{Code: string(fault.ConfigInvalid), Owner: operation.OwnerPlatform,
		Message: fmt.Sprintf("the config does not fit the schema of version %s: %s: %s", pinned.Version, wrong[0].Path,
			wrong[0].Message)}, nil
}

// starts reports whether success of an operation of the kind means that the app started something with the config.
func starts(kind lifecycle.OperationKind) bool {
	return slices.ContainsFunc(kind.Effects().Succeeded, func(told lifecycle.EventType) bool {
		switch told {
		case lifecycle.EventInstanceRunning, lifecycle.EventInstanceUpgraded, lifecycle.EventInstanceRolledBack,
			lifecycle.EventMemberAdded:
			return true
		}
		return false
	})
}
