package kit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/schema"
)

// compiledApp is an app with its schemas ready for use.
type compiledApp struct {
	App
	config  *schema.Schema
	actions map[string]compiledAction
}

type compiledAction struct {
	AppAction
	input, output *schema.Schema
}

func compileApps(apps []App) (map[string]*compiledApp, error) {
	compiled := make(map[string]*compiledApp, len(apps))
	for _, app := range apps {
		if app.Slug == "" || compiled[app.Slug] != nil {
			return nil, fmt.Errorf("app %q: slug is empty or used twice", app.Slug)
		}
		one, err := compileApp(app)
		if err != nil {
			return nil, fmt.Errorf("app %q: %w", app.Slug, err)
		}
		compiled[app.Slug] = one
	}
	return compiled, nil
}

// app is what runs the app of this slug.
func (k *Kit) app(slug string) (*compiledApp, bool) {
	one, ok := k.apps[slug]
	if !ok {
		one, ok = k.apps[contract.AnyApp]
	}
	return one, ok
}

func compileApp(app App) (*compiledApp, error) {
	one := &compiledApp{App: app, actions: make(map[string]compiledAction)}
	for kind := range app.Operations {
		if !kind.Valid() {
			return nil, fmt.Errorf("operation kind %q is not one of the contract", kind)
		}
	}
	for _, c := range app.Components {
		if c.Key == "" || c.Min < 0 || c.Max < max(c.Min, 1) || c.Default < c.Min || c.Default > c.Max {
			return nil, fmt.Errorf("component %q: min <= default <= max and max >= 1 are needed", c.Key)
		}
	}
	var err error
	if one.config, err = schema.Compile(cmp.Or(string(app.ConfigSchema),
		`{"type":"object","maxProperties":0}`)); err != nil {
		return nil, fmt.Errorf("config schema: %w", err)
	}
	for _, action := range app.Actions {
		if one.actions[action.Name], err = compileAction(action); err != nil {
			return nil, fmt.Errorf("action %q: %w", action.Name, err)
		}
	}
	return one, nil
}

func compileAction(action AppAction) (compiledAction, error) {
	one := compiledAction{AppAction: action}
	if action.Name == "" || action.PermissionKey == "" || action.Do == nil || !action.Risk.Valid() {
		return one, errors.New("name, permission key, risk and function are needed")
	}
	var errIn, errOut error
	one.input, errIn = schema.Compile(string(action.InputSchema))
	one.output, errOut = schema.Compile(string(action.OutputSchema))
	return one, errors.Join(errIn, errOut)
}

// object encodes a value that must become a JSON object.
func object(value any) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("encode: not an object")
	}
	return raw, nil
}
