package walker

import (
	"context"
	"crypto/tls"
	"net/url"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/runbook"
)

// app reads the versions of the app with their stages.
func (w *Walker) app(ctx context.Context, about *Subject, into runbook.Facts) error {
	if about.AppSlug == "" {
		return nil
	}
	answer, err := gql.GetApp(ctx, w.Operator, about.AppSlug)
	if err != nil {
		return err
	}
	for _, edge := range answer.App.Manifests.Edges {
		into.Add("version.stage", edge.Node.Version+" "+string(edge.Node.Stage))
		if edge.Node.Stage == gql.StageCanary && edge.Node.CanaryHaltedAt != nil {
			into.Add("canary.halted", "yes")
		}
	}
	return nil
}

// following is the stage that a version may take next.
var following = map[gql.Stage]gql.Stage{
	gql.StageDraft: gql.StageStaged, gql.StageStaged: gql.StageCanary, gql.StageCanary: gql.StageActive,
	gql.StageActive: gql.StageDeprecated, gql.StageDeprecated: gql.StageRetired,
}

// manifest reads which stage comes next for the version.
func (w *Walker) manifest(ctx context.Context, about *Subject, into runbook.Facts) error {
	if about.ManifestID == "" {
		return nil
	}
	answer, err := gql.GetManifest(ctx, w.Operator, about.ManifestID)
	if err != nil {
		return err
	}
	if found, ok := answer.Node.(*gql.GetManifestNodeManifest); ok {
		into.Add("version.next", string(following[found.Stage]))
	}
	return nil
}

// artifact reads whether the artifact is in quarantine, and why.
func (w *Walker) artifact(ctx context.Context, about *Subject, into runbook.Facts) error {
	if about.ArtifactID == "" {
		return nil
	}
	answer, err := gql.GetArtifactDetail(ctx, w.Operator, about.ArtifactID)
	if err != nil {
		return err
	}
	found, ok := answer.Node.(*gql.GetArtifactDetailNodeArtifact)
	if !ok || found.QuarantinedAt == nil {
		return nil
	}
	if found.QuarantineCode != "" {
		into.Add("artifact.quarantine", found.QuarantineCode)
	} else {
		into.Add("artifact.quarantine", "by hand: "+found.QuarantineReason)
	}
	return nil
}

// sources reads which artifact sources are off, and when their keys end.
func (w *Walker) sources(ctx context.Context, about *Subject, into runbook.Facts) error {
	answer, err := gql.ListArtifactSources(ctx, w.Operator, about.TenantID, pageOf, "")
	if err != nil {
		return err
	}
	for _, edge := range answer.ArtifactSources.Edges {
		if edge.Node.DisabledAt != nil {
			continue
		}
		// What counts is the key that lasts longest: where another one goes on, nothing ends.
		var last *time.Time
		forever := len(edge.Node.Keys) == 0
		for _, key := range edge.Node.Keys {
			switch {
			case key.RevokedAt != nil:
			case key.ValidUntil == nil:
				forever = true
			case last == nil || key.ValidUntil.After(*last):
				last = key.ValidUntil
			}
		}
		if last != nil && !forever {
			into.Add("signer.days", days(*last))
		}
	}
	return nil
}

// accounts reads when keys of service accounts end. One that was rotated has a successor.
func (w *Walker) accounts(ctx context.Context, about *Subject, into runbook.Facts) error {
	if about.ProjectID == "" {
		return nil
	}
	answer, err := gql.ListServiceAccounts(ctx, w.Operator, about.ProjectID, pageOf, "")
	if err != nil {
		return err
	}
	for _, edge := range answer.ServiceAccounts.Edges {
		for _, key := range edge.Node.Keys {
			if key.ExpiresAt != nil && key.RevokedAt == nil && key.ReplacedBy == nil && time.Now().
				Before(*key.ExpiresAt) {
				into.Add("key.days", days(*key.ExpiresAt))
			}
		}
	}
	return nil
}

// certificate reads the end of the certificate at the platform's address. Whether it is trusted is another question.
func (w *Walker) certificate(ctx context.Context, _ *Subject, into runbook.Facts) error {
	at, err := url.Parse(w.URL)
	if err != nil || at.Scheme != "https" {
		return err
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // #nosec G402 -- its end alone is read
	connection, err := dialer.DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	if encrypted, ok := connection.(*tls.Conn); ok {
		for _, one := range encrypted.ConnectionState().PeerCertificates[:1] {
			into.Add("console.days", days(one.NotAfter))
		}
	}
	return nil
}

// feed reads what a live feed ended with.
func (w *Walker) feed(_ context.Context, about *Subject, into runbook.Facts) error {
	into.Add("feed.code", client.CodeOf(about.Feed))
	return nil
}

// webhooks reads which webhooks fail.
func (w *Walker) webhooks(ctx context.Context, about *Subject, into runbook.Facts) error {
	if about.ProjectID == "" {
		return nil
	}
	answer, err := gql.ListWebhooks(ctx, w.Operator, about.ProjectID, pageOf, "")
	if err != nil {
		return err
	}
	for _, edge := range answer.Webhooks.Edges {
		if edge.Node.FailingSince != nil {
			into.Add("webhook.error", edge.Node.LastError)
		}
	}
	return nil
}
