// Package catalog is the commands about apps and their versions: read the catalog, publish manifests, prove and
// promote them, and register the adapters that run them.
package catalog

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Commands returns the commands about apps and versions.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		command.Group("apps", "The catalog of apps", listApps(t), showApp(t), fit(t), createSandbox(t), onboarding(t)),
		command.Group("manifest", "Versions of apps: lint, publish and smoke-test them",
			lint(t), publish(t), list(t), show(t), smoke(t), Promote(t), schema(t)),
		command.Group("evidence", "Reports on which a version's promotion is based", submit(t), sign(t)),
		command.Group("canary", "Versions in a small roll-out", report(t), percent(t)),
	}
}

// Admin returns the commands of publishers and operators: apps, manifests and adapters.
func Admin(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		command.Group("app", "Apps of the catalog", createApp(t), setTerms(t), open(t)),
		command.Group("manifest", "Versions of apps", lint(t), publish(t), Promote(t)),
		command.Group("adapter", "Adapters that the platform may call", listAdapters(t), registerAdapter(t)),
		command.Group("runner", "Machines that sign reports", listRunners(t), registerRunner(t), revokeRunner(t)),
	}
}

func listApps(t *command.Tool) *cobra.Command {
	var search string
	var system bool
	cmd := command.List(t, "list", "List the catalog", appTable,
		func(ctx context.Context, _ []string, limit int) ([]gql.App, error) {
			if system {
				return lookup.SystemApps(ctx, t, limit)
			}
			return lookup.Apps(ctx, t, search, limit)
		})
	cmd.Flags().StringVar(&search, "search", "", "only apps whose slug or name contains this")
	cmd.Flags().BoolVar(&system, "system", false, "only the apps that the operator runs for the platform")
	cmd.MarkFlagsMutuallyExclusive("search", "system")
	return cmd
}

var appTable = command.Table[gql.App]{
	Heading: []string{"SLUG", "NAME", "ACTIVE", "SANDBOX", "SUMMARY"},
	Row: func(app *gql.App) []string {
		version := ""
		if app.ActiveManifest != nil {
			version = app.ActiveManifest.Version
		}
		return []string{app.Slug, app.DisplayName, version, render.Yes(app.Sandbox), app.Summary}
	},
}

func showApp(t *command.Tool) *cobra.Command {
	cmd := command.Verb(t, "show SLUG", "Show an app: versions, components, actions", viewApp,
		func(ctx context.Context, args []string) (*gql.AppDetail, error) {
			answer, err := gql.GetApp(ctx, t, args[0])
			return &answer.App, err
		})
	cmd.ValidArgsFunction = lookup.CompleteApps(t)
	return cmd
}

// viewApp shows an app, the components and actions of its active version, and its versions.
func viewApp(app *gql.AppDetail) command.View {
	var versions []gql.Manifest
	for i := range app.Manifests.Edges {
		versions = append(versions, app.Manifests.Edges[i].Node)
	}
	return command.Detail(app, app.Id, func(p *render.Page) {
		p.Fields("Slug", app.Slug, "Name", app.DisplayName, "Id", app.Id, "Summary", app.Summary,
			"Family", app.PermissionFamily, "Sandbox", render.YesNo(app.Sandbox), "System", render.YesNo(app.System))
		if active := app.ActiveManifest; active != nil {
			p.Section("Components of " + active.Version)
			components.On(p, active.Components)
			p.Section("Actions of " + active.Version)
			parts.Actions.On(p, active.Actions)
		}
		p.Section("Versions")
		published.On(p, versions)
	})
}

var components = command.Table[gql.ComponentSpec]{
	Heading: []string{"KEY", "NAME", "MEMBERS", "DEFAULT"},
	Row: func(component *gql.ComponentSpec) []string {
		bounds := fmt.Sprintf("%d to %d", component.Min, component.Max)
		return []string{component.Key, component.DisplayName, bounds, strconv.Itoa(component.Default)}
	},
}

var published = command.Table[gql.Manifest]{
	Heading: []string{"VERSION", "STAGE", "MANIFEST", "PUBLISHED"},
	Row: func(manifest *gql.Manifest) []string {
		return []string{manifest.Version, string(manifest.Stage), manifest.Id, render.Time(&manifest.CreatedAt)}
	},
}

// fit returns the command that explains, before a launch, what the project could launch and where.
func fit(t *command.Tool) *cobra.Command {
	var version string
	cmd := command.Of(t, "fit SLUG",
		"Show which versions of an app the project may launch, which of its free allocations fit, and why not",
		t.InProject, viewFit,
		func(ctx context.Context, project string, args []string) (fitting, error) {
			answer, err := gql.GetLaunchOptions(ctx, t, project, args[0], version)
			return fitting{args[0], &answer.LaunchOptions}, err
		})
	cmd.Flags().StringVar(&version, "version", "",
		"version; if not given, that of a launch without one: the canary if the project is in it, else the active one")
	cmd.ValidArgsFunction = lookup.CompleteApps(t)
	return cmd
}

// A fitting is what an app can be launched from.
type fitting struct {
	slug    string
	options *gql.LaunchOptions
}

