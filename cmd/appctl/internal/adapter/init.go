package adapter

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/scaffold"
)

// skeleton is what init wrote.
type skeleton struct {
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
}

// initialise returns the command that writes the skeleton of an adapter. It needs no platform.
func initialise(t *command.Tool) *cobra.Command {
	var o scaffold.Options
	cmd := command.Verb(t, "init NAME", "Write the skeleton of an adapter that runs and meets the contract",
		func(made skeleton) command.View {
			text := fmt.Sprintf("%d files are in %s; its README.md says how to run them, ci.sh runs its tests and "+
				"the check",
				len(made.Files), made.Dir)
			return command.Line(made, text, made.Dir)
		},
		func(_ context.Context, args []string) (skeleton, error) {
			o.Name = args[0]
			o.Dir = cmp.Or(o.Dir, o.Name)
			written, err := scaffold.Write(o)
			if err != nil {
				return skeleton{}, &client.Error{Code: client.CodeInvalidArgument, Message: err.Error(), Err: err}
			}
			return skeleton{Dir: o.Dir, Files: written}, nil
		})
	cmd.Long = `Write a folder with an adapter for a small app of that name, its manifest, tests, and ci.sh, a recipe
for CI that runs the tests and appctl adapter check. Change the app from there. In Python and TypeScript it includes
the kit.`
	cmd.Example = `  appctl adapter init --lang python pulse
  appctl adapter init --lang go --sdk ../app-platform pulse`
	flags := cmd.Flags()
	flags.StringVar(&o.Language, "lang", "", "language: "+strings.Join(scaffold.Languages(), ", "))
	flags.StringVar(&o.Dir, "dir", "", "folder to create; named like the adapter if not given")
	flags.StringVar(&o.SDK, "sdk", "", "folder with the SDK's sources, for Go; without it go.mod names the module")
	command.Need(cmd, "lang")
	return cmd
}
