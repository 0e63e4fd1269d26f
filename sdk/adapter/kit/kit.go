package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/operation"
	"github.com/gpuaas/app-platform/sdk/adapter/sign"
)

// Config is the configuration of a kit.
type Config struct {
	// Name is the adapter's registered name: the audience of every request to it.
	Name string
	// Build identifies the running build.
	Build string
	// Apps are the apps it runs; at least one.
	Apps []App
	// StateDir is the folder of the journal. It belongs to this kit alone, and must outlive restarts.
	StateDir string
	// Issuer is the platform's URL, compared exactly with a request's issuer.
	Issuer string
	// Keys are the platform's public keys, usually a [sign.KeySet].
	Keys sign.KeySource
	// GraphQLURL is the public API, for observations and usage; empty means Issuer + "/graphql".
	GraphQLURL string
	// Log is the structured log; nil discards.
	Log *slog.Logger
	// MaxRunning bounds operations run at once, 64 when 0; more are accepted and wait.
	MaxRunning int
	// Retention is how long ended operations are remembered, 30 days when 0. The newest one of
	// an instance that still exists is kept for as long.
	Retention time.Duration
}

// Kit serves the adapter contract for some apps: it verifies, journals, runs and reports. Make
// it with [New], Start it, serve its Handler, and Stop it.
type Kit struct {
	config   Config
	apps     map[string]*compiledApp
	verifier *sign.Verifier
	engine   *operation.Engine

	mu      sync.Mutex
	actions actionKeys
}

// New checks the configuration and returns a kit that does nothing yet.
func New(config Config) (*Kit, error) {
	switch {
	case config.Name == "":
		return nil, errors.New("adapter kit: name must not be empty")
	case config.StateDir == "":
		return nil, errors.New("adapter kit: state directory must not be empty")
	case config.Issuer == "" || config.Keys == nil:
		return nil, errors.New("adapter kit: issuer and keys must be set")
	case len(config.Apps) == 0:
		return nil, errors.New("adapter kit: at least one app is needed")
	}
	config.GraphQLURL = cmp.Or(config.GraphQLURL, config.Issuer+"/graphql")
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	apps, err := compileApps(config.Apps)
	if err != nil {
		return nil, fmt.Errorf("adapter kit: %w", err)
	}
	k := &Kit{
		config: config, apps: apps,
		verifier: &sign.Verifier{Issuer: config.Issuer, Audience: config.Name, Keys: config.Keys},
	}
	k.engine = operation.New(operation.Options{
		StateDir: config.StateDir, Log: config.Log, MaxRunning: config.MaxRunning, Retention: config.Retention,
		Find: k.operation,
	})
	return k, nil
}

// operation returns the author's function for an operation kind of an app; nil when the app has no such function.
func (k *Kit) operation(slug string, kind contract.Kind) operation.Func {
	app, ok := k.app(slug)
	if !ok {
		return nil
	}
	return app.Operations[kind]
}

// Describe returns the adapter's description of itself.
func (k *Kit) Describe() contract.Description {
	description := contract.Description{ContractVersions: contract.ContractVersions(), Name: k.config.Name,
		Build: k.config.Build, Apps: []contract.AppInfo{}}
	for _, app := range k.config.Apps {
		description.Apps = append(description.Apps, app.Info())
	}
	return description
}

// Start opens the journal and resumes every operation that has not ended. It fails when another process uses the same
// state directory. Ending ctx does not stop the kit; Stop does.
func (k *Kit) Start(ctx context.Context) error { return k.engine.Start(ctx) }

// Stop ends the runs, which resume at the next start, and closes the journal. Safe to call twice.
func (k *Kit) Stop() { k.engine.Stop() }
