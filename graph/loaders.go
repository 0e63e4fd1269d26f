package graph

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/vikstrous/dataloadgen"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/share"
)

const (
	loaderWait  = time.Millisecond // Resolver.BatchWait where nothing is said
	loaderBatch = 500              // ids a batch
)

// loaders gather the ids that the elements of a list ask for, so that a list costs one read a
// neighbour and not one an element. They live as long as a request and see what its caller sees.
type loaders struct {
	instances   *dataloadgen.Loader[ids.ID, *instance.View]
	operations  *dataloadgen.Loader[ids.ID, *operation.View]
	steps       *dataloadgen.Loader[ids.ID, []*db.OperationStep]
	nodes       *dataloadgen.Loader[ids.ID, *db.ComputeNode]
	allocations *dataloadgen.Loader[ids.ID, *db.Allocation]
	manifests   *dataloadgen.Loader[ids.ID, *db.Manifest]
	members     *dataloadgen.Loader[ids.ID, *db.Member]
	catalog     *catalogLoaders

	controlPlanes                       *dataloadgen.Loader[ids.ID, *share.ControlPlane]
	generations                         *dataloadgen.Loader[ids.ID, []*db.Generation]
	orphans                             *dataloadgen.Loader[ids.ID, []*orphan.View]
	operationBlockers, instanceBlockers *dataloadgen.Loader[ids.ID, []*blocker.Blocker]
}

type loadersKey struct{}

// WithLoaders gives a request its loaders.
func (r *Resolver) WithLoaders(ctx context.Context) context.Context {
	wait := cmp.Or(r.BatchWait, loaderWait)
	return context.WithValue(ctx, loadersKey{}, &loaders{
		instances: loader(wait, r.Instances.Many), nodes: loader(wait, r.Nodes.Many), allocations: loader(wait, r.Allocations.Many),
		operations: loader(wait, func(ctx context.Context, wanted []ids.ID) (map[ids.ID]*operation.View, error) {
			return operation.Many(ctx, r.DB, wanted)
		}),
		steps: loader(wait, func(ctx context.Context, wanted []ids.ID) (map[ids.ID][]*db.OperationStep, error) {
			return operation.Steps(ctx, r.DB, wanted)
		}),
		manifests:     loader(wait, r.Catalog.Many),
		members:       loader(wait, r.Instances.ManyMembers),
		catalog:       r.catalogLoaders(wait),
		controlPlanes: loader(wait, r.Shares.ControlPlanes),
		generations:   loader(wait, r.Instances.Generations), orphans: loader(wait, r.Orphans.OfInstances),
		operationBlockers: loader(wait, r.Blockers.Operations), instanceBlockers: loader(wait, r.Blockers.Instances),
	})
}

func loader[K comparable, T any](wait time.Duration, fetch func(ctx context.Context, wanted []K) (map[K]T, error)) *dataloadgen.Loader[K, T] {
	return dataloadgen.NewMappedLoader(fetch, dataloadgen.WithWait(wait), dataloadgen.WithBatchCapacity(loaderBatch))
}

func loadersOf(ctx context.Context) *loaders { return ctx.Value(loadersKey{}).(*loaders) }

// many loads what belongs to an object; nothing is an empty list.
func many[T any](ctx context.Context, from *dataloadgen.Loader[ids.ID, []T], id ids.ID) ([]T, error) {
	found, err := from.Load(ctx, id)
	if errors.Is(err, dataloadgen.ErrNotFound) || (err == nil && found == nil) {
		return []T{}, nil
	}
	return found, err
}

// all loads several objects; those that are hidden are left out.
func all[T any](ctx context.Context, from *dataloadgen.Loader[ids.ID, *T], wanted []ids.ID) ([]*T, error) {
	out := make([]*T, 0, len(wanted))
	for _, id := range wanted {
		found, err := maybe(ctx, from, &id)
		if err != nil {
			return nil, err
		}
		if found != nil {
			out = append(out, found)
		}
	}
	return out, nil
}

// maybe loads the object an optional reference names; nil when there is none or it is hidden.
func maybe[T any](ctx context.Context, from *dataloadgen.Loader[ids.ID, *T], id *ids.ID) (*T, error) {
	if id == nil || *id == "" {
		return nil, nil
	}
	found, err := from.Load(ctx, *id)
	if errors.Is(err, dataloadgen.ErrNotFound) {
		return nil, nil
	}
	return found, err
}
