package artifacts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/smoke"
)

// smokeRun is a smoke of an artifact's kind, on this machine.
type smokeRun struct {
	t           *command.Tool
	where       registryFlags
	engine      string
	flags       []string
	key, report string
	options     smoke.Options
}

// runSmoke returns the command with which a runner runs an artifact once, signs what it saw, and brings it.
func runSmoke(t *command.Tool) *cobra.Command {
	s := smokeRun{t: t}
	cmd := command.Verb(t, "smoke ARTIFACT [-- ARGUMENT...]",
		"Run the smoke test of an artifact here, sign the report as a registered runner, and submit it", viewSmoke,
		func(ctx context.Context, args []string) (gql.ArtifactSmoke, error) {
			return s.run(ctx, args[0], args[1:])
		})
	cmd.Long = `Fetch all of the artifact and check every part's digest. An image is also started once by a container
engine, without a network: its command, with the arguments after --, must end with 0 or stay up. The report is signed
with the runner's key, which never leaves this machine. A smoke test that fails is submitted too; the exit code is then
1.`
	cmd.Example = `  appctl artifact smoke sha256:… --key runner.key
  appctl artifact smoke art_… --key runner.key --engine-flag=--user=65532 -- serve --check`
	cmd.Args = cobra.MinimumNArgs(1)
	flags := cmd.Flags()
	flags.StringVar(&s.key, "key", "",
		"PEM file with the runner's Ed25519 private key (appctl artifact keygen --algorithm ed25519)")
	flags.StringVar(&s.report, "report", "", "file to write the report to as well")
	flags.StringVar(&s.engine, "engine", "podman",
		"container engine of this machine, with its own flags, such as podman or docker")
	flags.StringArrayVar(&s.flags, "engine-flag", nil, "flag of the engine's run command; repeat for more")
	flags.DurationVar(&s.options.Up, "up", 5*time.Second, "how long a command that does not end must stay up")
	flags.DurationVar(&s.options.Timeout, "timeout", 15*time.Minute, "time limit of the whole smoke test")
	s.where.register(cmd)
	command.Need(cmd, "key")
	return cmd
}

func (s *smokeRun) run(ctx context.Context, given string, arguments []string) (none gql.ArtifactSmoke, err error) {
	if s.options.Registry, err = s.where.registry(s.t.Env); err != nil {
		return none, err
	}
	s.options.Engine, s.options.Flags = strings.Fields(s.engine), s.flags
	s.options.Command, s.options.Tool = arguments, "appctl artifact smoke"
	if len(s.options.Engine) == 0 {
		return none, command.Usagef("--engine: name a container engine")
	}
	if _, err := parts.SignReport(s.key, smoke.SignedAs, nil); err != nil { // before anything is run
		return none, command.Usagef("--key: %w", err)
	}
	id, err := idOf(ctx, s.t, given)
	if err != nil {
		return none, err
	}
	found, err := gql.GetArtifactDetail(ctx, s.t, id)
	if err != nil {
		return none, err
	}
	artifact, ok := found.Node.(*gql.GetArtifactDetailNodeArtifact)
	if !ok {
		return none, command.NotFoundf("there is no artifact %s", id)
	}
	report, err := smoke.Run(ctx, smoke.Subject{Ref: artifact.Ref, Digest: artifact.Digest, Kind: string(artifact.Kind),
		Bytes: int64(artifact.SizeBytes)}, s.options)
	if err != nil {
		return none, err
	}
	return s.bring(ctx, artifact.Id, report)
}

// bring signs the report and submits it. A smoke that failed is an error after that.
func (s *smokeRun) bring(ctx context.Context, id string, report *smoke.Report) (none gql.ArtifactSmoke, err error) {
	text, err := report.Encode()
	if err != nil {
		return none, err
	}
	if s.report != "" {
		if err := os.WriteFile(s.report, text, 0o600); err != nil {
			return none, err
		}
	}
	signature, err := parts.SignReport(s.key, smoke.SignedAs, text)
	if err != nil {
		return none, err
	}
	made, err := submitted(ctx, s.t, id, text, signature)
	if err != nil {
		return none, err
	}
	for _, one := range report.Checks {
		if one.Outcome != "passed" {
			return made, command.Failed(fmt.Errorf("check %q of the smoke failed: %s", one.Name, one.Detail))
		}
	}
	return made, nil
}

func submitted(ctx context.Context, t *command.Tool, id string, report []byte,
	signature string) (gql.ArtifactSmoke, error) {
	sum := sha256.Sum256(report)
	answer, err := gql.SubmitArtifactSmoke(ctx, t, gql.SubmitArtifactSmokeInput{
		ArtifactId: id, Report: string(report), Digest: "sha256:" + hex.EncodeToString(sum[:]), Signature: signature,
	})
	return answer.SubmitArtifactSmoke, err
}

// submitSmoke returns the command that brings a report which was signed elsewhere.
func submitSmoke(t *command.Tool) *cobra.Command {
	var signature string
	cmd := command.Verb(t, "submit-smoke ARTIFACT FILE",
		"Submit the report of a smoke test that a runner ran and signed elsewhere", viewSmoke,
		func(ctx context.Context, args []string) (none gql.ArtifactSmoke, err error) {
			text, err := values.ReadFile(args[1], t.Env.Stdin)
			if err != nil {
				return none, command.Usagef("report: %w", err)
			}
			signed, err := values.ReadFile(signature, t.Env.Stdin)
			if err != nil {
				return none, command.Usagef("signature: %w", err)
			}
			id, err := idOf(ctx, t, args[0])
			if err != nil {
				return none, err
			}
			return submitted(ctx, t, id, text, strings.TrimSpace(string(signed)))
		})
	cmd.Flags().StringVar(&signature, "signature", "",
		"file with a registered runner's signature of the report, as `appctl evidence sign --kind smoke` writes it")
	command.Need(cmd, "signature")
	return cmd
}

func viewSmoke(made gql.ArtifactSmoke) command.View {
	return command.One(made, made.Id, "Artifact", made.ArtifactId, "Result", resultOf(made.Passed), "Runner",
		made.RunnerId,
		"Digest", made.Digest)
}

func resultOf(passed bool) string { return cmp.Or(map[bool]string{true: "passed"}[passed], "failed") }
