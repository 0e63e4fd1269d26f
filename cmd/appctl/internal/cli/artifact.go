package cli

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) artifactCommand() *cobra.Command {
	return group("artifact", "Digest-pinned artifacts: build, push, sign and publish them",
		t.artifactBuild(), t.artifactPush(), t.artifactKeygen(), t.artifactSign(),
		t.artifactPublish(false), t.artifactList(), t.artifactShow(), t.artifactVerify(), t.artifactQuarantine(), t.artifactRelease(), t.artifactPromote())
}

func (t *tool) artifactList() *cobra.Command {
	var limit int
	var search string
	var stages []string
	var quarantined bool
	list := t.command("list", "List the artifacts, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		wanted, err := enums("stage", stages, gql.AllStage)
		if err != nil {
			return err
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		var only *bool
		if quarantined {
			only = &quarantined
		}
		found, err := collect[gql.Artifact](client.All[gql.Artifact](limit, func(first int, after string) (*gql.ArtifactPage, error) {
			answer, err := gql.ListArtifacts(ctx, c, search, wanted, only, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Artifacts, nil
		}))
		if err != nil {
			return err
		}
		return t.showArtifacts(found)
	})
	list.Flags().StringVar(&search, "search", "", "only those whose name or address contains this")
	list.Flags().StringSliceVar(&stages, "stage", nil, "only these stages, such as active")
	list.Flags().BoolVar(&quarantined, "quarantined", false, "only those in quarantine")
	limitFlag(list, &limit)
	return list
}

func (t *tool) showArtifacts(found []gql.Artifact) error {
	var rows [][]string
	var ids []string
	for _, artifact := range found {
		state := string(artifact.Signature)
		if artifact.QuarantinedAt != nil {
			state += ", in quarantine"
		}
		rows = append(rows, []string{artifact.Id, artifact.Name, string(artifact.Kind), stageText(artifact.Stage, artifact.Evidence), state, artifact.Digest})
		ids = append(ids, artifact.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "NAME", "KIND", "STAGE", "SIGNATURE", "DIGEST"}, rows)
	}})
}

// artifactPublish publishes for the platform, as its operators do, or for the project of the run.
func (t *tool) artifactPublish(platform bool) *cobra.Command {
	var input gql.PublishArtifactInput
	publish := t.command("publish REF", "Publish an artifact: HOST/REPOSITORY@sha256:…, HOST/REPOSITORY:TAG, which is pinned, or a file's https address", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			if !platform {
				if input.ProjectId, err = t.projectID(ctx, c); err != nil {
					return err
				}
			}
			input.Ref, input.IdempotencyKey = args[0], key(input.IdempotencyKey)
			input.Name = firstOf(input.Name, nameOf(args[0]))
			answer, err := gql.PublishArtifact(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showArtifact(answer.PublishArtifact)
		})
	publish.Flags().StringVar(&input.Name, "name", "", "name for people; the last part of the reference if not given")
	publish.Flags().StringVar(&input.MediaType, "media-type", "", "media type of what it holds; what its manifest says if not given")
	publish.Flags().StringVar(&input.Digest, "digest", "", "the digest that is wanted, sha256:…; needed for a file, and held against the registry's for everything else")
	publish.Flags().BoolVar(&platform, "platform", platform, "for the platform, not for the project")
	keyFlag(publish, &input.IdempotencyKey)
	return publish
}

// nameOf is the last part of a reference, without tag and digest.
func nameOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	last := path.Base(ref)
	if !strings.Contains(ref, "://") {
		last, _, _ = strings.Cut(last, ":")
	}
	return last
}

func (t *tool) showArtifact(made gql.Artifact) error {
	return t.show(view{JSON: made, IDs: []string{made.Id}, Page: func(p *render.Page) { pageArtifact(p, made) }})
}

// pageArtifact shows an artifact and more pairs of what is known of it.
func pageArtifact(p *render.Page, made gql.Artifact, more ...string) {
	signer, quarantine := "", ""
	if made.SignedBy != nil {
		signer = ", by " + made.SignedBy.Name
	}
	if made.QuarantinedAt != nil {
		quarantine = strings.TrimPrefix(strings.Join([]string{made.QuarantineCode, made.QuarantineReason}, ": "), ": ")
		quarantine = fmt.Sprintf("since %s: %s", render.Time(made.QuarantinedAt), quarantine)
	}
	p.Fields(append([]string{"Id", made.Id, "Name", made.Name, "Kind", string(made.Kind), "Ref", made.Ref, "Digest", made.Digest,
		"Bytes", fmt.Sprintf("%.0f", made.SizeBytes), "Platforms", strings.Join(made.Platforms, ", "),
		"Signature", string(made.Signature) + signer, "Quarantine", quarantine, "Verified", render.Time(made.VerifiedAt),
		"Stage", stageText(made.Stage, made.Evidence)}, more...)...)
}

