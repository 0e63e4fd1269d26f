package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

// childEnv makes this test binary a server: its configuration.
const childEnv = "APP_PLATFORM_TEST_SERVER"

// TestMain is a server process of its own when a test starts it as one.
func TestMain(m *testing.M) {
	text := os.Getenv(childEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	config := Defaults()
	if err := json.Unmarshal([]byte(text), config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := Run(context.Background(), config, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serverProcess is a server that is killed as a machine is.
type serverProcess struct {
	t      *testing.T
	config string
	url    string
	counts string // where its metrics are served
	cmd    *exec.Cmd
}

func startServer(t *testing.T, config *Config) *serverProcess {
	address, err := loopback.Address()
	require.NoError(t, err)
	config.Listen = []string{address}
	counts, err := loopback.Address()
	require.NoError(t, err)
	config.Edge.MetricsListen = []string{counts}
	text, err := json.Marshal(config)
	require.NoError(t, err)
	s := &serverProcess{t: t, config: string(text), url: "http://" + config.Listen[0],
		counts: "http://" + counts + "/metrics"}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts it and waits until it answers.
func (s *serverProcess) start() {
	s.t.Helper()
	said := new(bytes.Buffer)
	s.cmd = exec.Command(os.Args[0], "-test.run=^$")
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), childEnv+"="+s.config), said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(s.t, s.cmd.Start())
	ready := func() bool {
		response, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
	require.Eventually(s.t, ready, time.Minute, 20*time.Millisecond, "%s", said)
}

func (s *serverProcess) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// opened is what a node is answered that opens a delivery.
type opened struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	Parts []struct {
		Digest    string  `json:"digest"`
		SizeBytes float64 `json:"sizeBytes"`
	} `json:"parts"`
}

func (s *serverProcess) open(credential string, task ids.ID) opened {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"variables": map[string]any{"id": task},
		"query": `mutation($id: ID!) { openArtifactDelivery(taskId: $id) { url token parts { digest sizeBytes } } }`})
	require.NoError(s.t, err)
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/graphql", bytes.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("Authorization", "Bearer "+credential)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Data   struct{ OpenArtifactDelivery opened }
		Errors []any
	}
	require.NoError(s.t, json.NewDecoder(response.Body).Decode(&answer))
	require.Empty(s.t, answer.Errors)
	return answer.Data.OpenArtifactDelivery
}

// get requests a part from an offset on.
func (o opened) get(t *testing.T, offset int) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+o.Parts[0].Digest, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+o.Token)
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// metrics is what the server counts.
func (s *serverProcess) metrics() string {
	response, err := http.Get(s.counts)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// slowSource gives a file, and the first time only half of it before it waits for the test's end.
func slowSource(t *testing.T, file []byte) *httptest.Server {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(file)))
		_, _ = w.Write(file[:len(file)/2])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // the platform, which is killed
	}))
	t.Cleanup(server.Close)
	return server
}

func TestADeliveryGoesOnByRangeWhenItsServerWasKilled(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	_, stored := kit.Launchable(project, "apps")
	node, credential := kit.Node(1)
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	file := make([]byte, 8<<20)
	_, _ = rand.Read(file)
	digest := platformtest.Digest(file)
	from := slowSource(t, file)
	host := strings.TrimPrefix(from.URL, "http://")
	source := kit.Source(nil, lifecycle.SourceHTTPS, "https://"+host+"/")
	kit.SQL(`UPDATE artifact SET kind = 'BLOB', digest = $2, ref = $3, source_id = $4, size_bytes = $5
		WHERE id = (SELECT artifact_id FROM manifest_artifact WHERE manifest_id
		= $1)`, stored.ID, digest, "https://"+host+"/weights.bin", source.ID, len(file))
	kit.SQL(`INSERT INTO artifact_part (id, artifact_id, position, role, digest, size_bytes)
		SELECT $1, id, 0, 'BLOB', digest, size_bytes FROM artifact WHERE digest = $2`,
		ids.New(ids.Artifact), digest)
	task := ids.New(ids.NodeTask)
	kit.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec, spec_digest,
		fence, state, timeout_seconds,
		idempotency_key, created_at) SELECT $1, tenant_id, project_id, instance_id, id, node_id, 'FETCH_ARTIFACT',
		jsonb_build_object('digest', $2::text, 'path', '/x'), '', 1,
		'RUNNING', 60, 'k', now() FROM member WHERE instance_id = $3`, task, digest, instance.ID)

	config := frugal()
	config.DatabaseURL, config.KeysDir, config.Roles = kit.DSN, t.TempDir(), []string{"api"}
	config.RegistryHosts, config.InsecureRegistries = []string{"127.0.0.0/8"}, []string{host}
	server := startServer(t, config)
	delivery := server.open(credential, task)
	require.Equal(t, server.url+"/v1/artifacts/", delivery.URL)
	require.Equal(t, digest, delivery.Parts[0].Digest)

	response := delivery.get(t, 0)
	require.Equal(t, http.StatusOK, response.StatusCode)
	had := make([]byte, 1<<20)
	_, err := io.ReadFull(response.Body, had)
	require.NoError(t, err)
	server.kill()
	rest, err := io.ReadAll(response.Body)
	require.Error(t, err, "a client must see that it is short")
	had = append(had, rest...)
	require.Less(t, len(had), len(file))

	server.start()
	response = delivery.get(t, len(had))
	require.Equal(t, http.StatusPartialContent, response.StatusCode, "the token holds at whatever process has the keys")
	rest, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, digest, platformtest.Digest(append(had, rest...)))

	counted := fmt.Sprintf("app_platform_delivery_bytes_total %v\n", float64(len(rest)))
	require.Eventually(t, func() bool { // the node may have the last byte before it is counted
		text := server.metrics()
		return strings.Contains(text, counted) && strings.Contains(text, "app_platform_delivery_parts_total 1\n")
	}, 10*time.Second, 10*time.Millisecond)
}
