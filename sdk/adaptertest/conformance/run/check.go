package run

import (
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// maxNodes is the largest number of nodes that members are spread over.
const maxNodes = 16

// Check returns what is wrong with the options, before anything is started. It wraps [ErrOptions].
func (o Options) Check() error {
	switch {
	case o.Name == "":
		return optionf("name: the adapter's registered name is missing")
	case o.URL == "" && o.Launcher == nil:
		return optionf("url: the adapter's address is missing")
	case o.Launcher == nil && o.Listen == "":
		return optionf(
			"listen: an adapter that the suite does not start must know the issuer: give an address with a port",
		)
	case o.Nodes < 0 || o.Nodes > maxNodes:
		return optionf("nodes: must be 1 to %d", maxNodes)
	case len(o.Config) > 0 && !json.Valid(o.Config):
		return optionf("config: is not JSON")
	}
	if o.Namespaces {
		if err := sandbox.Enclosable(); err != nil {
			return optionf("namespaces: %v", err)
		}
	}
	return o.checkApp()
}

// checkApp returns what is wrong with the options about the app.
func (o Options) checkApp() error {
	for key, count := range o.Members {
		if count < 0 || count > 64 {
			return optionf("members: %s=%d must be 0 to 64", key, count)
		}
	}
	if o.Manifest != nil && !json.Valid(o.Manifest) {
		return optionf("manifest: is not JSON")
	}
	if w := o.Work; w != nil && ((w.Action == "") == (w.Command == "") || w.Action != "" && !json.Valid(w.Input)) {
		return optionf("work: needs either an action with its input as JSON or a command")
	}
	for name, input := range o.Inputs {
		if !json.Valid(input) {
			return optionf("inputs: the input of %s is not JSON", name)
		}
	}
	return nil
}

func optionf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
}
