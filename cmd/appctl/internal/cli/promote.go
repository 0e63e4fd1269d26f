package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// promoteCommand is the steps of trust in one place; the nouns have the same ones.
func (t *tool) promoteCommand() *cobra.Command {
	manifest, artifact := t.manifestPromote(), t.artifactPromote()
	manifest.Use, artifact.Use = "manifest MANIFEST", "artifact ARTIFACT"
	return group("promote", "Steps of trust, from draft to retired", manifest, artifact)
}

// promotion are the flags of a step of trust.
type promotion struct {
	to, reason, smoke string
	percent           int
}

func (p *promotion) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.to, "to", "", "stage it goes to: staged, canary, active, deprecated or retired")
	_ = cmd.MarkFlagRequired("to")
	neededReason(cmd, &p.reason)
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
	promote := t.command("promote ARTIFACT", "Move an artifact, by its id or digest, to its next stage", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			stage, err := step.stage()
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			id, err := t.artifactID(ctx, c, args[0])
			if err != nil {
				return err
			}
			answer, err := gql.PromoteArtifact(ctx, c, gql.PromoteArtifactInput{ArtifactId: id, To: stage, Reason: step.reason})
			if err != nil {
				return err
			}
			return t.showArtifact(answer.PromoteArtifact)
		})
	step.register(promote)
	return promote
}

func (t *tool) manifestPromote() *cobra.Command {
	var step promotion
	promote := t.command("promote MANIFEST", "Move a manifest, by its id or APP@VERSION, to its next stage", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			stage, err := step.stage()
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			input := gql.PromoteManifestInput{To: stage, Reason: step.reason, SmokeInstanceId: step.smoke}
			if step.percent != 0 {
				if stage != gql.StageCanary {
					return usagef("--percent is for --to canary")
				}
				input.CanaryPercent = &step.percent
			}
			if input.ManifestId, err = manifestID(ctx, c, args[0]); err != nil {
				return err
			}
			answer, err := gql.PromoteManifest(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showManifest(answer.PromoteManifest)
		})
	step.register(promote)
	promote.Flags().StringVar(&step.smoke, "smoke-instance", "", "for staged: the instance that ran this digest and was torn down with proof")
	promote.Flags().IntVar(&step.percent, "percent", 0, "for canary: percent of the projects that it takes in, 1 to 100; 10 if not given")
	return promote
}

// pageHistory shows the steps of an artifact or manifest, newest first.
func pageHistory(p *render.Page, history []gql.Promotion) {
	var rows [][]string
	for _, step := range history {
		to := string(step.To)
		if step.CanaryPercent != nil {
			to = fmt.Sprintf("%s %d %%", to, *step.CanaryPercent)
		}
		rows = append(rows, []string{render.Time(&step.CreatedAt), string(step.From), to, step.Actor.Name, step.Reason})
	}
	p.Section("History")
	p.Table([]string{"AT", "FROM", "TO", "BY", "WHY"}, rows)
}
