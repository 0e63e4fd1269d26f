// Package read holds what resolvers share when they read: loaders, which gather the ids of one response into few
// reads; what a selection wants, which is read along with an object; and the pages of the contract.
package read

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vikstrous/dataloadgen"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/artifact"
	operationblocker "github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/tariff"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/share"
	"github.com/gpuaas/app-platform/service/source"
	"github.com/gpuaas/app-platform/service/volume"
)

const (
	// batchWait is how long ids are gathered where Services.Wait is zero.
	batchWait = time.Millisecond
	// batchSize bounds the ids of one read.
	batchSize = 500
)

// Loader gathers the keys that the elements of a list need within a short wait, and reads their values at once.
type Loader[K comparable, T any] = dataloadgen.Loader[K, T]

// Services are what loaders read with.
type Services struct {
	DB              *tx.DB
	Instances       *instance.Service
	Nodes           *node.Service
	Allocations     *allocation.Service
	Catalog         *catalog.Service
	Trust           *trust.Service
	Entitlements    *entitlement.Service
	Artifacts       *artifact.Service
	ArtifactSources *source.Service
	Identity        *identity.Service
	Shares          *share.Service
	Orphans         *orphan.Service
	Blockers        *operationblocker.Service
	Volumes         *volume.Service
	// Wait is how long keys are gathered; zero means a millisecond.
	Wait time.Duration
}

// Loaders gather the keys of one response, so that a list costs one read for each kind of neighbour and not one for
// each element. They cache for as long as the response, and see what its caller sees.
type Loaders struct {
	catalogLoaders
	Instances     *Loader[ids.ID, *instance.View]
	Operations    *Loader[ids.ID, *operation.View]
	Steps         *Loader[ids.ID, []*db.OperationStep]
	Nodes         *Loader[ids.ID, *db.ComputeNode]
	Allocations   *Loader[ids.ID, *db.Allocation]
	Manifests     *Loader[ids.ID, *db.Manifest]
	Members       *Loader[ids.ID, *db.Member]
	ControlPlanes *Loader[ids.ID, *share.ControlPlane]
	Generations   *Loader[ids.ID, []*db.Generation]
	Orphans       *Loader[ids.ID, []*orphan.View]
	Held, Hourly  *Loader[ids.ID, *orphan.Money]
	VolumeUses    *Loader[ids.ID, []*volume.Use]
	VolumeCosts   *Loader[ids.ID, *tariff.Hourly]
	Offers        *Loader[ids.ID, *volume.Offer]
	ListPrices    *Loader[ids.ID, []*tariff.Hourly]

	OperationBlockers, InstanceBlockers *Loader[ids.ID, []*blocker.Blocker]

	logs, metrics atomic.Int32 // members whose logs and series are read
	tries         atomic.Int32 // endpoints that are tried
}

// maxLogs bounds the members whose logs one response reads, and those whose series: each takes a stream to a node.
const maxLogs = 8

// maxTries bounds the endpoints that one response tries: each takes streams to nodes.
const maxTries = 16

// CountTries counts an endpoint that is tried, and refuses it over the bound.
func (l *Loaders) CountTries() error {
	if l.tries.Add(1) > maxTries {
		return fault.New(fault.LimitExceeded,
			"a document may read the health of %d endpoints: read that of others by another", maxTries)
	}
	return nil
}

// CountLogs counts a member whose logs are read, and refuses it over the bound.
func (l *Loaders) CountLogs() error {
	if l.logs.Add(1) > maxLogs {
		return fault.New(fault.LimitExceeded,
			"a document may read the logs of %d members: read those of others by another", maxLogs)
	}
	return nil
}

// CountMetrics counts a member whose series is read, and refuses it over the bound.
func (l *Loaders) CountMetrics() error {
	if l.metrics.Add(1) > maxLogs {
		return fault.New(fault.LimitExceeded,
			"a document may read the series of %d members: read those of others by another", maxLogs)
	}
	return nil
}

type loadersKey struct{}

// response is what belongs to one response. Most need no loader, so loaders are created when a field first needs
// one.
type response struct {
	services Services

	mu     sync.Mutex
	made   *Loaders
	primed []*instance.Loaded // what the loaders are to be handed once they are made
}

// With returns a context with loaders for one response.
func With(ctx context.Context, s Services) context.Context {
	return context.WithValue(ctx, loadersKey{}, &response{services: s})
}

