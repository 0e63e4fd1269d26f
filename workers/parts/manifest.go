package parts

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
)

// maxManifests bounds how many read manifests are kept; beyond, all are read anew.
const maxManifests = 256

// manifests keeps manifests as they were read: a published one never changes, and reading one takes
// longer than most operations' own work.
type manifests struct {
	mu   sync.Mutex
	read map[ids.ID]*manifest.Manifest
}

// of is the manifest, which its callers must not change.
func (m *manifests) of(ctx context.Context, pool *pgxpool.Pool, id ids.ID) (*manifest.Manifest, error) {
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
