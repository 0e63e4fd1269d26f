package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxVersions bounds the versions of an app that are looked through for one.
const maxVersions = 10000

func (t *tool) manifestCommand() *cobra.Command {
	return group("manifest", "Versions of apps: lint, publish and smoke-test them",
		t.manifestLint(), t.manifestPublish(), t.manifestList(), t.manifestShow(), t.manifestSmoke(), t.manifestPromote(), t.manifestSchema())
}

// manifestFile reads a manifest document.
func (t *tool) manifestFile(path string) ([]byte, error) {
	text, err := values.ReadFile(path, t.Env.Stdin)
	if err != nil {
		return nil, usagef("manifest: %w", err)
	}
	document, err := values.Document(path, text)
	if err != nil {
		return nil, invalidf("%s", err)
	}
	return document, nil
}

func (t *tool) manifestLint() *cobra.Command {
	return t.command("lint FILE", "Check a manifest document without storing it; exit code 6 if it fails", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			document, err := t.manifestFile(args[0])
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			answer, err := gql.LintManifest(ctx, c, document)
			if err != nil {
				return err
			}
			return t.showLint(args[0], answer.LintManifest)
		})
}

func (t *tool) showLint(path string, result gql.LintResult) error {
	if result.Ok {
		return t.show(view{JSON: result, Page: func(p *render.Page) { p.Line(path + ": may be published") }})
	}
	failed := &client.Error{Code: client.CodeManifestInvalid, Message: path + " may not be published"}
	for _, reason := range result.Reasons {
		failed.Reasons = append(failed.Reasons, client.Reason{Code: reason.Code, Message: reason.Message, Path: reason.Path})
	}
	return failed
}

func (t *tool) manifestPublish() *cobra.Command {
	var idempotencyKey string
	publish := t.command("publish FILE", "Publish a manifest document as a draft", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		document, err := t.manifestFile(args[0])
		if err != nil {
			return err
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.PublishManifest(ctx, c, gql.PublishManifestInput{Document: document, IdempotencyKey: key(idempotencyKey)})
		if err != nil {
			return err
		}
		return t.showManifest(answer.PublishManifest)
	})
	keyFlag(publish, &idempotencyKey)
	return publish
}

func (t *tool) showManifest(made gql.Manifest) error {
	return t.showOne(made, made.Id, "App", made.AppSlug, "Version", made.Version, "Digest", made.Digest, "Stage", stageOf(made))
}

// stageOf is a manifest's stage, with its canary's share.
func stageOf(manifest gql.Manifest) string {
	switch {
	case manifest.CanaryHaltedAt != nil:
		return fmt.Sprintf("%s, halted: %s", manifest.Stage, manifest.CanaryHaltReason)
	case manifest.Stage == gql.StageCanary:
		return fmt.Sprintf("%s %d %%", manifest.Stage, manifest.CanaryPercent)
	}
	return string(manifest.Stage)
}

func (t *tool) manifestList() *cobra.Command {
	var limit int
	var search, app string
	var stages []string
	list := t.command("list", "List the versions of apps, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		wanted, err := enums("stage", stages, gql.AllStage)
		if err != nil {
			return err
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		found, err := listManifests(ctx, c, search, app, wanted, limit)
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for _, manifest := range found {
			rows = append(rows, []string{manifest.Id, manifest.AppSlug, manifest.Version, stageOf(manifest), manifest.Digest})
			ids = append(ids, manifest.Id)
		}
		return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
			p.Table([]string{"ID", "APP", "VERSION", "STAGE", "DIGEST"}, rows)
		}})
	})
	list.Flags().StringVar(&search, "search", "", "only those whose app or name contains this")
	list.Flags().StringVar(&app, "app", "", "only this app's")
	list.Flags().StringSliceVar(&stages, "stage", nil, "only these stages, such as canary")
	limitFlag(list, &limit)
	return list
}

func listManifests(ctx context.Context, c *client.Client, search, app string, stages []gql.Stage, limit int) ([]gql.Manifest, error) {
	return collect[gql.Manifest](client.All[gql.Manifest](limit, func(first int, after string) (*gql.ManifestPage, error) {
		answer, err := gql.ListManifests(ctx, c, search, app, stages, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.Manifests, nil
	}))
}

// manifestID turns APP@VERSION into a manifest's id; an id stays one.
func manifestID(ctx context.Context, c *client.Client, given string) (string, error) {
	app, version, named := strings.Cut(given, "@")
	if !named {
		return given, nil
	}
	found, err := listManifests(ctx, c, "", app, nil, maxVersions)
	if err != nil {
		return "", err
	}
	for _, manifest := range found {
		if manifest.Version == version {
			return manifest.Id, nil
		}
	}
	return "", notFoundf("there is no version %s of %s", version, app)
}

// manifestOf reads a manifest, by its id or APP@VERSION, with all that its promotion rests on.
func manifestOf(ctx context.Context, c *client.Client, given string) (*gql.GetManifestNodeManifest, error) {
	id, err := manifestID(ctx, c, given)
	if err != nil {
		return nil, err
	}
	answer, err := gql.GetManifest(ctx, c, id)
	if err != nil {
		return nil, err
	}
	found, ok := answer.Node.(*gql.GetManifestNodeManifest)
	if !ok {
		return nil, notFoundf("there is no manifest %s", given)
	}
	return found, nil
}

func (t *tool) manifestShow() *cobra.Command {
	return t.command("show MANIFEST", "Show a version by its id or APP@VERSION: what it lacks for its next stage, its evidence and history", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			found, err := manifestOf(ctx, c, args[0])
			if err != nil {
				return err
			}
			return t.show(view{JSON: found, IDs: []string{found.Id}, Page: func(p *render.Page) { pageVersion(p, found) }})
		})
}

func pageVersion(p *render.Page, found *gql.GetManifestNodeManifest) {
	p.Fields("Id", found.Id, "App", found.AppSlug, "Version", found.Version, "Name", found.DisplayName, "Kind", found.ArtifactKind,
		"Digest", found.Digest, "Stage", stageOf(gql.Manifest{Stage: found.Stage, CanaryPercent: found.CanaryPercent,
			CanaryHaltedAt: found.CanaryHaltedAt, CanaryHaltReason: found.CanaryHaltReason}))
	var rows [][]string
	for _, artifact := range found.Artifacts {
		rows = append(rows, []string{artifact.Id, artifact.Name, string(artifact.Stage), artifact.Digest})
	}
	p.Section("Artifacts")
	p.Table([]string{"ID", "NAME", "STAGE", "DIGEST"}, rows)
	if len(found.Lacks) > 0 {
		p.Section("Lacks for its next stage")
		for _, reason := range found.Lacks {
			p.Line(fmt.Sprintf("%s (%s)", reason.Message, reason.Code))
		}
	}
	rows = nil
	for _, report := range found.Reports {
		rows = append(rows, []string{render.Time(&report.CreatedAt), string(report.Kind), passedText(report.Passed), report.Digest, report.SubmittedBy})
	}
	p.Section("Evidence")
	p.Table([]string{"AT", "KIND", "RESULT", "DIGEST", "BY"}, rows)
	pageHistory(p, found.History)
}

func passedText(passed bool) string {
	if passed {
		return "passed"
	}
	return "failed"
}
