package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) appsCommand() *cobra.Command {
	var search string
	var limit int
	list := t.command("list", "List the catalog", cobra.NoArgs,
		func(ctx context.Context, _ []string) error { return t.listApps(ctx, search, limit) })
	list.Flags().StringVar(&search, "search", "", "only apps whose slug or name contains this")
	limitFlag(list, &limit)
	show := t.command("show SLUG", "Show an app: versions, components, actions", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error { return t.showApp(ctx, args[0]) })
	show.ValidArgsFunction = t.completeApps
	var version string
	fit := t.command("fit SLUG", "Show which versions of an app the project may launch, which of its free allocations fit, and why not", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error { return t.fitApp(ctx, args[0], version) })
	fit.Flags().StringVar(&version, "version", "", "version; that of a launch without one if not given: the canary that has chosen the project, or else the active one")
	fit.ValidArgsFunction = t.completeApps
	return group("apps", "The catalog of apps", list, show, fit)
}

func listApps(ctx context.Context, c *client.Client, search string, limit int) ([]gql.App, error) {
	return collect[gql.App](client.All[gql.App](limit, func(first int, after string) (*gql.AppPage, error) {
		answer, err := gql.ListApps(ctx, c, search, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.Apps, nil
	}))
}

func (t *tool) listApps(ctx context.Context, search string, limit int) error {
	c, err := t.connect()
	if err != nil {
		return err
	}
	apps, err := listApps(ctx, c, search, limit)
	if err != nil {
		return err
	}
	var rows [][]string
	var slugs []string
	for _, app := range apps {
		version := ""
		if app.ActiveManifest != nil {
			version = app.ActiveManifest.Version
		}
		rows = append(rows, []string{app.Slug, app.DisplayName, version, app.Summary})
		slugs = append(slugs, app.Slug)
	}
	return t.show(view{JSON: apps, IDs: slugs, Page: func(p *render.Page) {
		p.Table([]string{"SLUG", "NAME", "ACTIVE", "SUMMARY"}, rows)
	}})
}

func (t *tool) showApp(ctx context.Context, slug string) error {
	c, err := t.connect()
	if err != nil {
		return err
	}
	answer, err := gql.GetApp(ctx, c, slug)
	if err != nil {
		return err
	}
	app := answer.App
	return t.show(view{JSON: app, IDs: []string{app.Id}, Page: func(p *render.Page) {
		p.Fields("Slug", app.Slug, "Name", app.DisplayName, "Id", app.Id, "Summary", app.Summary, "Family", app.PermissionFamily)
		if app.ActiveManifest != nil {
			pageManifest(p, app.ActiveManifest)
		}
		var rows [][]string
		for _, edge := range app.Manifests.Edges {
			manifest := edge.Node
			rows = append(rows, []string{manifest.Version, string(manifest.Stage), manifest.Id, render.Time(&manifest.CreatedAt)})
		}
		p.Section("Versions")
		p.Table([]string{"VERSION", "STAGE", "MANIFEST", "PUBLISHED"}, rows)
	}})
}

// pageManifest shows what a launch of the manifest can be made from.
func pageManifest(p *render.Page, manifest *gql.ManifestDetail) {
	p.Section("Components of " + manifest.Version)
	var rows [][]string
	for _, component := range manifest.Components {
		bounds := fmt.Sprintf("%d to %d", component.Min, component.Max)
		rows = append(rows, []string{component.Key, component.DisplayName, bounds, fmt.Sprint(component.Default)})
	}
	p.Table([]string{"KEY", "NAME", "MEMBERS", "DEFAULT"}, rows)
	p.Section("Actions of " + manifest.Version)
	p.Table(actionHeading, actionRows(manifest.Actions))
}

func (t *tool) fitApp(ctx context.Context, slug, version string) error {
	c, project, err := t.scope(ctx)
	if err != nil {
		return err
	}
	answer, err := gql.GetLaunchOptions(ctx, c, project, slug, version)
	if err != nil {
		return err
	}
	options := answer.LaunchOptions
	var rows [][]string
	var fitting []string
	for _, verdict := range options.Allocations {
		if verdict.Compatible {
			fitting = append(fitting, verdict.Allocation.Id)
		}
		rows = append(rows, []string{verdict.Allocation.Id, verdict.Allocation.Name, fits(verdict.Compatible), reasonText(verdict.Reasons)})
	}
	return t.show(view{JSON: options, IDs: fitting, Page: func(p *render.Page) {
		p.Fields("App", slug, "Version", options.Manifest.Version, "Entitled", firstOf(yes(options.Entitled), "no"))
		p.Section("Versions")
		p.Table([]string{"VERSION", "STAGE", "OPEN", "DEFAULT", "WHY NOT"}, versionRows(options.Versions))
		p.Section("Allocations")
		p.Table([]string{"ID", "NAME", "FITS", "WHY NOT"}, rows)
	}})
}

func versionRows(versions []gql.LaunchVersion) (rows [][]string) {
	for _, one := range versions {
		rows = append(rows, []string{one.Version, string(one.Stage), fits(len(one.Reasons) == 0), yes(one.Chosen), reasonText(one.Reasons)})
	}
	return rows
}

func fits(compatible bool) string { return firstOf(yes(compatible), "no") }

func reasonText(reasons []gql.Reason) string {
	var texts []string
	for _, reason := range reasons {
		texts = append(texts, reason.Message)
	}
	return strings.Join(texts, "; ")
}