// viewFit shows every version and allocation; with --quiet only the allocations that fit.
func viewFit(f fitting) command.View {
	var ids []string
	for _, verdict := range f.options.Allocations {
		if verdict.Compatible {
			ids = append(ids, verdict.Allocation.Id)
		}
	}
	return command.View{JSON: f.options, IDs: ids, Page: func(p *render.Page) {
		p.Fields("App", f.slug, "Version", f.options.Manifest.Version, "Entitled", render.YesNo(f.options.Entitled),
			"Profile", string(f.options.Profile))
		p.Section("Versions")
		launchable.On(p, f.options.Versions)
		p.Section("Allocations")
		fits.On(p, f.options.Allocations)
	}}
}

var launchable = command.Table[gql.LaunchVersion]{
	Heading: []string{"VERSION", "STAGE", "OPEN", "DEFAULT", "WHY NOT"},
	Row: func(one *gql.LaunchVersion) []string {
		open := render.YesNo(len(one.Reasons) == 0)
		return []string{one.Version, string(one.Stage), open, render.Yes(one.Chosen), parts.Reasons(one.Reasons)}
	},
}

var fits = command.Table[gql.AllocationVerdict]{
	Heading: []string{"ID", "NAME", "FITS", "ISOLATION", "WHY NOT"},
	Row: func(verdict *gql.AllocationVerdict) []string {
		return []string{
			verdict.Allocation.Id, verdict.Allocation.Name, render.YesNo(verdict.Compatible), isolationOf(verdict),
			parts.Reasons(verdict.Reasons),
		}
	},
}

// isolationOf returns the isolation class that members would get; empty when it is not known.
func isolationOf(verdict *gql.AllocationVerdict) string {
	if verdict.IsolationClass == nil {
		return ""
	}
	return string(*verdict.IsolationClass)
}

// createApp returns the command that adds an app without a version.
func createApp(t *command.Tool) *cobra.Command {
	var input gql.CreateAppInput
	cmd := command.Verb(t, "create SLUG", "Add an app to the catalog",
		func(made gql.App) command.View {
			return command.One(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName, "Family",
				made.PermissionFamily)
		},
		func(ctx context.Context, args []string) (gql.App, error) {
			input.Slug, input.DisplayName = args[0], cmp.Or(input.DisplayName, args[0])
			answer, err := gql.CreateApp(ctx, t, input)
			return answer.CreateApp, err
		})
	cmd.Flags().StringVar(&input.DisplayName, "display-name", "", "display name; the slug if not given")
	cmd.Flags().StringVar(&input.Summary, "summary", "", "summary in one line")
	cmd.Flags().StringVar(&input.PublisherProjectId, "publisher", "",
		"id of the project that publishes it; if not given, only the platform's staff does")
	cmd.Flags().StringVar(&input.PermissionFamily, "family", "apps", "family of its permission keys: apps or scheduler")
	cmd.Flags().BoolVar(&input.System, "system", false,
		"the operator runs it for the platform: it runs in the platform's own tenant alone, and tenants do not see it")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

func listAdapters(t *command.Tool) *cobra.Command {
	return command.Pages(t, "list", "List the registered adapters", adapterTable, nil,
		func(ctx context.Context, _ string, first int, after string) (*gql.AdapterPage, error) {
			answer, err := gql.ListAdapters(ctx, t, first, after)
			return &answer.Adapters, err
		})
}

var adapterTable = command.Table[gql.Adapter]{
	Heading: []string{"ID", "NAME", "URL", "NARROW CALLS", "ACCOUNT", "LAST SEEN", "LAST ERROR"},
	Row: func(adapter *gql.Adapter) []string {
		return []string{adapter.Id, adapter.Name, adapter.Url, render.YesNo(adapter.NarrowCalls),
			adapter.ServiceAccountId, render.Time(adapter.LastSeenAt), adapter.LastError}
	},
}

func registerAdapter(t *command.Tool) *cobra.Command {
	return registering(t, "Register an adapter for all tenants, also one in a sandbox, or change its address",
		func(ctx context.Context, input gql.RegisterAdapterInput) (gql.Adapter, error) {
			answer, err := gql.RegisterAdapter(ctx, t, input)
			return answer.RegisterAdapter, err
		})
}

// registering returns a command that registers an adapter by a call.
func registering(t *command.Tool, short string,
	call func(context.Context, gql.RegisterAdapterInput) (gql.Adapter, error)) *cobra.Command {
	var file, account string
	var narrow bool
	cmd := command.Verb(t, "register NAME URL", short,
		func(made gql.Adapter) command.View {
			return command.One(made, made.Id, "Name", made.Name, "URL", made.Url,
				"Last seen", render.Time(made.LastSeenAt), "Last error", made.LastError)
		},
		func(ctx context.Context, args []string) (gql.Adapter, error) {
			input := gql.RegisterAdapterInput{Name: args[0], Url: args[1], NarrowCalls: command.Given(narrow),
				ServiceAccountId: command.Given(account)}
			if file != "" {
				text, err := os.ReadFile(file)
				if err != nil {
					return gql.Adapter{}, fmt.Errorf("--authority: %w", err)
				}
				authority := string(text)
				input.Authority = &authority
			}
			return call(ctx, input)
		})
	cmd.Flags().StringVar(&file, "authority", "",
		"PEM file with the only certificates trusted for the https address; those of the same address are kept "+
			"if not given")
	cmd.Flags().StringVar(&account, "account", "",
		"id of the service account, with adapter.act, that it uses to automate; unchanged if not given")
	cmd.Flags().BoolVar(&narrow, "narrow-calls", false,
		"limit its read-only calls to the commands that its apps' manifests name; unchanged if not given")
	return cmd
}
