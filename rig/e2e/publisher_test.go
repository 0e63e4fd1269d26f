package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// publisherKeys is what a publisher's service account may do, as the recipe in examples/publish-ci lists it, and what
// it takes to upgrade what it launched.
var publisherKeys = []string{
	"source.read", "artifact.read", "artifact.publish", "artifact.promote", "manifest.read", "manifest.publish",
	"manifest.promote", "manifest.smoke",
	"project.read", "operation.read", "allocation.read", "allocation.create", "allocation.release",
	"apps.catalog.read", "apps.instance.read", "apps.node.read", "apps.instance.create", "apps.instance.update",
	"apps.instance.delete",
}

// publisher is a project that publishes an app from a repository of its own, with a service account that does it.
type publisher struct {
	t                            *testing.T
	ctx                          context.Context
	app, project, key, source    string
	repository, folder, template string
	signing                      string // the private key that the source trusts
}

// newPublisher makes everything that a tenant's admin makes once for a publisher.
func newPublisher(t *testing.T, app string) *publisher {
	t.Helper()
	ctx := bounded(t)
	p := &publisher{t: t, ctx: ctx, app: app, repository: outside.host + "/" + app + "/image", folder: t.TempDir()}
	project, err := gql.CreateProject(ctx, shared.Operator, gql.CreateProjectInput{
		TenantId: shared.Demo.TenantID, Slug: app + "-team", DisplayName: app, IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	p.project = project.CreateProject.Id
	_, err = gql.GrantRole(ctx, shared.Operator, gql.GrantRoleInput{SubjectId: shared.Demo.OperatorID,
		Role: "project_admin", ProjectId: p.project, Reason: "test"})
	require.NoError(t, err)
	_, err = gql.CreateApp(ctx, shared.Operator, gql.CreateAppInput{Slug: app, DisplayName: app, Summary: "A tiny app.",
		PermissionFamily:   "apps",
		PublisherProjectId: p.project, IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	_, err = gql.SetPromotionTerms(ctx, shared.Operator,
		gql.SetPromotionTermsInput{AppSlug: app, Reason: "a test has no hours to wait"})
	require.NoError(t, err)
	_, err = gql.GrantEntitlement(ctx, shared.Operator, p.project, app, nil, nil, "smoke tests")
	require.NoError(t, err)
	account, err := gql.CreateServiceAccount(ctx, shared.Operator, gql.CreateServiceAccountInput{
		ProjectId: p.project, Name: "ci", PermissionKeys: publisherKeys, IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	key, err := gql.CreateServiceAccountKey(ctx, shared.Operator,
		gql.CreateServiceAccountKeyInput{ServiceAccountId: account.CreateServiceAccount.Id})
	require.NoError(t, err)
	p.key = key.CreateServiceAccountKey.Secret
	admin, err := shared.As(ctx, shared.Demo.AdminID)
	require.NoError(t, err)
	source, err := gql.CreateArtifactSource(ctx, admin,
		gql.CreateArtifactSourceInput{TenantId: shared.Demo.TenantID, Name: app, Kind: gql.SourceKindOci,
			Location: outside.host + "/" + app, SignaturePolicy: gql.SignaturePolicyRequired,
			IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	p.source = source.CreateArtifactSource.Id
	_, err = gql.SetSourceCredential(ctx, admin, gql.SetSourceCredentialInput{SourceId: p.source, User: registryUser,
		Secret: registryPassword})
	require.NoError(t, err)
	private, public := p.keys("release")
	p.signing = private
	_, err = gql.AddSignerKey(ctx, admin, gql.AddSignerKeyInput{SourceId: p.source, Name: "release key",
		PublicKey: public})
	require.NoError(t, err)
	p.template = p.manifest()
	return p
}

// keys makes a key pair by the command line and answers both halves.
func (p *publisher) keys(name string) (private, public string) {
	p.t.Helper()
	base := filepath.Join(p.folder, name)
	p.must("artifact", "keygen", base)
	for ending, into := range map[string]*string{".key": &private, ".pub": &public} {
		text, err := os.ReadFile(base + ending)
		require.NoError(p.t, err)
		*into = string(text)
	}
	return private, public
}

// manifest writes the template of the app's manifest: what the adapter's own program prints, under the app's name.
func (p *publisher) manifest() string {
	p.t.Helper()
	printed, err := exec.CommandContext(p.ctx, "../../bin/oci-launch-controller", "--print-manifest").Output()
	require.NoError(p.t, err)
	var document map[string]any
	require.NoError(p.t, json.Unmarshal(printed, &document))
	document["app"], document["version"] = p.app, "@VERSION@"
	artifact := document["artifacts"].([]any)[0].(map[string]any)
	artifact["ref"], artifact["digest"], artifact["mediaType"] = "@REF@", "@DIGEST@", signing.ManifestType
	text, err := json.Marshal(document)
	require.NoError(p.t, err)
	file := filepath.Join(p.folder, "manifest.json.in")
	require.NoError(p.t, os.WriteFile(file, text, 0o600))
	return file
}

// environment is what a publisher's CI sets.
func (p *publisher) environment(more ...string) []string {
	bin, err := filepath.Abs("../../bin")
	require.NoError(p.t, err)
	return append(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"),
		"XDG_CONFIG_HOME="+filepath.Join(p.folder, "config"),
		"APPCTL_SERVER="+shared.URL, "APPCTL_TOKEN="+p.key, "APPCTL_PROJECT="+p.project,
		"APPCTL_REGISTRY_USER="+registryUser,
		"APPCTL_REGISTRY_PASSWORD="+registryPassword, "APPCTL_SIGNING_KEY="+p.signing), more...)
}

// run runs a program as the publisher's CI does.
func (p *publisher) run(environment []string, program string, args ...string) (said, complaint string, code int) {
	p.t.Helper()
	command := exec.CommandContext(p.ctx, program, args...)
	command.Env = environment
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	_ = command.Run() // the exit code tells
	require.NotNil(p.t, command.ProcessState, "%s does not start", program)
	for _, text := range []string{out.String(), problems.String()} {
		require.NotContains(p.t, text, p.key)
		require.NotContains(p.t, text, registryPassword)
	}
	return out.String(), problems.String(), command.ProcessState.ExitCode()
}

// must runs appctl, which has to succeed, and answers what --quiet writes.
func (p *publisher) must(args ...string) string {
	p.t.Helper()
	said, complaint, code := p.run(p.environment(), "../../bin/appctl", append(args, "--quiet")...)
	require.Zero(p.t, code, "appctl %v: %s", args, complaint)
	return strings.TrimSpace(said)
}

// refused runs appctl, which has to fail with a code, in the platform's words.
func (p *publisher) refused(code string, exit int, args ...string) string {
	p.t.Helper()
	said, complaint, got := p.run(p.environment(), "../../bin/appctl", args...)
	require.Equal(p.t, exit, got, "appctl %v: %s %s", args, said, complaint)
	require.Contains(p.t, complaint, code+":", "appctl %v", args)
	return complaint
}

// release runs the recipe for a version and answers the manifest's id.
func (p *publisher) release(version string) string {
	p.t.Helper()
	said, complaint, code := p.run(p.environment("APP="+p.app, "VERSION="+version, "PROGRAM=../../bin/web-notebook",
		"REPOSITORY="+p.repository,
		"MANIFEST="+p.template, "PLATFORM=linux/"+runtime.GOARCH,
		// no other publisher has these bytes
		"BUILD_FLAGS=--user 65532:65532 --env RELEASE="+version+" --env OF="+p.app,
		"REGISTRY_FLAGS=--plain-http", "CANARY_SECONDS=0", "POLL_SECONDS=0"), "bash",
		"../../examples/publish-ci/publish.sh")
	require.Zero(p.t, code, "%s%s", said, complaint)
	return strings.TrimSpace(said)
}

// push builds an image and pushes it, and answers its pinned reference.
func (p *publisher) push(tag string) (ref, digest string) {
	p.t.Helper()
	layout := filepath.Join(p.t.TempDir(), "image")
	digest = p.must("artifact", "build", layout, "--file", "../../bin/web-notebook", "--env", "TAG="+p.app+tag)
	return p.must("artifact", "push", layout, p.repository+":"+tag, "--plain-http"), digest
}

// stage is a version's stage.
func (p *publisher) stage(version string) gql.Stage {
	p.t.Helper()
	found, err := gql.ListManifests(p.ctx, shared.Operator, "", p.app, nil, 100, "")
	require.NoError(p.t, err)
	for _, edge := range found.Manifests.Edges {
		if edge.Node.Version == version {
			return edge.Node.Stage
		}
	}
	return ""
}

func TestAPublisherTakesAnAppTheWholeWayByCommandLine(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	p := newPublisher(t, "tiny")
	first := p.release("1.0.0")
	require.Equal(t, gql.StageActive, p.stage("1.0.0"))
	require.Equal(t, first, p.release("1.0.0"), "the recipe again goes on where it stopped: at the end")

	allocation := p.must("allocations", "request", "--shape", "gpu-slice", "--gpus", "1", "--name", "tiny")
	instance := p.must("launch", p.app, "--name", "one", "--allocation", allocation, "--wait")
	second := p.release("1.1.0")
	require.NotEqual(t, first, second)
	require.Equal(t, gql.StageActive, p.stage("1.1.0"))
	require.Equal(t, gql.StageDeprecated, p.stage("1.0.0"), "superseded")
	for _, attack := range [][]string{
		{"promote", "manifest", p.app + "@1.0.0", "--to", "retired", "--reason", "mine", "--override", "trust me"},
		{"admin", "app", "terms", p.app, "--reason", "mine"},
		{"admin", "runner", "register", "mine", "--public-key", strings.Repeat("A", 43) + "=", "--reason", "mine"},
	} {
		p.refused("FORBIDDEN", 4, attack...)
	}
	p.refused("FAILED_PRECONDITION", 5, "launch", p.app, "--name", "two", "--allocation", allocation,
		"--version", "1.0.0")

	complaint := p.refused("FAILED_PRECONDITION", 5, "promote", "manifest", p.app+"@1.0.0", "--to", "retired",
		"--reason", "replaced")
	require.Contains(t, complaint, instance, "what still runs it is named")
	p.must("instances", "upgrade", instance, "--version", "1.1.0", "--yes", "--wait")
	found, err := gql.GetInstance(p.ctx, shared.Operator, instance)
	require.NoError(t, err)
	require.Equal(t, "1.1.0", found.Instance.AppVersion)
	require.Equal(t, gql.InstanceStatusRunning, found.Instance.Status)

	p.must("promote", "manifest", p.app+"@1.0.0", "--to", "retired", "--reason", "replaced")
	require.Equal(t, gql.StageRetired, p.stage("1.0.0"))
	p.must("decommission", instance, "--reason", "over", "--wait")
	p.must("allocations", "release", allocation, "--wait")
	history := p.must("manifest", "show", second, "-o", "json")
	for _, said := range []string{`"to": "STAGED"`, `"to": "CANARY"`, `"canaryPercent": 20`, `"to": "ACTIVE"`} {
		require.Contains(t, history, said)
	}
}

// nothing makes sure that the catalog has nothing of a digest.
func (p *publisher) nothing(digest string) {
	p.t.Helper()
	found, err := gql.ListArtifacts(p.ctx, shared.Operator, digest, nil, nil, 10, "")
	require.NoError(p.t, err)
	require.Empty(p.t, found.Artifacts.Edges)
	require.Empty(p.t, p.must("artifact", "list", "--search", digest))
}

func TestWhatAPublisherMayNotPublishLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	p := newPublisher(t, "refused")
	stranger, _ := p.keys("stranger")
	trusted := p.signing
	for name, test := range map[string]struct {
		code   string
		signed string // by this key; empty for not at all
		fault  fault
	}{
		"unsigned":      {"SIGNATURE_MISSING", "", nil},
		"wrong key":     {"SIGNATURE_UNTRUSTED", stranger, nil},
		"tampered blob": {"DIGEST_MISMATCH", trusted, tampers},
		"registry away": {"ARTIFACT_UNAVAILABLE", trusted, goesAway},
	} {
		tag := strings.ReplaceAll(name, " ", "-")
		p.repository = outside.host + "/" + p.app + "/" + tag
		ref, digest := p.push(tag)
		p.signing = test.signed
		if test.signed != "" {
			p.must("artifact", "sign", ref, "--plain-http")
		}
		outside.breaks(p.app+"/"+tag, test.fault)
		p.refused(test.code, 6, "artifact", "publish", ref, "--idempotency-key", "publish-"+tag)
		p.nothing(digest)
		// Once it is in order the same command goes through: nothing of the first try is in its way.
		outside.breaks(p.app+"/"+tag, nil)
		p.signing = trusted
		p.must("artifact", "sign", ref, "--plain-http", "--classic")
		p.must("artifact", "publish", ref, "--idempotency-key", "publish-"+tag)
	}
	p.refused("SOURCE_UNKNOWN", 6, "artifact", "publish", outside.host+"/elsewhere/image@sha256:"+
		strings.Repeat("a", 64))
	_, complaint, code := appctlAs(t, p.ctx, shared.Demo.ServiceAccountKey, "artifact", "publish", p.repository+":x",
		"--project", p.project)
	require.Equal(t, 3, code, complaint)
}
