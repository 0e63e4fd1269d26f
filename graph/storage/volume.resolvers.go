package storage

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/volume"
)

// CreateStorageClass resolves the mutation createStorageClass.
func (r Changes) CreateStorageClass(ctx context.Context, input volume.CreateClassInput) (*volume.Class, error) {
	return r.volumes.CreateClass(ctx, input)
}

// UpdateStorageClass resolves the mutation updateStorageClass.
func (r Changes) UpdateStorageClass(ctx context.Context, input volume.UpdateClassInput) (*volume.Class, error) {
	return r.volumes.UpdateClass(ctx, input)
}

// CreateVolume resolves the mutation createVolume.
func (r Changes) CreateVolume(ctx context.Context, input volume.CreateInput) (*volume.Volume, error) {
	return r.volumes.Create(ctx, input)
}

// ResizeVolume resolves the mutation resizeVolume.
func (r Changes) ResizeVolume(ctx context.Context, input volume.ResizeInput) (*volume.Volume, error) {
	return r.volumes.Resize(ctx, input)
}

// DeleteVolume resolves the mutation deleteVolume.
func (r Changes) DeleteVolume(ctx context.Context, volumeID ids.ID, reason string) (*volume.Volume, error) {
	return r.volumes.Delete(ctx, volumeID, reason)
}

// StorageClasses resolves the query storageClasses.
func (r Views) StorageClasses(ctx context.Context) ([]*volume.Class, error) {
	return r.volumes.Classes(ctx)
}

// PlanCreateVolume resolves the query planCreateVolume.
func (r Views) PlanCreateVolume(ctx context.Context, input volume.CreateInput) (*volume.Plan, error) {
	return r.volumes.PlanCreate(ctx, input)
}

// PlanResizeVolume resolves the query planResizeVolume.
func (r Views) PlanResizeVolume(ctx context.Context, input volume.ResizeInput) (*volume.Plan, error) {
	return r.volumes.PlanResize(ctx, input)
}

// One resolves the query volume.
func (r Views) One(ctx context.Context, id ids.ID) (*volume.Volume, error) {
	return r.volumes.Get(ctx, id)
}

// Volumes resolves the query volumes.
func (r Views) Volumes(ctx context.Context, projectID ids.ID, deleted bool, first *int,
	after *string) (*model.VolumeConnection, error) {
	return read.ListOf[model.VolumeConnection](ctx, volume.Filter{ProjectID: projectID, Deleted: deleted}, first, after,
		r.volumes.List)
}

// Offer resolves the field offer.
func (Classes) Offer(ctx context.Context, obj *volume.Class) (*volume.Offer, error) {
	return read.Maybe(ctx, read.Of(ctx).Offers, &obj.ID)
}

// HourlyListPrices resolves the field hourlyListPrices.
func (Classes) HourlyListPrices(ctx context.Context, obj *volume.Class) ([]*orphan.Money, error) {
	prices, err := read.Many(ctx, read.Of(ctx).ListPrices, obj.ID)
	out := make([]*orphan.Money, len(prices))
	for i, price := range prices {
		out[i] = read.Hourly(price)
	}
	return out, err
}

// TotalBytes resolves the field totalBytes.
func (Offers) TotalBytes(_ context.Context, obj *volume.Offer) (float64, error) {
	return float64(obj.TotalBytes), nil
}

// FreeBytes resolves the field freeBytes.
func (Offers) FreeBytes(_ context.Context, obj *volume.Offer) (float64, error) {
	return float64(obj.FreeBytes), nil
}

// UsedBytes resolves the field usedBytes.
func (Volumes) UsedBytes(_ context.Context, obj *volume.Volume) (*float64, error) {
	if obj.UsedBytes == nil {
		return nil, nil
	}
	used := float64(*obj.UsedBytes)
	return &used, nil
}

// Node resolves the field node.
func (Volumes) Node(ctx context.Context, obj *volume.Volume) (*db.ComputeNode, error) {
	return read.Maybe(ctx, read.Of(ctx).Nodes, obj.NodeID)
}

// HourlyCost resolves the field hourlyCost.
func (Volumes) HourlyCost(ctx context.Context, obj *volume.Volume) (*orphan.Money, error) {
	cost, err := read.Maybe(ctx, read.Of(ctx).VolumeCosts, &obj.ID)
	return read.Hourly(cost), err
}

// HourlyBefore resolves the field hourlyBefore.
func (Plans) HourlyBefore(_ context.Context, obj *volume.Plan) (*orphan.Money, error) {
	return read.Hourly(obj.Before), nil
}

// HourlyAfter resolves the field hourlyAfter.
func (Plans) HourlyAfter(_ context.Context, obj *volume.Plan) (*orphan.Money, error) {
	return read.Hourly(obj.After), nil
}

// Users resolves the field users.
func (Volumes) Users(ctx context.Context, obj *volume.Volume) ([]*volume.Use, error) {
	return read.Many(ctx, read.Of(ctx).VolumeUses, obj.ID)
}
