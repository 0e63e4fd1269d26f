package change

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
)

// VolumeChoice is a volume that a launch chooses for a slot of the manifest.
type VolumeChoice struct {
	Slot     string
	VolumeID ids.ID
}

// ChosenVolumes returns the volumes of choices.
func ChosenVolumes(choices []VolumeChoice) []ids.ID {
	out := make([]ids.ID, len(choices))
	for i, one := range choices {
		out[i] = one.VolumeID
	}
	return out
}

// Volume is a volume as a change sees it.
type Volume struct {
	ID     ids.ID
	Name   string
	Status volume.Status
	// NodeID is where a local one is; nil before its first use.
	NodeID *ids.ID
	// Class and Kind are those of its storage class.
	Class string
	Kind  volume.Kind
}

// LoadVolumes loads volumes of the project, by id, and keeps them from being deleted until the commit. Those that are
// missing are left out.
func (f *Facts) LoadVolumes(ctx context.Context, t *tx.Tx, wanted []ids.ID) error {
	f.Volumes = make(map[ids.ID]*Volume, len(wanted))
	if len(wanted) == 0 {
		return nil
	}
	hold := ""
	if f.forUpdate {
		hold = ` FOR SHARE OF v`
	}
	found, err := t.Query(ctx, `SELECT v.id, v.name, v.status, v.node_id, c.name, c.kind FROM volume v
		JOIN storage_class c ON c.id = v.storage_class_id WHERE v.id = ANY ($1) AND v.project_id = $2
		ORDER BY v.id`+hold,
		wanted, f.Instance.ProjectID)
	if err != nil {
		return fmt.Errorf("load volumes of %s: %w", f.Instance.ProjectID, err)
	}
	list, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (*Volume, error) {
		v := &Volume{}
		return v, row.Scan(&v.ID, &v.Name, (*string)(&v.Status), &v.NodeID, &v.Class, (*string)(&v.Kind))
	})
	if err != nil {
		return fmt.Errorf("load volumes of %s: %w", f.Instance.ProjectID, err)
	}
	for _, one := range list {
		f.Volumes[one.ID] = one
	}
	return nil
}
