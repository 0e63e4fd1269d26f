package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/otlptest"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// running is a process of the product with all roles, over TLS, whose metrics the test scrapes.
type running struct {
	*bench
	client  *http.Client
	metrics string
}

// written keeps what a server logs, for the address of its metrics.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (w *written) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(line)
}

func (w *written) find(pattern string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return regexp.MustCompile(pattern).FindStringSubmatch(w.text.String())
}

// newRunning starts a process; prepare sees its database before.
func newRunning(t *testing.T, prepare func(*platformtest.Kit)) *running {
	t.Helper()
	kit := platformtest.New(t)
	prepare(kit)
	config := frugal()
	config.DatabaseURL, config.PublicURL, config.KeysDir = kit.DSN, platformtest.Issuer, t.TempDir()
	config.Listen, config.Edge.MetricsListen = []string{"127.0.0.1:0"}, []string{"127.0.0.1:0"}
	config.AdapterHosts, config.WebhookHosts = []string{"127.0.0.0/8"}, []string{"127.0.0.0/8"}
	config.BillingEvery = time.Second
	config.Traces = otlptest.New(t).Source
	var pool *x509.CertPool
	config.Edge.TLSCert, config.Edge.TLSKey, pool = selfSigned(t)
	config.AdapterCert, config.AdapterKey = config.Edge.TLSCert, config.Edge.TLSKey
	log := &written{}
	server, err := Open(t.Context(), config, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost",
		MinVersion: tls.VersionTLS12}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		require.NoError(t, <-ended)
	})
	w := &running{bench: &bench{Kit: kit, t: t, url: "https://" + server.Addresses()[0]},
		client: &http.Client{Transport: transport, Timeout: patience}}
	require.Eventually(t, func() bool {
		found := log.find(`msg="serving metrics" address=(\S+)`)
		if len(found) == 2 {
			w.metrics = "http://" + found[1] + "/metrics"
		}
		return w.metrics != ""
	}, patience, 5*time.Millisecond)
	return w
}

// scrape reads the metrics as Prometheus does, and as text with what only that has: exemplars.
func (w *running) scrape() map[string]*dto.MetricFamily {
	w.t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(w.raw("")))
	require.NoError(w.t, err)
	return families
}

// raw reads the metrics' text.
func (w *running) raw(accept string) string {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.metrics, nil)
	require.NoError(w.t, err)
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	require.NoError(w.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, response.StatusCode, string(text))
	return string(text)
}

// ask sends a document and returns its answer.
func (w *running) ask(token, document string, variables any) answer {
	w.t.Helper()
	return w.over(w.client, token, document, variables)
}

// value returns the value of the only series of a family with those labels; false without one.
func value(families map[string]*dto.MetricFamily, name string, labels map[string]string) (float64, bool) {
	for _, one := range families[name].GetMetric() {
		found := 0
		for _, pair := range one.GetLabel() {
			if labels[pair.GetName()] == pair.GetValue() {
				found++
			}
		}
		if found == len(labels) {
			return one.GetGauge().GetValue() + one.GetCounter().GetValue() +
				float64(one.GetHistogram().GetSampleCount()), true
		}
	}
	return 0, false
}

