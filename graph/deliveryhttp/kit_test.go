package deliveryhttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/deliveryhttp"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/delivery"
	"github.com/gpuaas/app-platform/service/kit/origin"
)

const password = "the-source-password"

// registry is a source for tests: it has bytes by their digest, requires a password, and fails as a test sets it.
type registry struct {
	*httptest.Server
	mu       sync.Mutex
	has      map[string][]byte
	password string
	asked    []string
	breakAt  int64         // bytes of a blob after which it breaks off; 0 for never
	hold     chan struct{} // blobs wait for it before their last byte
	down     bool
}

func newRegistry(t *testing.T) *registry {
	r := &registry{has: map[string][]byte{}, password: password}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *registry) host() string { return strings.TrimPrefix(r.URL, "http://") }

func (r *registry) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	data, ok := r.has[path.Base(q.URL.Path)]
	down, wanted, breakAt, hold := r.down, r.password, r.breakAt, r.hold
	r.asked = append(r.asked, q.Method+" "+path.Base(path.Dir(q.URL.Path)))
	r.mu.Unlock()
	_, shown, _ := q.BasicAuth()
	switch {
	case down:
		w.WriteHeader(http.StatusBadGateway)
	case shown != wanted:
		w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
		w.WriteHeader(http.StatusUnauthorized)
	case q.URL.Path == "/v2/":
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case strings.Contains(q.URL.Path, "/manifests/"):
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write(data)
	default:
		http.ServeContent(w, q, "", time.Time{}, &faulty{Reader: bytes.NewReader(data), breakAt: breakAt, hold: hold})
	}
}

// faulty is a blob that breaks off, or waits.
type faulty struct {
	*bytes.Reader
	breakAt int64
	hold    chan struct{}
}

func (f *faulty) Read(into []byte) (int, error) {
	at := f.Size() - int64(f.Len())
	switch {
	case f.breakAt > 0 && at >= f.breakAt:
		panic(http.ErrAbortHandler)
	case f.breakAt > 0:
		into = into[:min(int64(len(into)), f.breakAt-at)]
	case f.hold != nil && f.Len() > 1:
		into = into[:min(len(into), f.Len()-1)]
	case f.hold != nil && f.Len() == 1:
		<-f.hold
	}
	return f.Reader.Read(into)
}

func (f *faulty) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{f}) }

// verbs keeps the service's fields below those of the kit.
type verbs struct{ *delivery.Service }

// house is an instance on a node with a task that fetches the artifact its manifest pins, and a registry that has it.
type house struct {
	*platformtest.Kit
	verbs
	t        *testing.T
	Stats    deliveryhttp.Stats
	registry *registry
	web      *httptest.Server
	tenant   *db.Tenant
	project  *db.Project
	instance *db.Instance
	node     *db.ComputeNode
	agent    context.Context
	source   *db.ArtifactSource
	artifact *db.Artifact
	task     *db.NodeTask
	manifest []byte
	layer    []byte
}

func setup(t *testing.T) *house {
	t.Helper()
	kit := platformtest.New(t)
	h := &house{Kit: kit, t: t, registry: newRegistry(t)}
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	h.verbs = verbs{&delivery.Service{
		DB: kit.DB, Vault: vault, Keys: kit.Ring, Reach: fetch.Reach{Insecure: []string{h.registry.host()}},
	}}
	h.web = httptest.NewServer(&deliveryhttp.Handler{Deliveries: h.Service, Stats: &h.Stats})
	t.Cleanup(h.web.Close)
	h.URL = h.web.URL + deliveryhttp.Path
	h.tenant = kit.Tenant()
	h.project = kit.Project(h.tenant)
	_, stored := kit.Launchable(h.project, "apps")
	var credential string
	h.node, credential = kit.Node(4)
	h.agent = kit.With(credential)
	h.instance = kit.Instance(h.project, stored, lifecycle.InstanceRunning, kit.Allocation(h.project, h.node))
	h.source = kit.Source(nil, lifecycle.SourceOCI, h.registry.host())
	h.credential(password)
	h.layer = bytes.Repeat([]byte("weights "), 1<<17) // 1 MiB
	h.manifest = []byte(fmt.Sprintf(`{"schemaVersion":2,"layers":[{"digest":%q,"size":%d}]}`,
		platformtest.Digest(h.layer), len(h.layer)))
	h.publish(stored)
	h.task = h.fetching(platformtest.Digest(h.manifest))
	return h
}

