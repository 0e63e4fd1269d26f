// Package gauges publishes how the installation is, as its database has it: queues, nodes, adapters and books. It is of
// the database, and so the same in every process that publishes it: those that work. A process reads it by one
// statement, at a scrape, and at most every 15 seconds however often it is scraped. Every count is bounded, so that the
// statement takes some milliseconds whatever is stored; a count at its bound reads "at least".
package gauges

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	// Every is how long what was read is good for.
	Every = 15 * time.Second
	// readTimeout bounds a read: a scrape of Prometheus waits 10 s by default.
	readTimeout = 5 * time.Second
	// most bounds every count of rows.
	most = "10000"
)

// gauge is a family of numbers.
type gauge struct {
	name, help string
	// label is the only label, of which values are all that there are; "" for none.
	label  string
	values []string
}

// all are the families, with the names that readSQL gives them.
var all = []gauge{
	{"operations_open", "Operations that have not ended, by state; up to 10,000.",
		"state", lifecycle.OperationState("").Values()},
	{"operations_due", "Operations that are due and that no worker has claimed; up to 10,000.", "", nil},
	{"operations_oldest_due_seconds", "How long the operation that is due longest has been due.", "", nil},
	{"operations_oldest_runnable_seconds",
		"The age of the oldest operation that is due and that no worker has claimed.", "", nil},
	{"instances", "Instances that are not released, by status; up to 10,000.",
		"status", lifecycle.InstanceStatus("").Values()},
	{"nodes", "Nodes that are not deleted, by status; up to 10,000.", "status", lifecycle.NodeStatus("").Values()},
	{"nodes_cordoned", "Nodes that take no new members; up to 10,000.", "", nil},
	{"nodes_tunnelled", "Nodes whose agent has a tunnel to a process of the platform; up to 10,000.", "", nil},
	{"node_tasks_open", "Node tasks that have not ended, by state; up to 10,000.", "state",
		[]string{string(lifecycle.TaskPending), string(lifecycle.TaskRunning)}},
	{"node_tasks_oldest_seconds", "The age of the oldest node task that no agent has begun; of up to 10,000.", "", nil},
	{"adapters", "Registered adapters, by the outcome of the last call to each; up to 10,000.",
		"answer", []string{"ok", "failing"}},
	{"worker_processes", "Worker processes with a heartbeat in the last ten seconds; up to 10,000.", "", nil},
	{"orphans_open", "Orphans: what operations left behind and is not removed yet; up to 10,000.", "", nil},
	{"signer_keys_ending", "Trusted keys of artifact sources that expire within 14 days; up to 10,000.", "", nil},
	{"usage_quarantine_records", "Records of usage in the quarantine; up to 10,000.", "", nil},
	{"usage_capacity_lag_seconds", "How far behind the recording of capacity is, at its slowest source.", "", nil},
	{"usage_sources_failing", "Sources of usage whose last read failed; up to 10,000.", "", nil},
	{"billing_period_overdue_seconds", "How long the oldest period that should be closed is past its end and grace.",
		"", nil},
	{"billing_rating_lag_seconds", "Time since the last run that brought all books up to date; 0 when there was none.",
		"", nil},
}

// readSQL reads all of it: name, label, value. $1 is the basis of capacity.
const readSQL = `WITH due AS MATERIALIZED (SELECT next_run_at, created_at FROM operation
		WHERE ended_at IS NULL AND claimed_by IS NULL AND next_run_at <= now() ORDER BY next_run_at, id
	LIMIT ` + most + `),
	node AS MATERIALIZED (SELECT status, cordoned FROM compute_node WHERE deleted_at IS NULL LIMIT ` + most + `),
	task AS MATERIALIZED (SELECT state, created_at FROM node_task WHERE ended_at IS NULL LIMIT ` + most + `),
	source AS MATERIALIZED (SELECT basis, recorded_to, failures FROM usage_source WHERE ended_at IS NULL
	LIMIT ` + most + `)
SELECT 'operations_open', state::text, count(*)::float8 FROM (SELECT state FROM operation
	WHERE ended_at IS NULL LIMIT ` + most + `) o GROUP BY state
UNION ALL SELECT 'operations_due', '', count(*) FROM due
UNION ALL SELECT 'operations_oldest_due_seconds', '', coalesce(extract(epoch
	FROM now() - min(next_run_at)), 0) FROM due
UNION ALL SELECT 'operations_oldest_runnable_seconds', '', coalesce(extract(epoch
	FROM now() - min(created_at)), 0) FROM due
UNION ALL SELECT 'instances', status::text, count(*) FROM (SELECT status FROM instance
	WHERE released_at IS NULL LIMIT ` + most + `) i GROUP BY status
UNION ALL SELECT 'nodes', status::text, count(*) FROM node GROUP BY status
UNION ALL SELECT 'nodes_cordoned', '', count(*) FROM node WHERE cordoned
UNION ALL SELECT 'nodes_tunnelled', '', count(*) FROM (SELECT FROM node_tunnel LIMIT ` + most + `) t
UNION ALL SELECT 'node_tasks_open', state::text, count(*) FROM task GROUP BY state
UNION ALL SELECT 'node_tasks_oldest_seconds', '', coalesce(extract(epoch FROM now() - min(created_at)), 0)
	FROM task WHERE state = 'PENDING'
UNION ALL SELECT 'adapters', CASE WHEN last_error = '' THEN 'ok' ELSE 'failing' END, count(*)
	FROM (SELECT last_error FROM adapter LIMIT ` + most + `) a GROUP BY 2
UNION ALL SELECT 'worker_processes', '', count(*) FROM (SELECT FROM worker_process
	WHERE heartbeat_at > now() - interval '10 seconds' LIMIT ` + most + `) w
UNION ALL SELECT 'orphans_open', '', count(*) FROM (SELECT FROM orphan WHERE resolved_at IS NULL LIMIT ` + most + `) o
UNION ALL SELECT 'signer_keys_ending', '', count(*) FROM (SELECT FROM signer_key WHERE revoked_at IS NULL
	AND valid_until BETWEEN now() AND now() + interval '14 days' LIMIT ` + most + `) k
UNION ALL SELECT 'usage_quarantine_records', '', count(*) FROM (SELECT FROM usage_quarantine LIMIT ` + most + `) q
UNION ALL SELECT 'usage_capacity_lag_seconds', '', coalesce(extract(epoch
	FROM now() - min(recorded_to)), 0) FROM source WHERE basis = $1
UNION ALL SELECT 'usage_sources_failing', '', count(*) FROM source WHERE failures > 0
UNION ALL SELECT 'billing_period_overdue_seconds', '', coalesce(greatest(max(extract(epoch
	FROM now() - ends_at) - grace_seconds), 0), 0)
	FROM (SELECT ends_at, grace_seconds FROM billing_period
	WHERE closed_at IS NULL AND ends_at < now() ORDER BY ends_at LIMIT ` + most + `) p
UNION ALL SELECT 'billing_rating_lag_seconds', '', coalesce(max(extract(epoch FROM now() - looked_at)), 0)
	FROM billing_look`

