package server

import (
	"fmt"
	"maps"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/workers/gauges"
)

// maxSeries is the most series of a process that docs/operations.md states.
const maxSeries = 4_200

// TestAThousandInstancesMakeNoMoreSeries: a process that serves and works over 1,000 instances of many apps, tenants,
// adapters and nodes with hostile names has the series that it had over none, below the bound, and no label that is an
// id or a name of somebody's.
func TestAThousandInstancesMakeNoMoreSeries(t *testing.T) {
	t.Parallel()
	empty := series(newRunning(t, func(*platformtest.Kit) {}).scrape())
	w := newRunning(t, crowd)
	full := w.scrape()
	require.InDelta(t, 1_000, sum(full, "app_platform_instances"), 0, "what is measured is there")
	require.InDelta(t, 1_000, sum(full, "app_platform_operations_open"), 0)
	require.InDelta(t, 300, sum(full, "app_platform_nodes"), 0)
	require.InDelta(t, empty, series(full), 60, "calls to adapters, and 20 of those that are away")
	operator := w.Session(w.Operator())
	for i := range 200 {
		hostile := fmt.Sprintf(`query evil_%d($x: ID = "inst_%d\n# HELP") { a%d: instance(id: $x) { id } }`, i, i, i)
		require.NotEmpty(t, w.ask(operator, hostile, nil).Errors)
		response, err := w.client.Get(fmt.Sprintf("%s/auth/evil-%d?x=evil", w.url, i))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	full = w.scrape()
	require.Less(t, series(full), empty+100)
	counted := metrics.New(verbs()).MaxSeries() + gauges.MaxSeries()
	require.LessOrEqual(t, counted+fixedSeries, maxSeries)
	require.LessOrEqual(t, beside(full), fixedSeries)
	for name, family := range full {
		if name == "app_platform_breaker_open" { // has the names of at most 20 adapters
			continue
		}
		for _, one := range family.GetMetric() {
			for _, pair := range one.GetLabel() {
				require.NotRegexp(t, `evil|[a-z]{2,6}_[0-9a-z]{20,}|x{9}`, pair.GetValue(), name)
			}
		}
	}
}

// fixedSeries is the most that a process has beside what it counts itself and what it reads of the database: of the
// runtime, the process, its pools, the edge and the reconcilers, which have no label that grows.
const fixedSeries = 250

// beside counts the series of a scrape that are neither a set's nor read of the database.
func beside(families map[string]*dto.MetricFamily) int {
	own := map[string]*dto.MetricFamily{}
	counted := described(metrics.New(nil))
	maps.Copy(counted, described(&gauges.Reader{}))
	for name, family := range families {
		if _, is := counted[name]; !is {
			own[name] = family
		}
	}
	return series(own)
}

// sum adds the series of a family up.
func sum(families map[string]*dto.MetricFamily, name string) (total float64) {
	for _, one := range families[name].GetMetric() {
		total += one.GetGauge().GetValue() + one.GetCounter().GetValue()
	}
	return total
}

// crowd lays down 1,000 instances with an open operation each, of 20 apps and 50 tenants, 300 nodes and 100 adapters.
func crowd(kit *platformtest.Kit) {
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	_, document := kit.Launchable(project, "apps")
	instance := kit.Instance(project, document, lifecycle.InstanceRunning)
	node, _ := kit.Node(0)
	adapter := kit.Adapter("http://127.0.0.1:1", nil)
	clone := func(table string, id ids.ID, rows int, other string) {
		kit.SQL(fmt.Sprintf(`INSERT INTO %[1]s SELECT (jsonb_populate_record(t, %[2]s)).*
			FROM %[1]s t, generate_series(1, $2) n
			WHERE t.id = $1`, table, other), id, rows)
	}
	clone("tenant", tenant.ID, 49, `jsonb_build_object('id', 'ten_evil' || n, 'slug', 'evil-' || n)`)
	clone("project", project.ID, 49,
		`jsonb_build_object('id', 'prj_evil' || n, 'slug', 'evil-' || n, 'tenant_id', 'ten_evil' || n)`)
	clone("compute_node", node.ID, 299,
		`jsonb_build_object('id', 'nod_evil' || n, 'name', 'evil {x="' || n || '"}' || chr(10))`)
	clone("adapter", adapter.ID, 99,
		`jsonb_build_object('id', 'adp_evil' || n, 'name', 'away-' || n, 'last_error', repeat('x', 99))`)
	clone("instance", instance.ID, 999, `jsonb_build_object('id', 'ins_evil' || n, 'name', 'evil-' || n, 'app_slug', 'evil-' || n % 20,
		'tenant_id', 'ten_evil' || 1 + n % 49, 'project_id', 'prj_evil' || 1 + n % 49, 'runtime_backend', 'away-' || 1 + n % 99)`)
	kit.SQL(`INSERT INTO operation (id, tenant_id, project_id, instance_id, kind, state, requester_kind, requester_id,
		correlation_id,
		next_run_at, deadline, created_at, adapter_name) SELECT 'op_evil' || row_number() OVER (), tenant_id, project_id, id, 'INSTANCE_UPGRADE',
		'PENDING', 'USER', 'evil', 'evil', now() + interval '1 hour', now() + interval '2 hours', now(), runtime_backend
		FROM instance`)
}

// series counts the series of a scrape, as Prometheus stores them.
func series(families map[string]*dto.MetricFamily) (count int) {
	for _, family := range families {
		for _, one := range family.GetMetric() {
			switch {
			case one.GetHistogram() != nil:
				count += len(one.GetHistogram().GetBucket()) + 2
			case one.GetSummary() != nil:
				count += len(one.GetSummary().GetQuantile()) + 2
			default:
				count++
			}
		}
	}
	return count
}
