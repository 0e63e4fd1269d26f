package kit

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

// FromManifest begins an [App] from a manifest document, so that the adapter describes itself in
// the very words of the manifest it is published with. Every action of the manifest needs its
// function in actions, and every function its action.
func FromManifest(document []byte, actions map[string]ActionFunc) (App, error) {
	var manifest contract.ManifestApp
	if err := json.Unmarshal(document, &manifest); err != nil {
		return App{}, fmt.Errorf("manifest: %w", err)
	}
	app := App{
		Slug: manifest.App, Components: manifest.Components, ConfigSchema: manifest.ConfigSchema,
		UsageDimensions: manifest.UsageDimensions,
	}
	for _, action := range manifest.Actions {
		do, ok := actions[action.Name]
		if !ok {
			return App{}, fmt.Errorf("manifest: action %q has no function", action.Name)
		}
		app.Actions = append(app.Actions, AppAction{Action: action, Do: do})
	}
	if len(app.Actions) != len(actions) {
		return App{}, fmt.Errorf("manifest: %d actions, but %d functions", len(app.Actions), len(actions))
	}
	return app, nil
}
