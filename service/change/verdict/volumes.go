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

// seatedVolumes refuses new members of an instance whose nodes do not serve its volumes.
func (v *Verdicts) seatedVolumes(ctx context.Context, t *tx.Tx) (err error) {
	v.Bound = v.Instance.Volumes
	if err = v.LoadVolumes(ctx, t, volume.IDs(v.Bound)); err == nil {
		err = v.volumesServed()
	}
	return err
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