// loaders returns loaders that know nothing yet.
func (s Services) loaders() *Loaders {
	wait := cmp.Or(s.Wait, batchWait)
	return &Loaders{
		catalogLoaders: s.catalogLoaders(wait),
		Instances:      loader(wait, s.Instances.Many),
		Operations: loader(wait, func(ctx context.Context, wanted []ids.ID) (map[ids.ID]*operation.View, error) {
			return operation.Many(ctx, s.DB, wanted)
		}),
		Steps: loader(wait, func(ctx context.Context, wanted []ids.ID) (map[ids.ID][]*db.OperationStep, error) {
			return operation.Steps(ctx, s.DB, wanted)
		}),
		Nodes:             loader(wait, s.Nodes.Many),
		Allocations:       loader(wait, s.Allocations.Many),
		Manifests:         loader(wait, s.Catalog.Many),
		Members:           loader(wait, s.Instances.ManyMembers),
		ControlPlanes:     loader(wait, s.Shares.ControlPlanes),
		Generations:       loader(wait, s.Instances.Generations),
		Orphans:           loader(wait, s.Orphans.OfInstances),
		Held:              loader(wait, s.Orphans.HeldBy),
		Hourly:            loader(wait, s.Orphans.HourlyOf),
		VolumeUses:        loader(wait, s.Volumes.Uses),
		VolumeCosts:       loader(wait, s.Volumes.Hourly),
		Offers:            loader(wait, s.Volumes.Offers),
		ListPrices:        loader(wait, s.Volumes.ListPrices),
		OperationBlockers: loader(wait, s.Blockers.Operations),
		InstanceBlockers:  loader(wait, s.Blockers.Instances),
	}
}

// loader returns a loader that reads with fetch.
func loader[K comparable, T any](
	wait time.Duration, fetch func(ctx context.Context, wanted []K) (map[K]T, error),
) *Loader[K, T] {
	return dataloadgen.NewMappedLoader(fetch, dataloadgen.WithWait(wait), dataloadgen.WithBatchCapacity(batchSize))
}

// Of returns the loaders of the response that ctx belongs to.
func Of(ctx context.Context) *Loaders {
	r := ctx.Value(loadersKey{}).(*response)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == nil {
		r.made = r.services.loaders()
		for _, loaded := range r.primed {
			r.made.prime(loaded)
		}
	}
	return r.made
}

// Prime hands the neighbours that were read along with an instance to the loaders of the fields below it.
func Prime(ctx context.Context, loaded *instance.Loaded) {
	r := ctx.Value(loadersKey{}).(*response)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == nil {
		r.primed = append(r.primed, loaded)
		return
	}
	r.made.prime(loaded)
}

func (l *Loaders) prime(loaded *instance.Loaded) {
	for _, node := range loaded.Nodes {
		l.Nodes.Prime(node.ID, node)
	}
	for _, allocation := range loaded.Allocations {
		l.Allocations.Prime(allocation.ID, allocation)
	}
	if loaded.Manifest != nil {
		l.Manifests.Prime(loaded.Manifest.ID, loaded.Manifest)
	}
	last, brief := loaded.LastOperation, loaded.Brief // other fields may show what a part of an operation does not have
	if last != nil && !brief.LastOperation && (last.Loaded == nil || !brief.Steps) {
		l.Operations.Prime(last.ID, last)
	}
}

// Many loads the list that belongs to an object. It is empty when there is nothing.
func Many[T any](ctx context.Context, from *Loader[ids.ID, []T], id ids.ID) ([]T, error) {
	found, err := from.Load(ctx, id)
	if errors.Is(err, dataloadgen.ErrNotFound) || (err == nil && found == nil) {
		return []T{}, nil
	}
	return found, err
}

// Visible loads those of several objects that the caller may see.
func Visible[T any](ctx context.Context, from *Loader[ids.ID, *T], wanted []ids.ID) ([]*T, error) {
	out := make([]*T, 0, len(wanted))
	for _, id := range wanted {
		found, err := Maybe(ctx, from, &id)
		if err != nil {
			return nil, err
		}
		if found != nil {
			out = append(out, found)
		}
	}
	return out, nil
}

// Maybe loads the object that an optional reference names. It returns nil without a reference, and when the
// caller may not see the object.
func Maybe[K ~string, T any](ctx context.Context, from *Loader[K, *T], key *K) (*T, error) {
	if key == nil || *key == "" {
		return nil, nil
	}
	found, err := from.Load(ctx, *key)
	if errors.Is(err, dataloadgen.ErrNotFound) {
		return nil, nil
	}
	return found, err
}