// credential gives the source a credential.
func (h *house) credential(value string) {
	h.t.Helper()
	sealed, err := h.Vault.Seal(h.t.Context(), []byte(value), origin.Associated(h.source.ID))
	require.NoError(h.t, err)
	require.NoError(h.t, h.Ent.ArtifactSource.UpdateOneID(h.source.ID).SetCredential(sealed).
		SetCredentialUser("puller").Exec(h.t.Context()))
}

// publish makes what the manifest pins the artifact that the registry has.
func (h *house) publish(stored *db.Manifest) {
	h.t.Helper()
	var id ids.ID
	require.NoError(h.t, h.Admin.QueryRow(h.t.Context(),
		`SELECT artifact_id FROM manifest_artifact WHERE manifest_id = $1`, stored.ID).Scan((*string)(&id)))
	digest := platformtest.Digest(h.manifest)
	var err error
	h.artifact, err = h.Ent.Artifact.UpdateOneID(id).SetDigest(digest).SetRef(h.registry.host() + "/models/small@" +
		digest).
		SetSourceID(h.source.ID).SetKind(lifecycle.ArtifactOCI).Save(h.t.Context())
	require.NoError(h.t, err)
	for i, data := range [][]byte{h.manifest, h.layer} {
		role := []lifecycle.PartRole{lifecycle.PartManifest, lifecycle.PartLayer}[i]
		h.registry.has[platformtest.Digest(data)] = data
		require.NoError(h.t, h.Ent.ArtifactPart.Create().SetID(ids.New(ids.Artifact)).SetArtifactID(id).SetPosition(i).
			SetRole(role).
			SetDigest(platformtest.Digest(data)).SetMediaType("application/x-test").SetSizeBytes(int64(len(data))).
			Exec(h.t.Context()))
	}
}

// fetching is a running task of the instance's member that fetches a digest.
func (h *house) fetching(digest string) *db.NodeTask {
	h.t.Helper()
	spec, err := json.Marshal(map[string]any{"digest": digest, "path": "/srv/model"})
	require.NoError(h.t, err)
	return h.running(lifecycle.TaskFetchArtifact, spec)
}

func (h *house) running(kind lifecycle.NodeTaskKind, spec []byte) *db.NodeTask {
	h.t.Helper()
	id := ids.New(ids.NodeTask)
	h.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec, spec_digest,
		fence, state,
		timeout_seconds, idempotency_key, created_at) SELECT $1, tenant_id, project_id, instance_id, id, node_id, $2, $3, '',
		1, 'RUNNING', 60, $1, now()
		FROM member WHERE instance_id = $4`, id, string(kind), spec, h.instance.ID)
	row, err := h.Ent.NodeTask.Get(h.t.Context(), id)
	require.NoError(h.t, err)
	return row
}

func (h *house) open() *delivery.Delivery {
	h.t.Helper()
	out, err := h.Open(h.agent, h.task.ID)
	require.NoError(h.t, err)
	return out
}

// ask sends a request for a part; headers are pairs.
func (h *house) ask(method, digest, token string, headers ...string) *http.Response {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), method, h.web.URL+deliveryhttp.Path+digest, nil)
	require.NoError(h.t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := h.web.Client().Do(request)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// get fetches all of an answer.
func (h *house) get(digest, token string, headers ...string) (*http.Response, []byte) {
	h.t.Helper()
	response := h.ask(http.MethodGet, digest, token, headers...)
	data, err := io.ReadAll(response.Body)
	require.NoError(h.t, err)
	return response, data
}

// denied wants an answer that is the platform's envelope with a code.
func (h *house) denied(response *http.Response, status int, code string) {
	h.t.Helper()
	data, err := io.ReadAll(response.Body)
	require.NoError(h.t, err)
	require.Equal(h.t, status, response.StatusCode, "%s", data)
	var envelope struct {
		Errors []struct {
			Message    string
			Extensions struct {
				Code          string
				CorrelationID string `json:"correlation_id"`
				Retryable     bool
				Reasons       []any
			}
		}
	}
	require.NoError(h.t, json.Unmarshal(data, &envelope), "%s", data)
	require.Equal(h.t, code, envelope.Errors[0].Extensions.Code, "%s", data)
	require.NotEmpty(h.t, envelope.Errors[0].Message)
	require.NotNil(h.t, envelope.Errors[0].Extensions.Reasons)
	require.Equal(h.t, response.Header.Get("X-Correlation-ID"), envelope.Errors[0].Extensions.CorrelationID)
	require.NotContains(h.t, string(data), password)
	require.NotContains(h.t, string(data), h.registry.host())
}
