package login

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/settings"
)

func contexts(t *command.Tool) *cobra.Command {
	return command.Group("context", "Named servers with credentials and default projects",
		listContexts(t), useContext(t), deleteContext(t))
}

// row is a context without its credential.
type row struct {
	Name     string `json:"name"`
	Current  bool   `json:"current"`
	Server   string `json:"server"`
	Project  string `json:"project"`
	LoggedIn bool   `json:"loggedIn"`
}

var table = command.Table[row]{
	Heading: []string{"NAME", "CURRENT", "SERVER", "PROJECT", "LOGGED IN"},
	Row: func(r *row) []string {
		return []string{r.Name, render.Yes(r.Current), r.Server, r.Project, render.Yes(r.LoggedIn)}
	},
}

// listContexts returns the command that lists the contexts by name, without their credentials.
func listContexts(t *command.Tool) *cobra.Command {
	return command.Verb(t, "list", "List the contexts", table.View, func(context.Context, []string) ([]row, error) {
		file, current, err := t.Config()
		if err != nil {
			return nil, err
		}
		rows := []row{}
		for _, name := range slices.Sorted(maps.Keys(file.Contexts)) {
			known := file.Contexts[name]
			rows = append(rows, row{name, name == current, known.Server, known.Project, known.Token != ""})
		}
		return rows, nil
	})
}

// change returns a command that changes the context that its argument names, and saves the configuration.
func change(
	t *command.Tool, use, short, done string, edit func(file *settings.File, name string),
) *cobra.Command {
	view := func(name string) command.View {
		return command.Line(map[string]any{"context": name}, done+" "+name, name)
	}
	return command.Verb(t, use, short, view, func(_ context.Context, args []string) (string, error) {
		file, _, err := t.Config()
		if err != nil {
			return "", err
		}
		name := args[0]
		if _, exists := file.Contexts[name]; !exists {
			return "", command.NotFoundf("there is no context %q", name)
		}
		edit(file, name)
		return name, file.Save(t.Env.ConfigPath)
	})
}

// useContext makes a context current and, with --project, gives it a default project.
func useContext(t *command.Tool) *cobra.Command {
	return change(t, "use NAME", "Make a context the current one", "now using", func(file *settings.File, name string) {
		known := file.Contexts[name]
		known.Project = cmp.Or(t.Project, known.Project)
		file.Contexts[name], file.Current = known, name
	})
}

func deleteContext(t *command.Tool) *cobra.Command {
	return change(t, "delete NAME", "Forget a context and its credential", "forgot",
		func(file *settings.File, name string) {
			delete(file.Contexts, name)
			if file.Current == name {
				file.Current = ""
			}
		})
}
