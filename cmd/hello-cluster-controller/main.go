// Command hello-cluster-controller is the adapter of hello-cluster, the smallest app that has every part of an app:
// members that are plain processes and do work, a config, actions, every operation on an instance and its members,
// plans, probes, and a teardown that is proved. On a node it needs only a POSIX shell, and no root. Read it before you
// write your own.
package main

import (
	_ "embed"
	"os"

	"github.com/gpuaas/app-platform/cmd/hello-cluster-controller/internal/hello"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// build rises with the manifest's version: conformance.json and tenancy.json are the reports of a run of this build.
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
