package meter

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
)

const volumeFactsSQL = `SELECT volume_id, tenant_id, project_id, at, state, size_gib, storage_class FROM volume_fact
	WHERE volume_id = ANY ($1) ORDER BY volume_id, seq`

// loadVolumes reads all that is known of volumes since a node had first proved that they exist.
func loadVolumes(ctx context.Context, t *tx.Tx, wanted []string) (map[string]subject, error) {
	found := make(map[string]*metering.Volume, len(wanted))
	out := make(map[string]subject, len(wanted))
	for _, id := range wanted {
		found[id] = &metering.Volume{ID: id}
		out[id] = found[id]
	}
	rows, err := t.Query(ctx, volumeFactsSQL, wanted)
	if err != nil {
		return nil, fmt.Errorf("read the facts of volumes: %w", err)
	}
	var id, tenant, project string
	var f metering.VolumeFact
	_, err = pgx.ForEachRow(rows, []any{&id, &tenant, &project, &f.At, (*string)(&f.State), &f.SizeGiB, &f.Class},
		func() error {
			one := found[id]
			one.TenantID, one.ProjectID, one.Facts = tenant, project, append(one.Facts, f)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("read the facts of volumes: %w", err)
	}
	return out, nil
}
