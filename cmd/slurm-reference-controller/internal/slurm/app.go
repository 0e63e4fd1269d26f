package slurm

import (
	"maps"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/accounts"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/backup"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/calls"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/login"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/mend"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/operation"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// App returns the app that the manifest describes. The directory keeps its master key and its usage records; the mender
// receives the workers that Slurm has given up.
func App(manifest []byte, dir string, mender *mend.Mender) (adapter.App, error) {
	keys, err := daemons.OpenKeyring(dir)
	if err != nil {
		return adapter.App{}, err
	}
	turns := operation.NewTurns()
	actions := calls.Actions(people.NewDesk(), login.NewKeeper())
	maps.Copy(actions, backup.Actions(turns))
	app, err := adapter.FromManifest(manifest, actions)
	if err != nil {
		return adapter.App{}, err
	}
	meter, err := accounts.NewMeter(dir)
	if err != nil {
		return adapter.App{}, err
	}
	app.Usage = meter.Page
	app.Operations = operation.All(keys, meter, turns)
	app.Check = check
	app.Plan = calls.Plan
	app.Leaving = calls.Leaving
	app.Observe = calls.Observe(mender.Tell)
	return app, nil
}
