package gauges_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/workers/gauges"
)

// read returns what a reader publishes, by name and label.
func read(t *testing.T, reader *gauges.Reader) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(reader))
	families, err := registry.Gather()
	require.NoError(t, err)
	found := map[string]float64{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "app_platform_")
			for _, pair := range one.GetLabel() {
				name += " " + pair.GetValue()
			}
			found[name] = one.GetGauge().GetValue()
		}
	}
	return found
}

// world lays down something of everything that is counted.
func world(kit *platformtest.Kit) {
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	_, document := kit.Launchable(project, "apps")
	node, _ := kit.Node(2)
	kit.Node(0)
	instance := kit.Instance(project, document, lifecycle.InstanceRunning, kit.Allocation(project, node))
	kit.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	kit.SQL(`UPDATE compute_node SET status = 'OFFLINE', cordoned = true WHERE id = $1`, node.ID)
	kit.SQL(`UPDATE operation SET next_run_at = now() - interval '90 seconds', created_at = now() - interval '1 hour'`)
	kit.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec, spec_digest,
		fence, state,
		timeout_seconds, idempotency_key, created_at) SELECT $1, tenant_id, project_id, instance_id, id, node_id, 'RUN', '{}', '\x00', 1,
		'PENDING', 60, 'k', now() - interval '5 minutes' FROM member`, ids.New(ids.NodeTask))
	kit.Adapter("http://127.0.0.1:1", nil)
	kit.SQL(`UPDATE adapter SET last_error = 'away'`)
	kit.SQL(`INSERT INTO worker_process (id, host, heartbeat_at, created_at)
		VALUES ('w1', 'h', now(), now()), ('w2', 'h', now() - interval '1 minute', now())`)
	kit.SQL(`INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
		VALUES ('bp', $1, 'EUR', 3600, now() - interval '40 days', now() - interval '3 hours', 'CLOSING')`, tenant.ID)
	kit.SQL(`INSERT INTO billing_look (generation, watermark, looked_at)
		VALUES (1, '1', now() - interval '10 minutes')`)
	kit.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id, recorded_to, failures) VALUES
		('a', 'CAPACITY', $1, $2, now() - interval '20 minutes', 0), ('b', 'APP', $1, $2, now() - interval '1 day',
		3)`, tenant.ID, project.ID)
	kit.SQL(`INSERT INTO usage_quarantine (id, tenant_id, project_id, source, meter, usage_id, code, field, message,
		record, digest)
		VALUES ('q', $1, $2, 'b', 'm', 'u', 'USAGE_QUANTITY', 'quantity', 'x', '{}', '\x00')`, tenant.ID, project.ID)
}

// TestWhatTheDatabaseHasIsPublished: as the workers' login role sees it.
func TestWhatTheDatabaseHasIsPublished(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	reader := &gauges.Reader{DB: kit.DB, Log: slog.New(slog.DiscardHandler), Every: time.Nanosecond}
	empty := read(t, reader)
	require.LessOrEqual(t, len(empty), gauges.MaxSeries())
	for name, value := range empty {
		if name != "database_read_up" && name != "database_read_seconds" {
			require.Zero(t, value, name)
		}
	}
	world(kit)
	full := read(t, reader)
	require.Len(t, full, len(empty), "zeros are published too")
	for name, value := range map[string]float64{"database_read_up": 1, "operations_open RUNNING": 1,
		"operations_due": 1, "instances RUNNING": 1, "nodes ONLINE": 1, "nodes OFFLINE": 1, "nodes_cordoned": 1,
		"node_tasks_open PENDING": 1,
		"adapters failing":        2, "adapters ok": 0, "worker_processes": 1, "usage_quarantine_records": 1,
		"usage_sources_failing": 1} {
		require.InDelta(t, value, full[name], 0, name)
	}
	for name, seconds := range map[string]float64{"operations_oldest_due_seconds": 90,
		"operations_oldest_runnable_seconds": 3600, "node_tasks_oldest_seconds": 300,
		"usage_capacity_lag_seconds":     1200,
		"billing_period_overdue_seconds": 7200, "billing_rating_lag_seconds": 600} {
		require.InDelta(t, seconds, full[name], 60, name)
	}
}

// TestScrapesShareOneReadUntilItIsOld: however many there are.
func TestScrapesShareOneReadUntilItIsOld(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	reader := &gauges.Reader{DB: kit.DB, Log: slog.New(slog.DiscardHandler)}
	before := kit.DB.Feed().Stat().AcquireCount()
	var scrapes sync.WaitGroup
	for range 20 {
		scrapes.Go(func() {
			into := make(chan prometheus.Metric, 256)
			reader.Collect(into)
		})
	}
	scrapes.Wait()
	kit.Node(0)
	require.Zero(t, read(t, reader)["nodes ONLINE"], "what was read is good for a while")
	require.EqualValues(t, 1, kit.DB.Feed().Stat().AcquireCount()-before)
}

// TestWhatCannotBeReadIsLeftOut: an old value would hide that nothing is known.
func TestWhatCannotBeReadIsLeftOut(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	reader := &gauges.Reader{DB: kit.DB, Log: slog.New(slog.DiscardHandler), Every: time.Nanosecond}
	require.InDelta(t, 1, read(t, reader)["database_read_up"], 0)
	kit.SQL(`ALTER TABLE usage_quarantine RENAME TO away`)
	left := read(t, reader)
	require.Len(t, left, 2, "%v", left)
	require.Zero(t, left["database_read_up"])
	kit.SQL(`ALTER TABLE away RENAME TO usage_quarantine`)
	require.InDelta(t, 1, read(t, reader)["database_read_up"], 0)
}

// certificate is a PEM certificate that ends then.
func certificate(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

// TestTheFirstPinnedAuthorityToEndIsFound among those of several adapters, one of which has two.
func TestTheFirstPinnedAuthorityToEndIsFound(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	log := slog.New(slog.DiscardHandler)
	require.True(t, (&gauges.Authorities{DB: kit.DB, Log: log}).First().IsZero(), "none is pinned")
	first := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	for _, authority := range []string{"", certificate(t, first.Add(time.Hour)),
		certificate(t, first.Add(24*time.Hour)) + certificate(t, first), "no certificate"} {
		kit.SQL(`UPDATE adapter SET authority = $2 WHERE id = $1`, kit.Adapter("http://127.0.0.1:1", nil).ID, authority)
	}
	pinned := &gauges.Authorities{DB: kit.DB, Log: log}
	require.Equal(t, first, pinned.First().UTC())
	kit.SQL(`UPDATE adapter SET authority = ''`)
	require.Equal(t, first, pinned.First().UTC(), "they are read again after a while")
	failing := &gauges.Authorities{DB: kit.DB, Log: log}
	kit.SQL(`UPDATE adapter SET authority = $1`, certificate(t, first))
	kit.SQL(`ALTER TABLE adapter RENAME COLUMN authority TO away`)
	require.True(t, failing.First().IsZero())
	kit.SQL(`ALTER TABLE adapter RENAME COLUMN away TO authority`)
	require.True(t, failing.First().IsZero(), "a failed read is not tried again by each scrape")
}