// works makes the process do one of everything that it counts: requests that succeed and fail, a subscription, an
// operation, a node's task, a call to an adapter, a webhook.
func (w *running) works() {
	w.t.Helper()
	operator := w.Session(w.Operator())
	tenant := w.Tenant()
	project := w.Project(tenant)
	admin := w.Session(w.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	require.Empty(w.t, w.ask(operator, `{ viewer { __typename } }`, nil).Errors)
	require.NotEmpty(w.t, w.ask(operator, `{ operation(id: "x") { id } }`, nil).Errors)
	require.NotEmpty(w.t, w.ask(operator, `{ nothing }`, nil).Errors)
	for range 3 { // the first writes the caller's scope, the second's answer is kept, the third's shown again
		require.Empty(w.t, w.ask(admin, `query($p: ID!) { instances(projectId: $p) { edges { node { id } } } }`,
			arguments{"p": project.ID}).Errors)
	}

	taken := make(chan struct{}, 64)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken <- struct{}{} }))
	w.t.Cleanup(receiver.Close)
	hook := w.ask(admin, `mutation($in: CreateWebhookInput!) { createWebhook(input: $in) { webhook { id } } }`,
		arguments{"in": object{"projectId": project.ID, "url": receiver.URL, "eventTypes": []string{"apps.*"},
			"idempotencyKey": "hook"}})
	require.Empty(w.t, hook.Errors, hook.Raw)

	follows := w.follow(admin, activityDocument, project.ID)
	node, agent := w.Node(2)
	// no agent beats here
	w.SQL(`UPDATE compute_node SET last_seen_at = now() + interval '1 hour' WHERE id = $1`, node.ID)
	w.follow(agent, tasksDocument, nil)
	allocation := w.Allocation(project, node)
	_ = w.ask(operator, `mutation($in: RegisterAdapterInput!) { registerAdapter(input: $in) { id } }`,
		arguments{"in": object{"name": "stand-in", "url": w.StandIn().URL}})
	w.reports(agent, project, node)

	released := w.ask(admin,
		`mutation($in: ReleaseAllocationInput!) { releaseAllocation(input: $in) { operation { id } } }`,
		arguments{"in": object{"allocationId": allocation.ID, "idempotencyKey": "free"}})
	require.Empty(w.t, released.Errors, released.Raw)
	require.Eventually(w.t, func() bool {
		return w.Count("operation", "state = 'SUCCEEDED'") == 1
	}, patience, 20*time.Millisecond, "the allocation is released")
	require.Eventually(w.t, func() bool {
		events, _, _ := follows.state()
		return events > 0
	}, patience, 20*time.Millisecond, "the subscription has an event")
	select {
	case <-taken:
	case <-time.After(patience):
		require.Fail(w.t, "the webhook has no event")
	}
	answer, err := w.client.Get(w.url + "/auth/nothing")
	require.NoError(w.t, err)
	require.NoError(w.t, answer.Body.Close())
}

// reports has a node's agent report a task: under an old fence, and then as done.
func (w *running) reports(agent string, project *db.Project, node *db.ComputeNode) {
	w.t.Helper()
	_, document := w.Launchable(project, "apps")
	instance := w.Instance(project, document, lifecycle.InstanceRunning, w.Allocation(project, node))
	member, err := w.Ent.Member.Query().Where(dbmember.InstanceID(instance.ID)).First(w.t.Context())
	require.NoError(w.t, err)
	task := ids.New(ids.NodeTask)
	w.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec, spec_digest,
		fence, state,
		timeout_seconds, idempotency_key, created_at) VALUES ($6, $1, $2, $3, $4, $5, 'RUN', '{}', '\x00', 2,
		'PENDING', 60, 'k', now())`, project.TenantID, project.ID, instance.ID, member.ID, node.ID, task)
	const report = `mutation($in: ReportNodeTaskInput!) { reportNodeTask(input: $in) { id } }`
	for fence, code := range []string{1: "STALE_FENCE", 2: ""} {
		if fence == 0 {
			continue
		}
		got := w.ask(agent, report, arguments{"in": object{"taskId": task, "fence": fence,
			"state": "SUCCEEDED", "exitCode": 0}})
		require.Equal(w.t, code, got.code(), got.Raw)
	}
}

// follow is listen over TLS.
func (w *running) follow(token, document string, id any) *listener {
	w.t.Helper()
	return w.dialled(w.client.Transport.(*http.Transport).TLSClientConfig, token, document, id)
}

// TestWhatAProcessDoesIsAMetric: one of everything is counted where it happened, and requests have exemplars.
func TestWhatAProcessDoesIsAMetric(t *testing.T) {
	t.Parallel()
	w := newRunning(t, func(*platformtest.Kit) {})
	w.works()
	for name, labels := range worked {
		require.Eventually(t, func() bool {
			got, _ := value(w.scrape(), name, labels)
			return got > 0
		}, patience, 100*time.Millisecond, "%s %v", name, labels)
	}
	open := w.raw("application/openmetrics-text; version=1.0.0")
	require.Regexp(t,
		`app_platform_request_seconds_bucket\{kind="query",verb="viewer",le="[^"]+"\} \d+ # \{trace_id="[0-9a-f]{32}"\}`,
		open)
	require.Regexp(t, `app_platform_engine_step_seconds_bucket\{step="[a-z_]+",le="[^"]+"\} \d+ # \{trace_id=`, open)
	require.True(t, strings.HasSuffix(open, "# EOF\n"))
	exposes(t, w.scrape())
	documents(t, w.scrape())
}

