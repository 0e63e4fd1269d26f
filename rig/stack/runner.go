package stack

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"path/filepath"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/stack/edition"
	"github.com/gpuaas/app-platform/rig/stack/keys"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// runnerName is what this installation's runner is registered as. It signs the reports that the reference apps'
// controllers hold: this repository's tests make them, and compare them with every run of the conformance suite.
const runnerName = "this-installation"

func (s *Stack) runnerKeyFile() string { return filepath.Join(s.config.Dir, "runner.key") }

// runnerKey returns the runner's key.
func (s *Stack) runnerKey() (ed25519.PrivateKey, error) {
	key, err := keys.Kept(s.runnerKeyFile(), signing.Ed25519)
	if err != nil {
		return nil, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is not an Ed25519 key: delete it", s.runnerKeyFile())
	}
	return private, nil
}

// seedRunner registers the runner of this folder, once.
func (s *Stack) seedRunner(ctx context.Context) error {
	key, err := s.runnerKey()
	if err != nil {
		return err
	}
	public := base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	known, err := gql.ListRunners(ctx, s.Operator)
	if err != nil {
		return err
	}
	for _, one := range known.EvidenceRunners {
		if one.PublicKey == public {
			return nil
		}
	}
	_, err = gql.RegisterRunner(ctx, s.Operator, gql.RegisterRunnerInput{Name: runnerName, PublicKey: public,
		Reason: override})
	return err
}

// bring hands in the reports of the conformance suite that a controller's program holds of its own build, signed by
// this installation's runner. A launchable app's manifest needs none for its promotion; its onboarding does.
func (s *Stack) bring(ctx context.Context, app App, manifestID string, document edition.Document) error {
	key, err := s.runnerKey()
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		as   gql.EvidenceKind
	}{{"conformance", gql.EvidenceKindConformance}, {"tenancy", gql.EvidenceKindTenancy}} {
		report, err := output(ctx, s.controller(app), "--print-evidence", kind.name)
		if err != nil {
			return err
		}
		switch {
		case len(report) > 0:
		case document.Text("artifactKind") != "controller":
			continue // a rig's own app has none, and is not made ready for onboarding
		default:
			return fmt.Errorf("%s has no %s report of its build", app.Controller, kind.name)
		}
		sum := digest.Of(report)
		signature := ed25519.Sign(key, evidence.Statement(lifecycle.EvidenceKind(kind.as), sum))
		_, err = gql.SubmitEvidence(ctx, s.Operator, gql.SubmitEvidenceInput{ManifestId: manifestID, Kind: kind.as,
			Report: string(report), Digest: sum, Signature: base64.StdEncoding.EncodeToString(signature)})
		if err != nil {
			return fmt.Errorf("submit the %s report: %w", kind.name, err)
		}
	}
	return nil
}
