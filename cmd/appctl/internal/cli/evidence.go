package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// evidenceKinds are the kinds of evidence that a publisher brings.
var evidenceKinds = []gql.EvidenceKind{gql.EvidenceKindConformance, gql.EvidenceKindTenancy}

func (t *tool) evidenceCommand() *cobra.Command {
	return group("evidence", "Reports that a version's promotion rests on", t.evidenceSubmit())
}

func (t *tool) evidenceSubmit() *cobra.Command {
	var kind, digest string
	submit := t.command("submit MANIFEST FILE", "Bring a report, as `appctl adapter check --json` writes it, for a version by its id or APP@VERSION", cobra.ExactArgs(2),
		func(ctx context.Context, args []string) error {
			kinds, err := enums("kind", []string{kind}, evidenceKinds)
			if err != nil {
				return err
			}
			report, err := values.ReadFile(args[1], t.Env.Stdin)
			if err != nil {
				return usagef("report: %w", err)
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			id, err := manifestID(ctx, c, args[0])
			if err != nil {
				return err
			}
			sum := sha256.Sum256(report)
			answer, err := gql.SubmitEvidence(ctx, c, gql.SubmitEvidenceInput{ManifestId: id, Kind: kinds[0], Report: string(report),
				Digest: firstOf(digest, "sha256:"+hex.EncodeToString(sum[:]))})
			if err != nil {
				return err
			}
			made := answer.SubmitEvidence
			return t.showOne(made, made.Id, "Manifest", made.ManifestId, "Kind", strings.ToLower(string(made.Kind)), "Result", passedText(made.Passed),
				"Digest", made.Digest)
		})
	submit.Flags().StringVar(&kind, "kind", "conformance", "what it shows: conformance or tenancy")
	submit.Flags().StringVar(&digest, "digest", "", "the digest that the report must have, sha256:…; what it has if not given")
	return submit
}