// labelsOf are the labels that Prometheus itself adds to what it scrapes, or that are of every histogram.
var labelsOf = []string{"", "instance", "job", "le"}

// rare are metrics that a process has only once something is wrong, with their labels.
var rare = map[string][]string{
	"app_platform_breaker_open":        {"adapter"},
	"app_platform_edge_refused_total":  {"bound"},
	"app_platform_feed_holder_seconds": {"kind", "name", "database", "user", "application"},
}

// exposes checks that the series that alerts and dashboards read are there, under the labels that they name.
func exposes(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	for where, text := range expressions(t) {
		for name, wanted := range uses(t, where, text) {
			if name == "up" { // Prometheus's own
				continue
			}
			has, known := rare[name]
			for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
				family, found := families[strings.TrimSuffix(name, suffix)]
				if !found || !strings.HasSuffix(name, suffix) {
					continue
				}
				known = true
				for _, one := range family.GetMetric() {
					for _, pair := range one.GetLabel() {
						has = append(has, pair.GetName())
					}
				}
			}
			require.True(t, known, "%s: no process exposes %s", where, name)
			for _, label := range wanted {
				require.Contains(t, append(has, labelsOf...), label, "%s: %s has no label %s", where, name, label)
			}
		}
	}
}

// worked are series that are above zero once a process has worked.
var worked = map[string]map[string]string{
	"app_platform_request_seconds":              {"verb": "viewer", "kind": "query"},
	"app_platform_request_errors_total":         {"verb": "operation", "code": "INVALID_ARGUMENT"},
	"app_platform_fence_refusals_total":         {"fence": "task"},
	"app_platform_http_requests_total":          {"class": "4xx"},
	"app_platform_engine_claim_seconds":         {},
	"app_platform_engine_claim_latency_seconds": {},
	"app_platform_engine_attempts_total":        {"kind": "ALLOCATION_RELEASE", "outcome": "done"},
	"app_platform_engine_ended_total":           {"kind": "ALLOCATION_RELEASE", "state": "SUCCEEDED"},
	"app_platform_engine_step_seconds":          {},
	"app_platform_adapter_calls_total":          {"call": "describe"},
	"app_platform_adapter_call_seconds":         {"call": "describe"},
	"app_platform_feed_delivery_seconds":        {},
	"app_platform_webhook_try_seconds":          {},
	"app_platform_agents_connected":             {},
	"app_platform_node_tasks_ended_total":       {"kind": "RUN", "state": "SUCCEEDED"},
	"app_platform_sockets":                      {},
	"app_platform_answers_shown_total":          {},
	"app_platform_answers_read_total":           {},
	"app_platform_answers_kept":                 {},
	"app_platform_answers_kept_bytes":           {},
	"app_platform_live_groups":                  {},
	"app_platform_live_subscribers":             {},
	"app_platform_pool_connections":             {"pool": "api", "state": "idle"},
	"app_platform_pool_acquires_total":          {"pool": "worker"},
	"app_platform_database_read_up":             {},
	"app_platform_worker_processes":             {},
	"app_platform_nodes":                        {"status": "ONLINE"},
	"app_platform_certificate_days_left":        {"of": "edge"},
	"go_goroutines":                             {},
	"process_open_fds":                          {},
}
