// Command hello-cluster-controller is the adapter of hello-cluster, the smallest app with everything
// an app has: members that are plain processes and do work, a config, actions, every operation on
// instance and members, plans, probes, honest teardown. It needs nothing on the nodes but a POSIX
// shell, and works on nodes without root. Read it before you write your own.
package main

import (
	_ "embed"
	"os"

	"github.com/gpuaas/app-platform/cmd/hello-cluster-controller/internal/hello"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// build rises with the manifest's version: conformance.json and tenancy.json beside it are of this build.
const build = "1.3.0"

//go:embed manifest.json
var manifest []byte

//go:embed conformance.json
var conformed []byte

//go:embed tenancy.json
var tenancy []byte

func main() {
	os.Exit(controller.Main(controller.Spec{
		Name: "hello-cluster", Manifest: manifest, Build: build, Conformance: conformed, Tenancy: tenancy,
		App: func(dir string) (adapter.App, error) { return hello.App(manifest, dir) },
	}))
}
