package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) appCreate() *cobra.Command {
	var input gql.CreateAppInput
	create := t.command("create SLUG", "Add an app to the catalog", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		input.Slug, input.DisplayName = args[0], firstOf(input.DisplayName, args[0])
		input.IdempotencyKey = key(input.IdempotencyKey)
		answer, err := gql.CreateApp(ctx, c, input)
		if err != nil {
			return err
		}
		made := answer.CreateApp
		return t.showOne(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName, "Family", made.PermissionFamily)
	})
	create.Flags().StringVar(&input.DisplayName, "display-name", "", "name for people; the slug if not given")
	create.Flags().StringVar(&input.Summary, "summary", "", "one line on what it is")
	create.Flags().StringVar(&input.PermissionFamily, "family", "apps", "family of its permission keys: apps or scheduler")
	keyFlag(create, &input.IdempotencyKey)
	return create
}

func (t *tool) artifactList() *cobra.Command {
	var limit int
	list := t.command("list", "List the artifacts, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		found, err := collect[gql.Artifact](client.All[gql.Artifact](limit, func(first int, after string) (*gql.ArtifactPage, error) {
			answer, err := gql.ListArtifacts(ctx, c, "", nil, nil, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Artifacts, nil
		}))
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for _, artifact := range found {
			rows = append(rows, []string{artifact.Id, artifact.Name, stageText(artifact.Stage, artifact.Evidence), artifact.Digest})
			ids = append(ids, artifact.Id)
		}
		return t.show(view{json: found, ids: ids, page: func(p *render.Page) { p.Table([]string{"ID", "NAME", "STAGE", "DIGEST"}, rows) }})
	})
	limitFlag(list, &limit)
	return list
}

func (t *tool) artifactPublish() *cobra.Command {
	var input gql.PublishArtifactInput
	publish := t.command("publish REF", "Publish an artifact, pinned as HOST/REPOSITORY@sha256:…", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			input.Ref, input.IdempotencyKey = args[0], key(input.IdempotencyKey)
			answer, err := gql.PublishArtifact(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showArtifact(answer.PublishArtifact)
		})
	publish.Flags().StringVar(&input.Name, "name", "", "name for people")
	publish.Flags().StringVar(&input.MediaType, "media-type", "application/vnd.oci.image.manifest.v1+json", "media type of what it holds")
	keyFlag(publish, &input.IdempotencyKey)
	_ = publish.MarkFlagRequired("name")
	return publish
}

func (t *tool) showArtifact(made gql.Artifact) error {
	return t.showOne(made, made.Id, "Name", made.Name, "Ref", made.Ref, "Digest", made.Digest,
		"Bytes", fmt.Sprintf("%.0f", made.SizeBytes), "Stage", stageText(made.Stage, made.Evidence))
}

// promotion are the flags of a step of trust.
type promotion struct{ to, reason, smoke string }

func (p *promotion) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.to, "to", "", "stage it goes to: staged, canary, active, deprecated or retired")
	cmd.Flags().StringVar(&p.reason, "reason", "", "why, kept in the audit")
	_ = cmd.MarkFlagRequired("to")
	_ = cmd.MarkFlagRequired("reason")
}

func (p *promotion) stage() (gql.Stage, error) {
	stages, err := enums("to", []string{p.to}, gql.AllStage)
	if err != nil {
		return "", err
	}
	return stages[0], nil
}

func (t *tool) artifactPromote() *cobra.Command {
	var step promotion
	promote := t.command("promote ARTIFACT", "Move an artifact to its next stage", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		stage, err := step.stage()
		if err != nil {
			return err
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.PromoteArtifact(ctx, c, gql.PromoteArtifactInput{ArtifactId: args[0], To: stage, Reason: step.reason})
		if err != nil {
			return err
		}
		return t.showArtifact(answer.PromoteArtifact)
	})
	step.register(promote)
	return promote
}

// manifestFile reads a manifest document.
func (t *tool) manifestFile(path string) ([]byte, error) {
	text, err := values.ReadFile(path, t.env.Stdin)
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
		return t.show(view{json: result, page: func(p *render.Page) { p.Line(path + ": may be published") }})
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
	return t.showOne(made, made.Id, "App", made.AppSlug, "Version", made.Version, "Digest", made.Digest, "Stage", string(made.Stage))
}

func (t *tool) manifestPromote() *cobra.Command {
	var step promotion
	promote := t.command("promote MANIFEST", "Move a manifest to its next stage", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		stage, err := step.stage()
		if err != nil {
			return err
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.PromoteManifest(ctx, c, gql.PromoteManifestInput{
			ManifestId: args[0], To: stage, Reason: step.reason, SmokeInstanceId: step.smoke,
		})
		if err != nil {
			return err
		}
		return t.showManifest(answer.PromoteManifest)
	})
	step.register(promote)
	promote.Flags().StringVar(&step.smoke, "smoke-instance", "", "for staged: the instance that ran this digest and was torn down with proof")
	return promote
}

func (t *tool) adapterList() *cobra.Command {
	var limit int
	list := t.command("list", "List the registered adapters", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		found, err := collect[gql.Adapter](client.All[gql.Adapter](limit, func(first int, after string) (*gql.AdapterPage, error) {
			answer, err := gql.ListAdapters(ctx, c, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Adapters, nil
		}))
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for _, adapter := range found {
			rows = append(rows, []string{adapter.Id, adapter.Name, adapter.Url, render.Time(adapter.LastSeenAt), adapter.LastError})
			ids = append(ids, adapter.Id)
		}
		return t.show(view{json: found, ids: ids, page: func(p *render.Page) {
			p.Table([]string{"ID", "NAME", "URL", "LAST SEEN", "LAST ERROR"}, rows)
		}})
	})
	limitFlag(list, &limit)
	return list
}

func (t *tool) adapterRegister() *cobra.Command {
	return t.command("register NAME URL", "Register an adapter, or change its address", cobra.ExactArgs(2), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RegisterAdapter(ctx, c, gql.RegisterAdapterInput{Name: args[0], Url: args[1]})
		if err != nil {
			return err
		}
		made := answer.RegisterAdapter
		return t.showOne(made, made.Id, "Name", made.Name, "URL", made.Url, "Last seen", render.Time(made.LastSeenAt), "Last error", made.LastError)
	})
}