var (
	upDesc = prometheus.NewDesc("app_platform_database_read_up",
		"1 when the last read of the gauges of the database succeeded; otherwise they are missing.", nil, nil)
	tookDesc = prometheus.NewDesc("app_platform_database_read_seconds",
		"Time that the last read of the gauges of the database took.", nil, nil)
)

// Reader publishes the gauges. It is a prometheus.Collector.
type Reader struct {
	DB  *tx.DB
	Log *slog.Logger
	// Every is how long what was read is good for; 0 for 15 s.
	Every time.Duration

	mu     sync.Mutex
	at     time.Time // of the last read
	took   time.Duration
	values map[string]map[string]float64 // by name and label; nil when the last read failed
}

// MaxSeries is the most series that a reader has.
func MaxSeries() int {
	series := 2
	for _, one := range all {
		series += max(1, len(one.values))
	}
	return series
}

// Describe implements prometheus.Collector.
func (r *Reader) Describe(into chan<- *prometheus.Desc) {
	into <- upDesc
	into <- tookDesc
	for _, one := range all {
		into <- one.desc()
	}
}

func (g *gauge) desc() *prometheus.Desc {
	var labels []string
	if g.label != "" {
		labels = []string{g.label}
	}
	return prometheus.NewDesc("app_platform_"+g.name, g.help, labels, nil)
}

// Collect implements prometheus.Collector. Scrapes at one time wait for one read. Values that cannot be read are left
// out: old ones would hide that nothing is known.
func (r *Reader) Collect(into chan<- prometheus.Metric) {
	values, took := r.read()
	into <- prometheus.MustNewConstMetric(tookDesc, prometheus.GaugeValue, took.Seconds())
	if values == nil {
		into <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, 0)
		return
	}
	into <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, 1)
	for _, one := range all {
		if one.label == "" {
			into <- prometheus.MustNewConstMetric(one.desc(), prometheus.GaugeValue, values[one.name][""])
			continue
		}
		for _, value := range one.values {
			into <- prometheus.MustNewConstMetric(one.desc(), prometheus.GaugeValue, values[one.name][value], value)
		}
	}
}

// read returns what was read last, or reads again when that is too long ago.
func (r *Reader) read() (values map[string]map[string]float64, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	every := r.Every
	if every == 0 {
		every = Every
	}
	if !r.at.IsZero() && time.Since(r.at) < every {
		return r.values, r.took
	}
	r.at = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	values, err := r.query(ctx)
	if err != nil {
		r.Log.Warn("the gauges of the database could not be read; they are left out", "error", err)
	}
	r.values, r.took = values, time.Since(r.at)
	return r.values, r.took
}

// query reads on a connection for live readers: the workers' own are all taken just when one wants to know.
func (r *Reader) query(ctx context.Context) (map[string]map[string]float64, error) {
	found, err := r.DB.Feed().Query(ctx, readSQL, metering.Capacity)
	if err != nil {
		return nil, fmt.Errorf("read the gauges: %w", err)
	}
	values := make(map[string]map[string]float64, len(all))
	var name, label string
	var value float64
	_, err = pgx.ForEachRow(found, []any{&name, &label, &value}, func() error {
		if values[name] == nil {
			values[name] = make(map[string]float64)
		}
		values[name][label] = value
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the gauges: %w", err)
	}
	return values, nil
}
