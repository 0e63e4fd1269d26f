package queries

import (
	"context"
	_ "embed"
	"errors"
	"math/rand/v2"

	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
)

// The bars of the catalog: requests a second against the hand-written handler's.
const (
	catalogBar  = 0.6
	artifactBar = 0.5
)

//go:embed catalog.graphql
var catalogDocument string

//go:embed artifact.graphql
var artifactDocument string

// measureCatalog reads a page of an app's many manifests, and artifacts by their digest.
func measureCatalog(ctx context.Context, with *kit.Bench) (err error) {
	b := bench{with}
	digests, err := b.Set.Catalog(ctx, b.Plan.Catalog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Set.ForgetCatalog(context.WithoutCancel(ctx))) }()
	callers, err := b.Set.Callers(ctx, b.Plan.Callers)
	if err != nil {
		return err
	}
	someone := func(id string) target { return target{who: callers[rand.IntN(len(callers))], id: id} }
	err = b.query(ctx, query{name: "catalog page", document: catalogDocument, path: "/apps/%s/manifests",
		bar: catalogBar, everybody: true, pick: func() target { return someone(dataset.CatalogApp) }})
	if err != nil {
		return err
	}
	return b.query(ctx, query{name: "artifact by digest", document: artifactDocument, path: "/artifacts/%s",
		bar: artifactBar, everybody: true,
		pick: func() target { return someone(digests[rand.IntN(len(digests))]) }})
}
