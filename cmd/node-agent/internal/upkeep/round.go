package upkeep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// maxReports is how many volumes one report may have.
	maxReports = 1_000
	// maxMessage bounds a report's message, in bytes.
	maxMessage = 500
)

// round looks at each volume once, reports what is new, and returns whether nothing is left to try again.
func (k *Keeper) round(ctx context.Context) (done bool) {
	k.mu.Lock()
	wanted := k.wanted
	k.mu.Unlock()
	k.forget(wanted)
	var reports []gql.VolumeReportInput
	done = true
	for _, one := range wanted {
		report := k.look(ctx, one)
		if ctx.Err() != nil {
			return true
		}
		if report == nil {
			continue
		}
		report.Message = text.Head(text.Clean([]byte(report.Message)), maxMessage)
		reports = append(reports, *report)
		done = done && report.State != gql.VolumeFindingBusy
	}
	for some := range slices.Chunk(reports, maxReports) {
		if err := k.options.Platform.ReportVolumes(ctx, some); err != nil {
			k.options.Log.WarnContext(ctx, "volumes are not reported", "error", err)
			return platform.Permanent(err) // what is refused for good is tried with the next measure
		}
		for _, one := range some {
			if one.State == gql.VolumeFindingPresent {
				k.measured[one.Id] = time.Now()
			}
		}
	}
	return done
}

// forget lets go of what was known of volumes that the node does not look after any more.
func (k *Keeper) forget(wanted []gql.NodeVolume) {
	kept := map[string]bool{}
	for _, one := range wanted {
		kept[one.Id] = true
	}
	maps.DeleteFunc(k.measured, func(id string, _ time.Time) bool { return !kept[id] })
}

// look does what is due for one volume; nil when there is nothing to report.
func (k *Keeper) look(ctx context.Context, wanted gql.NodeVolume) *gql.VolumeReportInput {
	one := volume.Volume{ID: wanted.Id, Storage: wanted.Storage, SizeBytes: int64(wanted.SizeBytes)}
	if wanted.Gone {
		return k.delete(ctx, one)
	}
	if err := k.options.Store.Grow(ctx, one); err != nil {
		return busy(one, err)
	}
	if time.Since(k.measured[one.ID]) < measureEvery {
		return nil
	}
	found, err := k.options.Store.Measure(ctx, one)
	switch {
	case err != nil:
		return busy(one, err)
	case found == nil:
		return nil
	}
	return &gql.VolumeReportInput{Id: one.ID, State: gql.VolumeFindingPresent, UsedBytes: float64(found.UsedBytes),
		Message: found.Message}
}

// delete deletes a volume that no member of the node has.
func (k *Keeper) delete(ctx context.Context, one volume.Volume) *gql.VolumeReportInput {
	err := volume.ErrBusy
	if users := k.options.Users(one.ID); len(users) > 0 {
		return busy(one, fmt.Errorf("%w: member %s has it", err, users[0]))
	}
	if err = k.options.Store.Delete(ctx, one); err != nil {
		return busy(one, err)
	}
	k.options.Log.InfoContext(ctx, "volume deleted", "volume_id", one.ID, "storage", one.Storage)
	return &gql.VolumeReportInput{Id: one.ID, State: gql.VolumeFindingGone}
}

func busy(one volume.Volume, err error) *gql.VolumeReportInput {
	return &gql.VolumeReportInput{Id: one.ID, State: gql.VolumeFindingBusy, Message: err.Error()}
}
