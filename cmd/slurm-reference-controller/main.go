// Command slurm-reference-controller is the adapter of the app slurm: it launches real Slurm (slurmctld,
// slurmd, slurmdbd and munge as packaged by Debian) in the sandboxes of an instance's members, by node tasks
// of the public API only. See the package comment of internal/slurm for how a cluster is laid out.
package main

import (
	_ "embed"
	"os"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/mend"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// build rises with the manifest's version: conformance.json and tenancy.json beside it are of this build.
const build = "1.6.0"

//go:embed manifest.json
var manifest []byte

//go:embed conformance.json
var conformed []byte

//go:embed tenancy.json
var tenancy []byte

func main() {
	mender := mend.New()
	os.Exit(controller.Main(controller.Spec{
		Name: "slurm-reference", Manifest: manifest, Build: build, Conformance: conformed, Tenancy: tenancy,
		App:      func(dir string) (adapter.App, error) { return slurm.App(manifest, dir, mender) },
		Automate: mender.Run,
	}))
}
