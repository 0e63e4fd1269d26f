package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Promote returns the command that moves a manifest to its next stage.
func Promote(t *command.Tool) *cobra.Command {
	var step parts.Promotion
	var smoke, override string
	var percent int
	cmd := command.Verb(t, "promote MANIFEST", "Move a manifest, by its id or APP@VERSION, to its next stage", view,
		func(ctx context.Context, args []string) (none gql.Manifest, err error) {
			input := gql.PromoteManifestInput{Reason: step.Reason, SmokeInstanceId: smoke,
				CanaryPercent: command.Given(percent), Override: override}
			if input.To, err = step.Stage(); err != nil {
				return none, err
			}
			if _, err := t.Connect(); err != nil {
				return none, err
			}
			if percent != 0 && input.To != gql.StageCanary {
				return none, command.Usagef("--percent needs --to canary")
			}
			if input.ManifestId, err = idOf(ctx, t, args[0]); err != nil {
				return none, err
			}
			answer, err := gql.PromoteManifest(ctx, t, input)
			return answer.PromoteManifest, err
		})
	step.Register(cmd)
	cmd.Flags().StringVar(&smoke, "smoke-instance", "",
		"for staged: the instance that ran this digest and was torn down with proof")
	cmd.Flags().StringVar(&override, "override", "",
		"why the step's terms are waived, kept in history and audit; for the platform's staff")
	cmd.Flags().IntVar(&percent, "percent", 0,
		"for canary: percent of the projects that it includes, 1 to 100; 10 if not given")
	return cmd
}

// evidenceKinds are the kinds of evidence that a publisher submits.
var evidenceKinds = []gql.EvidenceKind{gql.EvidenceKindConformance, gql.EvidenceKindTenancy}

// submit returns the command that submits evidence. The digest that is sent is the report's own unless one is given,
// which the platform then checks the report against.
func submit(t *command.Tool) *cobra.Command {
	var kind, digest, signature string
	cmd := command.Verb(t, "submit MANIFEST FILE",
		"Submit a report, as `appctl adapter check --json` writes it, for a version by id or APP@VERSION", viewEvidence,
		func(ctx context.Context, args []string) (none gql.PromotionEvidence, err error) {
			var input gql.SubmitEvidenceInput
			if input.Kind, err = command.Enum("kind", kind, evidenceKinds); err != nil {
				return none, err
			}
			text, err := values.ReadFile(args[1], t.Env.Stdin)
			if err != nil {
				return none, command.Usagef("report: %w", err)
			}
			if input.ManifestId, err = idOf(ctx, t, args[0]); err != nil {
				return none, err
			}
			if input.Signature, err = signatureOf(t, signature); err != nil {
				return none, err
			}
			sum := sha256.Sum256(text)
			input.Report, input.Digest = string(text), cmp.Or(digest, "sha256:"+hex.EncodeToString(sum[:]))
			answer, err := gql.SubmitEvidence(ctx, t, input)
			return answer.SubmitEvidence, err
		})
	cmd.Flags().StringVar(&kind, "kind", "conformance", "what it shows: conformance or tenancy")
	cmd.Flags().StringVar(&digest, "digest", "",
		"the digest that the report must have, sha256:…; the report's own if not given")
	cmd.Flags().StringVar(&signature, "signature", "",
		"file with a registered runner's signature of the report, as `appctl evidence sign` writes it")
	return cmd
}

// signatureOf reads a signature's file; empty for none.
func signatureOf(t *command.Tool, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := values.ReadFile(file, t.Env.Stdin)
	if err != nil {
		return "", command.Usagef("signature: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func viewEvidence(made gql.PromotionEvidence) command.View {
	return command.One(made, made.Id, "Manifest", made.ManifestId, "Kind", strings.ToLower(string(made.Kind)),
		"Result", resultOf(made.Passed), "Digest", made.Digest)
}

func report(t *command.Tool) *cobra.Command {
	of := func(ctx context.Context, args []string) (string, error) { return idOf(ctx, t, args[0]) }
	return command.Of(t, "report MANIFEST",
		"Compare the canary of a version, by its id or APP@VERSION, with the active version", of, viewCanary,
		func(ctx context.Context, id string, _ []string) (*gql.CanaryReport, error) {
			answer, err := gql.GetCanaryReport(ctx, t, id)
			return &answer.CanaryReport, err
		})
}

// viewCanary shows a canary's verdict with the launches that it rests on.
func viewCanary(report *gql.CanaryReport) command.View {
	halted, evidence := "", 0.0
	if report.HaltedAt != nil {
		halted = fmt.Sprintf("%s: %s", render.Time(report.HaltedAt), report.HaltReason)
	}
	if n := len(report.Points); n > 0 {
		evidence = report.Points[n-1].Evidence
	}
	rows := [][]string{armRow("canary", &report.Canary)}
	if report.Active != nil {
		rows = append(rows, armRow("active", report.Active))
	}
	return command.Detail(report, string(report.Verdict), func(p *render.Page) {
		p.Fields("Verdict", string(report.Verdict), "Percent", strconv.Itoa(report.Percent),
			"Since", render.Time(report.StartedAt), "Halted", halted,
			"Evidence", fmt.Sprintf("%.2f, halts at %.2f", evidence, report.Threshold))
		p.Section("Launches")
		p.Table([]string{
			"ARM", "VERSION", "ENDED", "FAILED", "PENDING", "RATE", "OTHER", "OTHER FAILED", "RUNNING P50",
			"RUNNING P90",
		}, rows)
	})
}

func armRow(name string, arm *gql.CanaryArm) []string {
	return []string{
		name, arm.Manifest.Version, strconv.Itoa(arm.Launches), strconv.Itoa(arm.Failed), strconv.Itoa(arm.Pending),
		render.Number(arm.FailureRate, "%.3f"), strconv.Itoa(arm.Operations), strconv.Itoa(arm.OperationsFailed),
		render.Number(arm.TimeToRunningP50, "%.1fs"), render.Number(arm.TimeToRunningP90, "%.1fs"),
	}
}

// percent returns the command that widens or narrows a canary.
func percent(t *command.Tool) *cobra.Command {
	var reason string
	cmd := command.Verb(t, "percent MANIFEST PERCENT", "Set the percent of projects that a canary has, 1 to 100", view,
		func(ctx context.Context, args []string) (none gql.Manifest, err error) {
			share, err := strconv.Atoi(args[1])
			if err != nil {
				return none, command.Usagef("percent %q: must be a whole number, 1 to 100", args[1])
			}
			id, err := idOf(ctx, t, args[0])
			if err != nil {
				return none, err
			}
			answer, err := gql.SetCanaryPercent(ctx, t, id, share, reason)
			return answer.SetCanaryPercent, err
		})
	command.NeededReasonFlag(cmd, &reason)
	return cmd
}
