package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/ociregistry"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// newAviary starts a server whose log is kept, with a broken identity provider.
func newAviary(t *testing.T) *aviary {
	t.Helper()
	provider := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(provider.Close)
	file := filepath.Join(t.TempDir(), "oidc-secret")
	require.NoError(t, os.WriteFile(file, []byte("canary-of-the-provider"), 0o600))
	a := &aviary{server: &journal{}, agent: &journal{}, adapters: &journal{}, dir: t.TempDir(),
		canaries: canaries{"our secret at the identity provider": "canary-of-the-provider"}}
	a.bench = newBenchWith(t, a.server.logger(), func(config *Config) {
		config.OIDC = OIDCConfig{Issuer: provider.URL, ClientID: "platform", SecretFile: file}
		config.StopTimeout = time.Second
	})
	return a
}

// house creates the project that secrets are issued in: an instance with a member on a node whose agent is real,
// launched from a manifest that pins an artifact in a guarded registry.
func (a *aviary) house() *world {
	a.t.Helper()
	tenant := a.Tenant()
	project := a.Project(tenant)
	w := &world{project: string(project.ID), operator: a.Session(a.Operator())}
	w.admin = a.Session(a.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	w.viewer = a.Session(a.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	a.canaries["an admin's session"], a.canaries["an operator's session"] = w.admin, w.operator
	a.SQL(`INSERT INTO policy_overlay (id, scope, revision, document, created_at) VALUES ($1, 'PLATFORM', 1,
		'{"secretPurposes":{"allow":["joining","artifact_pull"]}}', now())`, ids.New(ids.PolicyOverlay))
	artifact := a.registry(w)
	app := a.App("apps")
	document := platformtest.Document(app, "1.0.0", a.Adapter("http://adapter.test", nil), artifact)
	document["secretPurposes"] = []string{"joining"}
	stored := a.Manifest(lifecycle.StageActive, document)
	a.Entitle(project, app)
	instance := a.Instance(project, stored, lifecycle.InstanceRunning, a.Allocation(project, a.startAgent(w)))
	operation := a.Kit.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	w.instance = string(instance.ID)
	require.NoError(a.t, a.Admin.QueryRow(a.t.Context(), `SELECT id FROM member WHERE instance_id = $1`,
		instance.ID).Scan(&w.member))
	token := a.OperationToken(operation, authz.Keys()...)
	a.canaries["an operation's token"] = token
	w.adapter = adapter.NewClient(adapter.Platform{GraphQLURL: a.url + "/graphql", Token: token}, "canary",
		a.adapters.logger())
	return w
}

// registry serves an artifact behind the platform's pull tokens.
func (a *aviary) registry(w *world) *db.Artifact {
	a.t.Helper()
	handler, err := ociregistry.New(a.t.TempDir())
	require.NoError(a.t, err)
	server := httptest.NewUnstartedServer(nil)
	w.registry, w.repository = server.Listener.Addr().String(), "apps/canary"
	a.canaries["the registry's password"] = "canary-of-the-registry"
	server.Config.Handler = ociregistry.Auth{
		Hosts: []string{w.registry}, Issuer: platformtest.Issuer,
		Key:  adapter.NewKeySet(a.url+"/.well-known/jwks.json", nil).Key,
		User: "push", Password: a.canaries["the registry's password"],
	}.Protect(handler)
	server.Start()
	a.t.Cleanup(server.Close)
	image, err := random.Image(256, 1)
	require.NoError(a.t, err)
	digest, err := image.Digest()
	require.NoError(a.t, err)
	w.digest = digest.String()
	ref := w.registry + "/" + w.repository + "@" + w.digest
	target, err := name.NewDigest(ref, name.Insecure)
	require.NoError(a.t, err)
	push := &authn.Basic{Username: "push", Password: a.canaries["the registry's password"]}
	require.NoError(a.t, remote.Write(target, image, remote.WithAuth(push)))
	row, err := a.Ent.Artifact.Create().SetID(ids.New(ids.Artifact)).SetName("canary").
		SetMediaType("application/vnd.oci.image.manifest.v1+json").
		SetRef(ref).SetDigest(w.digest).SetSizeBytes(1).SetStage(lifecycle.StageActive).Save(a.t.Context())
	require.NoError(a.t, err)
	return row
}

// startAgent enrols a node and runs its agent as a process until the test ends.
func (a *aviary) startAgent(w *world) *db.ComputeNode {
	a.t.Helper()
	program := filepath.Join(a.t.TempDir(), "node-agent")
	built, err := exec.CommandContext(a.t.Context(), "go", "build", "-o", program,
		"github.com/gpuaas/app-platform/cmd/node-agent").CombinedOutput()
	require.NoError(a.t, err, string(built))
	minted, err := gql.CreateNodeEnrolment(a.t.Context(), a.client(w.operator),
		gql.CreateNodeEnrolmentInput{Name: "canary", TtlMinutes: 5})
	require.NoError(a.t, err)
	a.canaries["a node's enrolment"] = minted.CreateNodeEnrolment.Token
	command := exec.Command(program, "--platform-url", a.url, "--state-dir", a.dir, "--name", "canary", "--address",
		"127.0.0.1",
		"--gpus", "1", "--gpu-model", "none", "--simulated-gpus", "--no-namespaces", "--log-level", "debug")
	command.Env = append(os.Environ(), "NODE_AGENT_ENROL_TOKEN="+minted.CreateNodeEnrolment.Token)
	command.Stdout, command.Stderr = a.agent, a.agent
	require.NoError(a.t, command.Start())
	a.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	var found *db.ComputeNode
	require.Eventually(a.t, func() bool {
		node, err := a.Ent.ComputeNode.Query().Only(a.t.Context())
		found = node
		return err == nil && node.Status == lifecycle.NodeOnline
	}, patience, 50*time.Millisecond, "the agent is heard")
	raw, err := os.ReadFile(filepath.Join(a.dir, "credential.json"))
	require.NoError(a.t, err)
	_, rest, ok := strings.Cut(string(raw), `"gpu_nod_`)
	require.True(a.t, ok)
	credential, _, _ := strings.Cut(rest, `"`)
	a.canaries["a node's credential"] = "gpu_nod_" + credential
	return found
}

// teardown ends the member, whose init outlives the agent.
func (a *aviary) teardown(w *world) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked, err := gql.RunNodeTask(ctx, w.adapter, gql.RunNodeTaskInput{MemberId: w.member,
		Kind: gql.NodeTaskKindTeardown,
		Spec: []byte(`{}`), IdempotencyKey: "teardown"})
	require.NoError(a.t, err)
	done, err := gql.GetNodeTask(ctx, w.adapter, asked.RunNodeTask.Id, 20)
	require.NoError(a.t, err)
	require.Equal(a.t, gql.NodeTaskStateSucceeded, done.NodeTask.State)
}

// journal is a log in memory.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// canaries are secrets by what they are; a leak is one of them where it has no business.
type canaries map[string]string

// in names the canaries that a text holds, plain, in base64 or in hexadecimal.
func (c canaries) in(sink, text string) (found []string) {
	for name, value := range c {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)),
			hex.EncodeToString([]byte(value))} {
			if strings.Contains(text, strings.TrimRight(form, "=")) {
				found = append(found, name+" in "+sink)
				break
			}
		}
	}
	return found
}
