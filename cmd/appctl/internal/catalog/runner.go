package catalog

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/signing"
	artifactsmoke "github.com/gpuaas/app-platform/sdk/smoke"
)

// sign returns the command with which a runner signs a report. The key never leaves the machine.
func sign(t *command.Tool) *cobra.Command {
	var kind, key string
	cmd := t.Command("sign FILE", "Sign a report with a runner's key, and write the signature",
		func(_ context.Context, args []string) error {
			of, err := command.Enum("kind", kind, append(slices.Clone(evidenceKinds), artifactsmoke.SignedAs))
			if err != nil {
				return err
			}
			text, err := values.ReadFile(args[0], t.Env.Stdin)
			if err != nil {
				return command.Usagef("report: %w", err)
			}
			signature, err := parts.SignReport(key, string(of), text)
			if err != nil {
				return command.Usagef("--key: %w", err)
			}
			_, err = fmt.Fprintln(t.Env.Stdout, signature)
			return err
		})
	cmd.Flags().StringVar(&kind, "kind", "conformance",
		"what it shows: conformance or tenancy; smoke for the smoke test of an artifact")
	cmd.Flags().StringVar(&key, "key", "",
		"PEM file with the runner's Ed25519 private key (appctl artifact keygen --algorithm ed25519)")
	command.Need(cmd, "key")
	return cmd
}

// registerRunner returns the command that has a runner's reports count.
func registerRunner(t *command.Tool) *cobra.Command {
	var input gql.RegisterRunnerInput
	var file string
	cmd := command.Verb(t, "register NAME", "Accept the reports that a runner signs", viewRunner,
		func(ctx context.Context, args []string) (gql.EvidenceRunner, error) {
			input.Name = args[0]
			if err := publicKey(&input, file); err != nil {
				return gql.EvidenceRunner{}, command.Usagef("--key: %w", err)
			}
			answer, err := gql.RegisterRunner(ctx, t, input)
			return answer.RegisterRunner, err
		})
	cmd.Flags().StringVar(&input.PublicKey, "public-key", "", "its Ed25519 public key, 32 bytes in base64")
	cmd.Flags().StringVar(&file, "key", "", "PEM file with its Ed25519 public key, instead of --public-key")
	cmd.MarkFlagsOneRequired("public-key", "key")
	cmd.MarkFlagsMutuallyExclusive("public-key", "key")
	command.NeededReasonFlag(cmd, &input.Reason)
	return cmd
}

// publicKey reads the key from a PEM file, if one is given.
func publicKey(input *gql.RegisterRunnerInput, file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	public, err := signing.ParsePublic(text)
	if err != nil {
		return err
	}
	input.PublicKey, err = signing.RunnerKey(public.Key)
	return err
}

// revokeRunner returns the command that ends a runner.
func revokeRunner(t *command.Tool) *cobra.Command {
	var reason string
	cmd := command.Verb(t, "revoke RUNNER", "Stop accepting the reports that a runner, by its id, has signed",
		viewRunner,
		func(ctx context.Context, args []string) (gql.EvidenceRunner, error) {
			answer, err := gql.RevokeRunner(ctx, t, args[0], reason)
			return answer.RevokeRunner, err
		})
	command.NeededReasonFlag(cmd, &reason)
	return cmd
}

func viewRunner(made gql.EvidenceRunner) command.View {
	return command.One(made, made.Id, "Name", made.Name, "Public key", made.PublicKey, "Revoked",
		render.Time(made.RevokedAt))
}

// listRunners returns the command that lists the runners whose reports count.
func listRunners(t *command.Tool) *cobra.Command {
	return command.Verb(t, "list", "List the runners whose reports are accepted, and revoked ones", runners.View,
		func(ctx context.Context, _ []string) ([]gql.EvidenceRunner, error) {
			answer, err := gql.ListRunners(ctx, t)
			return answer.EvidenceRunners, err
		})
}

var runners = command.Table[gql.EvidenceRunner]{
	Heading: []string{"ID", "NAME", "PUBLIC KEY", "SINCE", "REVOKED", "WHY"},
	Row: func(one *gql.EvidenceRunner) []string {
		return []string{one.Id, one.Name, one.PublicKey, render.Time(&one.CreatedAt), render.Time(one.RevokedAt),
			one.RevokeReason}
	},
}
