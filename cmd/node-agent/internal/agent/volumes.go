package agent

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/files"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/upkeep"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// openVolumes tries the node's storages; without any it keeps no volumes.
func (a *Agent) openVolumes(ctx context.Context) error {
	storages, err := volume.Parse(a.options.Storages)
	if err != nil || len(storages) == 0 {
		return err
	}
	a.volumes = volume.Open(ctx, storages, a.log)
	a.files = &files.Server{Volumes: a.volumes, Log: a.log}
	return nil
}

// keepVolumes keeps them as the platform wants.
func (a *Agent) keepVolumes(ctx context.Context) error {
	if a.upkeep == nil {
		return nil
	}
	return a.upkeep.Run(ctx)
}

// newUpkeep returns nil on a node without storage.
func (a *Agent) newUpkeep() *upkeep.Keeper {
	if a.volumes == nil {
		return nil
	}
	return upkeep.New(upkeep.Options{
		Platform: asNode{a}, Store: a.volumes, Users: a.users, Renewed: a.credentials.renewed, Log: a.log,
		News: func() { a.storageNews.Store(true) },
	})
}

// users are the members of the node that have a volume, by what is noted of each, alive or not.
func (a *Agent) users(volumeID string) (members []string) {
	for _, known := range roster.List(filepath.Join(a.options.StateDir, roster.Dir)) {
		if slices.Contains(known.Volumes, volumeID) {
			members = append(members, known.MemberID)
		}
	}
	return members
}

// stored adds the node's storages to an inventory, and reports whether it is known what the platform takes of them.
func (a *Agent) stored(inventory *gql.NodeInventoryInput) (decided bool) {
	if a.upkeep == nil {
		return true
	}
	states, decided := a.upkeep.Storages()
	for _, one := range states {
		inventory.Storage = append(inventory.Storage, gql.NodeStorageInput{
			Name: one.Name, Kind: gql.StorageKind(one.Kind), TotalBytes: float64(one.TotalBytes),
			FreeBytes: float64(one.FreeBytes), SizeEnforced: one.SizeEnforced,
			Reason: text.Head(text.Clean([]byte(one.Reason)), maxReason),
		})
	}
	return decided
}

// asNode asks the platform with the node's own credential.
type asNode struct{ agent *Agent }

// Volumes implements upkeep.Platform.
func (n asNode) Volumes(ctx context.Context, known string, wait time.Duration) (gql.NodeVolumes, error) {
	return n.agent.client.Volumes(ctx, n.agent.credentials, known, wait)
}

// ReportVolumes implements upkeep.Platform.
func (n asNode) ReportVolumes(ctx context.Context, reports []gql.VolumeReportInput) error {
	return n.agent.client.ReportVolumes(ctx, n.agent.credentials, reports)
}
