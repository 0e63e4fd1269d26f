package verdict

import (
	"context"

	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
)

// launchVolumes binds the volumes that a launch names to the slots of its manifest.
func (v *Verdicts) launchVolumes(ctx context.Context, t *tx.Tx) (err error) {
	if err = v.LoadVolumes(ctx, t, change.ChosenVolumes(v.Launch.Volumes)); err == nil {
		v.Bound, err = change.BindVolumes(v.Next, v.Launch.Volumes, v.Volumes)
	}
	return err
}

// seatedVolumes reads the volumes of an instance that members come to.
func (v *Verdicts) seatedVolumes(ctx context.Context, t *tx.Tx) error {
	v.Bound = v.Instance.Volumes
	return v.LoadVolumes(ctx, t, volume.IDs(v.Bound))
}

// settle notes where local volumes come to be by the allocations that a launch names, before others are placed.
func (v *Verdicts) settle() {
	for _, one := range v.Launch.Components {
		for _, id := range one.AllocationIDs {
			if a := v.Allocations[id]; a != nil && a.NodeID != nil {
				v.homes.Settle(volume.Of(v.Bound, one.Key), v.Volumes, *a.NodeID)
			}
		}
	}
}

// volumesServed refuses seats on nodes that do not serve the volumes which the member would have.
func (v *Verdicts) volumesServed() error {
	homes, path := change.Homes{}, func() string { return v.located("allocations", v.Afterwards()) }
	for _, seat := range v.Seats {
		of, node := volume.Of(v.Bound, seat.ComponentKey), v.nodeOf(seat.Allocation)
		if err := homes.Serve(of, v.Volumes, node, path); err != nil {
			return err
		}
	}
	return nil
}
