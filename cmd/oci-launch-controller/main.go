// Command oci-launch-controller is the adapter of launchable apps: images that run as they are, one container per
// member, as the runtime profile of their manifest says. Whoever publishes a manifest with artifactKind "launchable"
// and this adapter has an app, without a program of their own. Its manifest.json is the reference app, a small web
// notebook.
package main

import (
	_ "embed"
	"os"

	"github.com/gpuaas/app-platform/cmd/oci-launch-controller/internal/oci"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// build rises with the manifest's version: conformance.json and tenancy.json beside it are of this build.
const build = "1.0.0"

//go:embed manifest.json
var manifest []byte

//go:embed conformance.json
var conformed []byte

//go:embed tenancy.json
var tenancy []byte

func main() {
	os.Exit(controller.Main(controller.Spec{
		Name: "oci-launch", Manifest: manifest, Build: build, Conformance: conformed, Tenancy: tenancy,
		App: func(dir string) (adapter.App, error) { return oci.App(manifest, dir) },
	}))
}
