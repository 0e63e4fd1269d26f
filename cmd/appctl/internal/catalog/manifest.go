package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxVersions bounds the versions of an app that are read to find one.
const maxVersions = 10000

// lint returns the command that checks a document. A document that does not hold is an error, so that scripts stop.
func lint(t *command.Tool) *cobra.Command {
	return t.Command("lint FILE", "Check a manifest document without storing it; exit code 6 if it fails",
		func(ctx context.Context, args []string) error {
			document, err := t.ReadDocument("manifest", args[0])
			if err != nil {
				return err
			}
			result, err := parts.Lint(ctx, t, args[0], document)
			if err != nil {
				return err
			}
			return t.Show(command.Line(result, args[0]+": may be published"))
		})
}

// publish returns the command that stores a document as a draft.
func publish(t *command.Tool) *cobra.Command {
	var idempotencyKey string
	cmd := command.Verb(t, "publish FILE", "Publish a manifest document as a draft", view,
		func(ctx context.Context, args []string) (gql.Manifest, error) {
			document, err := t.ReadDocument("manifest", args[0])
			if err != nil {
				return gql.Manifest{}, err
			}
			answer, err := gql.PublishManifest(ctx, t, gql.PublishManifestInput{
				Document: document, IdempotencyKey: idempotencyKey,
			})
			return answer.PublishManifest, err
		})
	command.KeyFlag(cmd, &idempotencyKey)
	return cmd
}

func view(made gql.Manifest) command.View {
	return command.One(made, made.Id, "App", made.AppSlug, "Version", made.Version, "Digest", made.Digest,
		"Stage", stageOf(made))
}

// stageOf returns a manifest's stage, with its canary's share.
func stageOf(manifest gql.Manifest) string {
	switch {
	case manifest.CanaryHaltedAt != nil:
		return fmt.Sprintf("%s, halted: %s", manifest.Stage, manifest.CanaryHaltReason)
	case manifest.Stage == gql.StageCanary:
		return fmt.Sprintf("%s %d %%", manifest.Stage, manifest.CanaryPercent)
	}
	return string(manifest.Stage)
}

// list returns the command that lists versions, by app and stage.
func list(t *command.Tool) *cobra.Command {
	var search, app string
	var stages []string
	cmd := command.List(t, "list", "List the versions of apps, newest first", table,
		func(ctx context.Context, _ []string, limit int) ([]gql.Manifest, error) {
			wanted, err := command.Enums("stage", stages, gql.AllStage)
			if err != nil {
				return nil, err
			}
			return manifests(ctx, t, search, app, wanted, limit)
		})
	cmd.Flags().StringVar(&search, "search", "", "only those whose app or name contains this")
	cmd.Flags().StringVar(&app, "app", "", "only this app's")
	cmd.Flags().StringSliceVar(&stages, "stage", nil, "only these stages, such as canary")
	return cmd
}

var table = command.Table[gql.Manifest]{
	Heading: []string{"ID", "APP", "VERSION", "STAGE", "DIGEST"},
	Row: func(manifest *gql.Manifest) []string {
		return []string{manifest.Id, manifest.AppSlug, manifest.Version, stageOf(*manifest), manifest.Digest}
	},
}

// manifests reads at most limit versions, newest first.
func manifests(
	ctx context.Context, t *command.Tool, search, app string, stages []gql.Stage, limit int,
) ([]gql.Manifest, error) {
	return command.All[gql.Manifest](limit, func(first int, after string) (*gql.ManifestPage, error) {
		answer, err := gql.ListManifests(ctx, t, search, app, stages, first, after)
		return &answer.Manifests, err
	})
}

// idOf turns APP@VERSION into a manifest's id; an id stays one.
func idOf(ctx context.Context, t *command.Tool, given string) (string, error) {
	app, version, named := strings.Cut(given, "@")
	if !named {
		return given, nil
	}
	found, err := manifests(ctx, t, "", app, nil, maxVersions)
	if err != nil {
		return "", err
	}
	for _, manifest := range found {
		if manifest.Version == version {
			return manifest.Id, nil
		}
	}
	return "", command.NotFoundf("there is no version %s of %s", version, app)
}

