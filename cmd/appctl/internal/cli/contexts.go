package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
)

func (t *tool) contextCommand() *cobra.Command {
	return group("context", "Named servers with credentials and default projects",
		t.command("list", "List the contexts", cobra.NoArgs, func(context.Context, []string) error { return t.listContexts() }),
		t.command("use NAME", "Make a context the current one", cobra.ExactArgs(1),
			func(_ context.Context, args []string) error { return t.useContext(args[0]) }),
		t.command("delete NAME", "Forget a context and its credential", cobra.ExactArgs(1),
			func(_ context.Context, args []string) error { return t.deleteContext(args[0]) }),
	)
}

// contextRow is a context without its credential.
type contextRow struct {
	Name     string `json:"name"`
	Current  bool   `json:"current"`
	Server   string `json:"server"`
	Project  string `json:"project"`
	LoggedIn bool   `json:"loggedIn"`
}

func (t *tool) listContexts() error {
	file, current, err := t.Config()
	if err != nil {
		return err
	}
	rows, names := []contextRow{}, []string{}
	for name, known := range file.Contexts {
		rows = append(rows, contextRow{name, name == current, known.Server, known.Project, known.Token != ""})
		names = append(names, name)
	}
	slices.Sort(names)
	slices.SortFunc(rows, func(a, b contextRow) int { return slices.Index(names, a.Name) - slices.Index(names, b.Name) })
	return t.show(view{JSON: rows, IDs: names, Page: func(p *render.Page) {
		var cells [][]string
		for _, row := range rows {
			cells = append(cells, []string{row.Name, yes(row.Current), row.Server, row.Project, yes(row.LoggedIn)})
		}
		p.Table([]string{"NAME", "CURRENT", "SERVER", "PROJECT", "LOGGED IN"}, cells)
	}})
}

// useContext makes the context current and, with --project, gives it a default project.
func (t *tool) useContext(name string) error {
	file, _, err := t.Config()
	if err != nil {
		return err
	}
	known, exists := file.Contexts[name]
	if !exists {
		return notFoundf("there is no context %q", name)
	}
	known.Project = firstOf(t.Project, known.Project)
	file.Contexts[name], file.Current = known, name
	if err := file.Save(t.Env.ConfigPath); err != nil {
		return err
	}
	return t.show(view{JSON: map[string]any{"context": name}, IDs: []string{name}, Page: func(p *render.Page) { p.Line("now using " + name) }})
}

func (t *tool) deleteContext(name string) error {
	file, _, err := t.Config()
	if err != nil {
		return err
	}
	if _, exists := file.Contexts[name]; !exists {
		return notFoundf("there is no context %q", name)
	}
	delete(file.Contexts, name)
	if file.Current == name {
		file.Current = ""
	}
	if err := file.Save(t.Env.ConfigPath); err != nil {
		return err
	}
	return t.show(view{JSON: map[string]any{"context": name}, IDs: []string{name}, Page: func(p *render.Page) { p.Line("forgot " + name) }})
}
