package server

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/transport/wsapi"
	"github.com/gpuaas/app-platform/workers/gauges"
	"github.com/gpuaas/app-platform/workers/reconcile/stats"
)

// verbs returns the schema's root fields, with the kind of operation that each belongs to.
func verbs() map[string]string {
	schema, found := exec.NewExecutableSchema(exec.Config{}).Schema(), make(map[string]string)
	for kind, root := range map[string]*ast.Definition{"query": schema.Query, "mutation": schema.Mutation,
		"subscription": schema.Subscription} {
		for _, field := range root.Fields {
			found[field.Name] = kind
		}
	}
	return found
}

// count publishes what this process counts: requests, operations and calls, the findings and repairs of the
// reconcilers, outcomes of webhooks, metered usage, and deliveries to nodes. A process with the worker role also
// publishes the state of the installation.
func (p *platform) count(registry *prometheus.Registry) {
	registry.MustRegister(p.metrics, metrics.Pools(p.db.Pools()))
	if p.config.has("worker") {
		registry.MustRegister(&gauges.Reader{DB: p.db, Log: p.log})
		p.metrics.Ends("adapter authorities", (&gauges.Authorities{DB: p.db, Log: p.log}).First)
	}
	if p.trust.Certificate != nil {
		p.metrics.Ends("adapter client", func() time.Time { return p.trust.Certificate().Leaf.NotAfter })
	}
	for _, reading := range p.found.Readings() {
		publish(registry, "app_platform_reconcile_"+reading.Name, reading.Help, reading.Total, reading.Value)
	}
	for _, reading := range p.sent.Readings() {
		publish(registry, "app_platform_webhook_"+reading.Name, reading.Help, reading.Total, reading.Value)
	}
	for _, reading := range p.metered.Readings() {
		publish(registry, "app_platform_usage_"+reading.Name, reading.Help, true, reading.Value)
	}
	registry.MustRegister(feedHolder{p.found.Holder})
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "app_platform_clock_skew_seconds",
		Help: "By how much this machine's clock is certainly ahead of the database's, negative for behind; beyond 2 " +
			"the process stops.",
	}, func() float64 { return p.db.Skew().Seconds() }))
	publish(registry, "app_platform_delivery_bytes_total", "Bytes of artifacts delivered to nodes.", true,
		p.delivered.Bytes.Load)
	publish(registry, "app_platform_delivery_parts_total", "Parts of artifacts delivered to nodes completely.", true,
		p.delivered.Parts.Load)
	publish(registry, "app_platform_delivery_broken_total", "Deliveries that broke off, at source or node.", true,
		p.delivered.Broken.Load)
	publish(registry, "app_platform_delivery_under_way", "Parts of artifacts that are being delivered now.", false,
		p.delivered.UnderWay.Load)
}

// countLive publishes what is open here: sockets, and the groups and subscribers of live feeds.
func countLive(registry *prometheus.Registry, sockets *wsapi.Server, streams *live.Server) {
	now := func(name, help string, read func() int) {
		publish(registry, name, help, false, func() int64 { return int64(read()) })
	}
	now("app_platform_sockets", "WebSocket connections now open.", sockets.Sockets)
	now("app_platform_live_groups", "Groups of subscriptions that share one execution now.", streams.Groups)
	now("app_platform_live_subscribers", "Subscriptions of live feeds now open.", streams.Subscribers)
}

func publish(registry *prometheus.Registry, name, help string, total bool, read func() int64) {
	value := func() float64 { return float64(read()) }
	if total {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
		return
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// holderDesc describes the transaction that holds back the feeds.
var holderDesc = prometheus.NewDesc("app_platform_feed_holder_seconds",
	"How long this transaction, the oldest that writes, has held back the feeds.",
	[]string{"kind", "name", "database", "user", "application"}, nil)

// feedHolder publishes whose transaction holds back the feeds, and nothing while none does.
type feedHolder struct{ now func() stats.Holder }

// Describe implements prometheus.Collector.
func (feedHolder) Describe(into chan<- *prometheus.Desc) { into <- holderDesc }

// Collect implements prometheus.Collector.
func (f feedHolder) Collect(into chan<- prometheus.Metric) {
	holder := f.now()
	if holder.Kind == "" {
		return
	}
	into <- prometheus.MustNewConstMetric(holderDesc, prometheus.GaugeValue, holder.Lag.Seconds(), holder.Kind,
		text(holder.Name), text(holder.Database), text(holder.User), text(holder.Application))
}

// text is a label's value without what a cut in the middle of a character left.
func text(name string) string { return strings.ToValidUTF8(name, "") }