// detail reads a manifest, by its id or APP@VERSION, with all that its promotion rests on.
func detail(ctx context.Context, t *command.Tool, given string) (*gql.GetManifestNodeManifest, error) {
	id, err := idOf(ctx, t, given)
	if err != nil {
		return nil, err
	}
	answer, err := gql.GetManifest(ctx, t, id)
	if err != nil {
		return nil, err
	}
	found, ok := answer.Node.(*gql.GetManifestNodeManifest)
	if !ok {
		return nil, command.NotFoundf("there is no manifest %s", given)
	}
	return found, nil
}

func show(t *command.Tool) *cobra.Command {
	return command.Verb(t, "show MANIFEST",
		"Show a version by its id or APP@VERSION: what it needs for its next stage, its evidence and history",
		func(found *gql.GetManifestNodeManifest) command.View {
			return command.Detail(found, found.Id, func(p *render.Page) { pageVersion(p, found) })
		},
		func(ctx context.Context, args []string) (*gql.GetManifestNodeManifest, error) {
			return detail(ctx, t, args[0])
		})
}

// pageVersion shows a version with its artifacts, what it lacks, its evidence and its history.
func pageVersion(p *render.Page, found *gql.GetManifestNodeManifest) {
	stage := stageOf(gql.Manifest{
		Stage: found.Stage, CanaryPercent: found.CanaryPercent, CanaryHaltedAt: found.CanaryHaltedAt,
		CanaryHaltReason: found.CanaryHaltReason,
	})
	p.Fields("Id", found.Id, "App", found.AppSlug, "Version", found.Version, "Name", found.DisplayName,
		"Kind", found.ArtifactKind, "Digest", found.Digest, "Stage", stage)
	p.Section("Artifacts")
	pinned.On(p, found.Artifacts)
	if len(found.Lacks) > 0 {
		p.Section("Needs for its next stage")
		for _, reason := range found.Lacks {
			p.Line(fmt.Sprintf("%s (%s)", reason.Message, reason.Code))
		}
	}
	p.Section("Evidence")
	reports.On(p, found.Reports)
	p.Section("History")
	parts.History.On(p, found.History)
}

var pinned = command.Table[gql.Artifact]{
	Heading: []string{"ID", "NAME", "STAGE", "DIGEST"},
	Row: func(artifact *gql.Artifact) []string {
		return []string{artifact.Id, artifact.Name, string(artifact.Stage), artifact.Digest}
	},
}

var reports = command.Table[gql.PromotionEvidence]{
	Heading: []string{"AT", "KIND", "RESULT", "DIGEST", "BY", "RUNNER"},
	Row: func(report *gql.PromotionEvidence) []string {
		return []string{
			render.Time(&report.CreatedAt), string(report.Kind), resultOf(report.Passed), report.Digest,
			report.SubmittedBy,
			report.RunnerId,
		}
	},
}

func resultOf(passed bool) string {
	if passed {
		return "passed"
	}
	return "failed"
}

const (
	// schemaPath is where the platform publishes the JSON Schema of manifest documents.
	schemaPath = "/schemas/manifest.v1.json"
	// maxSchema bounds it, in bytes; schemaWithin is how long reading it may take.
	maxSchema    = 1 << 20
	schemaWithin = 20 * time.Second
)

// schema returns the command that prints the schema as the platform publishes it. It needs no credential.
func schema(t *command.Tool) *cobra.Command {
	cmd := t.Command("schema", "Print the JSON Schema of manifest documents, for editors and other tools",
		func(ctx context.Context, _ []string) error {
			server, _, err := t.Target()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, schemaWithin)
			defer cancel()
			text, err := command.Published(ctx, server, schemaPath, maxSchema)
			if err == nil && !json.Valid(text) {
				err = errors.New("it is not JSON")
			}
			if err != nil {
				return command.Unavailable("the schema of manifests", err)
			}
			_, err = t.Env.Stdout.Write(text)
			return err
		})
	cmd.Example = `  appctl manifest schema > manifest.schema.json`
	return cmd
}
