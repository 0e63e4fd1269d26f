// Package artifacts is the commands about digest-pinned artifacts and the sources that they come from: build, push,
// sign, publish, verify, quarantine and promote them.
package artifacts

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Commands returns the commands about artifacts and sources.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		command.Group("artifact", "Digest-pinned artifacts: build, push, sign and publish them",
			build(t), push(t), keygen(t), sign(t), publishArtifact(t, false), list(t), show(t), verify(t),
			quarantine(t),
			release(t), runSmoke(t), submitSmoke(t), Promote(t)),
		command.Group("source", "Where artifacts may come from, with which credential, and which signatures count",
			listSources(t), showSource(t), addSource(t), updateSource(t), setCredential(t),
			command.Group("key", "The keys whose signatures a source accepts", addKey(t), revokeKey(t))),
	}
}

// Admin returns the commands of operators, who publish for the platform.
func Admin(t *command.Tool) *cobra.Command {
	return command.Group("artifact", "Digest-pinned artifacts", list(t), publishArtifact(t, true), runSmoke(t),
		submitSmoke(t), Promote(t))
}

// list returns the command that lists artifacts, by stage and quarantine.
func list(t *command.Tool) *cobra.Command {
	var search string
	var stages []string
	var quarantined bool
	cmd := command.List(t, "list", "List the artifacts, newest first", table,
		func(ctx context.Context, _ []string, limit int) ([]gql.Artifact, error) {
			wanted, err := command.Enums("stage", stages, gql.AllStage)
			if err != nil {
				return nil, err
			}
			return command.All[gql.Artifact](limit, func(first int, after string) (*gql.ArtifactPage, error) {
				answer, err := gql.ListArtifacts(ctx, t, search, wanted, command.Given(quarantined), first, after)
				return &answer.Artifacts, err
			})
		})
	cmd.Flags().StringVar(&search, "search", "", "only those whose name or address contains this")
	cmd.Flags().StringSliceVar(&stages, "stage", nil, "only these stages, such as active")
	cmd.Flags().BoolVar(&quarantined, "quarantined", false, "only those in quarantine")
	return cmd
}

var table = command.Table[gql.Artifact]{
	Heading: []string{"ID", "NAME", "KIND", "STAGE", "SIGNATURE", "DIGEST"},
	Row: func(artifact *gql.Artifact) []string {
		state := string(artifact.Signature) + render.If(artifact.QuarantinedAt != nil, ", in quarantine")
		return []string{
			artifact.Id, artifact.Name, string(artifact.Kind), parts.Stage(artifact.Stage, artifact.Evidence), state,
			artifact.Digest,
		}
	},
}

// publishArtifact publishes for the platform, as its operators do, or for the project of the run.
func publishArtifact(t *command.Tool, platform bool) *cobra.Command {
	var input gql.PublishArtifactInput
	cmd := command.Verb(t, "publish REF",
		"Publish an artifact: HOST/REPOSITORY@sha256:…, HOST/REPOSITORY:TAG, which is pinned, or a file's https "+
			"address",
		view,
		func(ctx context.Context, args []string) (none gql.Artifact, err error) {
			if !platform {
				if input.ProjectId, err = t.ProjectID(ctx); err != nil {
					return none, err
				}
			}
			input.Ref, input.Name = args[0], cmp.Or(input.Name, nameOf(args[0]))
			answer, err := gql.PublishArtifact(ctx, t, input)
			return answer.PublishArtifact, err
		})
	flags := cmd.Flags()
	flags.StringVar(&input.Name, "name", "", "display name; the last part of the reference if not given")
	flags.StringVar(&input.MediaType, "media-type", "", "media type of its content; that of its manifest if not given")
	flags.StringVar(&input.Digest, "digest", "",
		"the expected digest, sha256:…; required for a file, and compared with the registry's for everything else")
	flags.BoolVar(&platform, "platform", platform, "publish for the platform, not for the project")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

// nameOf returns the last part of a reference, without tag and digest.
func nameOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	last := path.Base(ref)
	if !strings.Contains(ref, "://") {
		last, _, _ = strings.Cut(last, ":")
	}
	return last
}

func view(made gql.Artifact) command.View {
	return command.Detail(made, made.Id, func(p *render.Page) { page(p, made) })
}

// page shows an artifact and more pairs of what is known of it.
func page(p *render.Page, made gql.Artifact, more ...string) {
	signer, quarantine := "", ""
	if made.SignedBy != nil {
		signer = ", by " + made.SignedBy.Name
	}
	if made.QuarantinedAt != nil {
		why := strings.TrimPrefix(made.QuarantineCode+": "+made.QuarantineReason, ": ")
		quarantine = fmt.Sprintf("since %s: %s", render.Time(made.QuarantinedAt), why)
	}
	p.Fields(append([]string{
		"Id", made.Id, "Name", made.Name, "Kind", string(made.Kind), "Ref", made.Ref, "Digest", made.Digest,
		"Bytes", fmt.Sprintf("%.0f", made.SizeBytes), "Platforms", strings.Join(made.Platforms, ", "),
		"Signature", string(made.Signature) + signer, "Quarantine", quarantine, "Verified",
		render.Time(made.VerifiedAt),
		"Stage", parts.Stage(made.Stage, made.Evidence), "Smoked", render.YesNo(made.Smoked),
	}, more...)...)
}

// ofArtifact returns what finds the artifact that the first argument names.
func ofArtifact(t *command.Tool) func(context.Context, []string) (string, error) {
	return func(ctx context.Context, args []string) (string, error) { return idOf(ctx, t, args[0]) }
}