// artifactID turns a digest into the id of its artifact: the tenant's own, or else the platform's. An id stays one.
func (t *tool) artifactID(ctx context.Context, c *client.Client, given string) (string, error) {
	if !strings.HasPrefix(given, "sha256:") {
		return given, nil
	}
	viewer, err := gql.GetViewer(ctx, c)
	if err != nil {
		return "", err
	}
	tenant := ""
	if viewer.Viewer.Tenant != nil {
		tenant = viewer.Viewer.Tenant.Id
	}
	found, err := gql.GetArtifact(ctx, c, given, tenant)
	if err != nil {
		return "", err
	}
	return found.Artifact.Id, nil
}

func (t *tool) artifactShow() *cobra.Command {
	return t.command("show ARTIFACT", "Show an artifact by its id or digest: what it is made of, who signed it, who pins it", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			id, err := t.artifactID(ctx, c, args[0])
			if err != nil {
				return err
			}
			answer, err := gql.GetArtifactDetail(ctx, c, id)
			if err != nil {
				return err
			}
			found, ok := answer.Node.(*gql.GetArtifactDetailNodeArtifact)
			if !ok {
				return notFoundf("there is no artifact %s", id)
			}
			return t.show(view{JSON: found, IDs: []string{id}, Page: func(p *render.Page) { pageArtifactDetail(p, found) }})
		})
}

func pageArtifactDetail(p *render.Page, found *gql.GetArtifactDetailNodeArtifact) {
	source := ""
	if found.Source != nil {
		source = fmt.Sprintf("%s (%s)", found.Source.Name, found.Source.Location)
	}
	pageArtifact(p, found.Artifact, "Source", source)
	var rows [][]string
	for _, part := range found.Parts {
		rows = append(rows, []string{string(part.Role), fmt.Sprintf("%.0f", part.SizeBytes), part.Digest, firstOf(part.Platform, part.Title, part.MediaType)})
	}
	p.Section("Parts")
	p.Table([]string{"ROLE", "BYTES", "DIGEST", "WHAT"}, rows)
	rows = nil
	for _, manifest := range found.PinnedBy {
		rows = append(rows, []string{manifest.Id, manifest.AppSlug, manifest.Version, string(manifest.Stage)})
	}
	p.Section("Pinned by")
	p.Table([]string{"ID", "APP", "VERSION", "STAGE"}, rows)
	pageHistory(p, found.History)
}

// artifactVerb is a verb on one artifact.
func (t *tool) artifactVerb(use, short string, act func(ctx context.Context, c *client.Client, id string) (gql.Artifact, error)) *cobra.Command {
	return t.command(use+" ARTIFACT", short, cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		id, err := t.artifactID(ctx, c, args[0])
		if err != nil {
			return err
		}
		changed, err := act(ctx, c, id)
		if err != nil {
			return err
		}
		return t.showArtifact(changed)
	})
}

func (t *tool) artifactVerify() *cobra.Command {
	return t.artifactVerb("verify", "Look at an artifact's bytes and signatures again; it leaves or enters quarantine by what is found",
		func(ctx context.Context, c *client.Client, id string) (gql.Artifact, error) {
			answer, err := gql.VerifyArtifact(ctx, c, id)
			if err != nil {
				return gql.Artifact{}, err
			}
			return answer.VerifyArtifact, nil
		})
}

func (t *tool) artifactQuarantine() *cobra.Command {
	var reason string
	cmd := t.artifactVerb("quarantine", "Put an artifact where nobody gets it",
		func(ctx context.Context, c *client.Client, id string) (gql.Artifact, error) {
			answer, err := gql.QuarantineArtifact(ctx, c, id, reason)
			if err != nil {
				return gql.Artifact{}, err
			}
			return answer.QuarantineArtifact, nil
		})
	neededReason(cmd, &reason)
	return cmd
}

func (t *tool) artifactRelease() *cobra.Command {
	var reason string
	cmd := t.artifactVerb("release", "Let an artifact out of quarantine, whatever put it there",
		func(ctx context.Context, c *client.Client, id string) (gql.Artifact, error) {
			answer, err := gql.ReleaseArtifact(ctx, c, id, reason)
			if err != nil {
				return gql.Artifact{}, err
			}
			return answer.ReleaseArtifact, nil
		})
	neededReason(cmd, &reason)
	return cmd
}
