// Command rke2-self-managed-controller is the adapter of the app rke2: it runs Kubernetes clusters of RKE2 in the
// members of an instance, by node tasks of the public API only. See the package comment of internal/rke2.
package main

import (
	_ "embed"
	"os"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/rke2"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// build rises with the manifest's version: conformance.json and tenancy.json beside it are of this build.
const build = "1.1.0"

//go:embed manifest.json
var manifest []byte

//go:embed conformance.json
var conformed []byte

//go:embed tenancy.json
var tenancy []byte

func main() {
	os.Exit(controller.Main(controller.Spec{
		Name: "rke2-self-managed", Manifest: manifest, Build: build, Conformance: conformed, Tenancy: tenancy,
		App: func(dir string) (adapter.App, error) { return rke2.App(manifest, dir) },
	}))
}