// idOf turns a digest into the id of its artifact: the tenant's own, or else the platform's. An id stays one.
func idOf(ctx context.Context, t *command.Tool, given string) (string, error) {
	if !strings.HasPrefix(given, "sha256:") {
		return given, nil
	}
	viewer, err := gql.GetViewer(ctx, t)
	if err != nil {
		return "", err
	}
	tenant := ""
	if viewer.Viewer.Tenant != nil {
		tenant = viewer.Viewer.Tenant.Id
	}
	found, err := gql.GetArtifact(ctx, t, given, tenant)
	if err != nil {
		return "", err
	}
	return found.Artifact.Id, nil
}

// show returns the command that shows an artifact with its parts, the versions that pin it, and its history.
func show(t *command.Tool) *cobra.Command {
	return command.Of(t, "show ARTIFACT",
		"Show an artifact by its id or digest: its parts, who signed it, which versions pin it", ofArtifact(t),
		func(found *gql.GetArtifactDetailNodeArtifact) command.View {
			return command.Detail(found, found.Id, func(p *render.Page) { pageDetail(p, found) })
		},
		func(ctx context.Context, id string, _ []string) (*gql.GetArtifactDetailNodeArtifact, error) {
			answer, err := gql.GetArtifactDetail(ctx, t, id)
			if err != nil {
				return nil, err
			}
			found, ok := answer.Node.(*gql.GetArtifactDetailNodeArtifact)
			if !ok {
				return nil, command.NotFoundf("there is no artifact %s", id)
			}
			return found, nil
		})
}

// pageDetail shows an artifact with its source, its parts, the versions that pin it, and its history.
func pageDetail(p *render.Page, found *gql.GetArtifactDetailNodeArtifact) {
	source := ""
	if found.Source != nil {
		source = fmt.Sprintf("%s (%s)", found.Source.Name, found.Source.Location)
	}
	page(p, found.Artifact, "Source", source)
	p.Section("Parts")
	partTable.On(p, found.Parts)
	p.Section("Pinned by")
	pinTable.On(p, found.PinnedBy)
	p.Section("Smokes")
	smokeTable.On(p, found.Smokes)
	p.Section("History")
	parts.History.On(p, found.History)
}

var partTable = command.Table[gql.ArtifactPart]{
	Heading: []string{"ROLE", "BYTES", "DIGEST", "WHAT"},
	Row: func(part *gql.ArtifactPart) []string {
		what := cmp.Or(part.Platform, part.Title, part.MediaType)
		return []string{string(part.Role), fmt.Sprintf("%.0f", part.SizeBytes), part.Digest, what}
	},
}

var smokeTable = command.Table[gql.ArtifactSmoke]{
	Heading: []string{"ID", "RESULT", "RUNNER", "SUBMITTED", "DIGEST"},
	Row: func(smoke *gql.ArtifactSmoke) []string {
		return []string{smoke.Id, resultOf(smoke.Passed), smoke.RunnerId, render.Time(&smoke.CreatedAt), smoke.Digest}
	},
}

var pinTable = command.Table[gql.Manifest]{
	Heading: []string{"ID", "APP", "VERSION", "STAGE"},
	Row: func(manifest *gql.Manifest) []string {
		return []string{manifest.Id, manifest.AppSlug, manifest.Version, string(manifest.Stage)}
	},
}

func verify(t *command.Tool) *cobra.Command {
	return command.Of(t, "verify ARTIFACT",
		"Check an artifact's bytes and signatures again; the result puts it into quarantine or releases it",
		ofArtifact(t), view,
		func(ctx context.Context, id string, _ []string) (gql.Artifact, error) {
			answer, err := gql.VerifyArtifact(ctx, t, id)
			return answer.VerifyArtifact, err
		})
}

func quarantine(t *command.Tool) *cobra.Command {
	var reason string
	cmd := command.Of(t, "quarantine ARTIFACT", "Put an artifact into quarantine: it is delivered to no one",
		ofArtifact(t), view,
		func(ctx context.Context, id string, _ []string) (gql.Artifact, error) {
			answer, err := gql.QuarantineArtifact(ctx, t, id, reason)
			return answer.QuarantineArtifact, err
		})
	command.NeededReasonFlag(cmd, &reason)
	return cmd
}

func release(t *command.Tool) *cobra.Command {
	var reason string
	cmd := command.Of(t, "release ARTIFACT", "Release an artifact from quarantine, whatever the cause",
		ofArtifact(t), view,
		func(ctx context.Context, id string, _ []string) (gql.Artifact, error) {
			answer, err := gql.ReleaseArtifact(ctx, t, id, reason)
			return answer.ReleaseArtifact, err
		})
	command.NeededReasonFlag(cmd, &reason)
	return cmd
}

// Promote returns the command that moves an artifact to its next stage.
func Promote(t *command.Tool) *cobra.Command {
	var step parts.Promotion
	var override string
	cmd := command.Verb(t, "promote ARTIFACT", "Move an artifact, by its id or digest, to its next stage", view,
		func(ctx context.Context, args []string) (none gql.Artifact, err error) {
			input := gql.PromoteArtifactInput{Reason: step.Reason, Override: override}
			if input.To, err = step.Stage(); err != nil {
				return none, err
			}
			if input.ArtifactId, err = idOf(ctx, t, args[0]); err != nil {
				return none, err
			}
			answer, err := gql.PromoteArtifact(ctx, t, input)
			return answer.PromoteArtifact, err
		})
	step.Register(cmd)
	cmd.Flags().StringVar(&override, "override", "",
		"why a platform's artifact goes to active without a smoke of its kind, "+
			"kept in history and audit; for the platform's staff")
	return cmd
}
