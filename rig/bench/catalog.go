package main

import (
	"context"
	_ "embed"
	"errors"
	"math/rand/v2"

	"github.com/gpuaas/app-platform/rig/bench/dataset"
)

// The bars of the catalog: requests a second against the hand-written handler's. A page of fifty manifests is written
// by the executor, field by field, as all is that people alone look at.
const (
	catalogBar  = 0.25
	artifactBar = 0.5
)

//go:embed catalog.graphql
var catalogDocument string

//go:embed artifact.graphql
var artifactDocument string

// measureCatalog asks for a page of an app's many manifests, and for artifacts by their digest.
func measureCatalog(ctx context.Context, b *bench) (err error) {
	digests, err := b.Set.Catalog(ctx, b.Plan.Catalog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Set.ForgetCatalog(context.WithoutCancel(ctx))) }()
	err = b.query(ctx, query{name: "catalog page", document: catalogDocument, path: "/apps/%s/manifests", bar: catalogBar,
		everybody: true,
		id:        func(dataset.Caller, int) string { return dataset.CatalogApp }})
	if err != nil {
		return err
	}
	return b.query(ctx, query{name: "artifact by digest", document: artifactDocument, path: "/artifacts/%s",
		bar: artifactBar, everybody: true,
		id: func(dataset.Caller, int) string { return digests[rand.IntN(len(digests))] }})
}
