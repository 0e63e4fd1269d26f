// Package scrape serves what a project's members use in Prometheus's text format, for a scraper with a credential of
// the project's own. Each request is authorised, and answered from one statement; no node is called.
package scrape

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/service/membermetric"
	"github.com/gpuaas/app-platform/transport"
)

// Path is the path that the scraper requests, as a pattern of net/http.
const Path = "/v1/projects/{project}/metrics"

// Authenticate reads a credential into the context, as for the API.
type Authenticate func(context.Context, transport.Credential, *http.Request) (context.Context, error)

// Handler serves Path. The query parameter instance limits the answer to the members of one instance.
type Handler struct {
	// Members holds the reads. Required.
	Members *membermetric.Service
	// Authenticate is required.
	Authenticate Authenticate
	// Log takes what must not be answered. Required.
	Log *slog.Logger
}

// ServeHTTP answers a scrape.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := transport.RequestCorrelationID(r)
	w.Header().Set(transport.CorrelationHeader, id)
	ctx := transport.WithCorrelationID(r.Context(), id)
	registry, err := h.registry(ctx, r)
	if err != nil {
		denial.Answer(ctx, w, err, 0)
		return
	}
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelWarn)}).
		ServeHTTP(w, r)
}

// registry returns the numbers of a request.
func (h *Handler) registry(ctx context.Context, r *http.Request) (*prometheus.Registry, error) {
	text, ok := transport.Bearer(r.Header.Get("Authorization"))
	if !ok {
		return nil, fault.New(fault.Unauthenticated, "the Authorization header must be: Bearer <token>")
	}
	ctx, err := h.Authenticate(ctx, transport.Credential{Raw: text, Source: transport.SourceBearer}, r)
	if err != nil {
		return nil, err
	}
	var instance *ids.ID
	if wanted := ids.ID(r.URL.Query().Get("instance")); wanted != "" {
		instance = &wanted
	}
	found, more, err := h.Members.Now(ctx, ids.ID(r.PathValue("project")), instance)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	return registry, registry.Register(&usages{found, more})
}

// usages collects samples. It describes nothing beforehand, which makes the registry check each series as it comes.
type usages struct {
	found []*membermetric.Usage
	more  bool
}

// Describe describes nothing.
func (*usages) Describe(chan<- *prometheus.Desc) {}

// labels are those of every series.
var labels = []string{"instance", "component", "member", "allocation"}

// family is a metric that each measured member has.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*membermetric.Usage) *float64
}

func gauge(name, help string, of func(*membermetric.Usage) *float64) family {
	return family{prometheus.NewDesc("app_platform_member_"+name, help, labels, nil), prometheus.GaugeValue, of}
}

func counter(name, help string, of func(*membermetric.Usage) *float64) family {
	return family{prometheus.NewDesc("app_platform_member_"+name, help, labels, nil), prometheus.CounterValue, of}
}

var (
	info = prometheus.NewDesc("app_platform_member_info",
		"A member, with its instance's name, its number and its status.",
		append(append([]string{}, labels...), "instance_name", "index", "status"), nil)
	measured = prometheus.NewDesc("app_platform_member_measured",
		"Whether the member was measured in the last minute; otherwise it has no numbers.", labels, nil)
	partial = prometheus.NewDesc("app_platform_members_left_out",
		"Whether the project has more members than fit in an answer: scrape its instances one by one.", nil, nil)
)

// families are the numbers of a member.
var families = []family{
	counter("cpu_seconds_total", "Processor time since the member started, in seconds.",
		func(u *membermetric.Usage) *float64 { return u.CPUSeconds }),
	gauge("cpu_limit", "The limit of its processor time, in seconds per second.",
		func(u *membermetric.Usage) *float64 { return u.CPULimit }),
	gauge("memory_bytes", "Memory that cannot be taken back without writing it away.",
		func(u *membermetric.Usage) *float64 { return u.MemoryBytes }),
	gauge("memory_limit_bytes", "The limit of its memory.",
		func(u *membermetric.Usage) *float64 { return u.MemoryLimitBytes }),
	counter("network_received_bytes_total", "Received since the member started.",
		func(u *membermetric.Usage) *float64 { return u.NetReceivedBytes }),
	counter("network_sent_bytes_total", "Sent since the member started.",
		func(u *membermetric.Usage) *float64 { return u.NetSentBytes }),
	counter("disk_read_bytes_total", "Read from block devices since the member started.",
		func(u *membermetric.Usage) *float64 { return u.DiskReadBytes }),
	counter("disk_written_bytes_total", "Written to block devices since the member started.",
		func(u *membermetric.Usage) *float64 { return u.DiskWrittenBytes }),
	gauge("gpus", "How many GPUs the member has.", func(u *membermetric.Usage) *float64 {
		return new(float64(u.GPUs))
	}),
	gauge("gpu_utilization_ratio", "The fraction of time in which its GPUs were at work, on average of them.",
		func(u *membermetric.Usage) *float64 { return u.GPU }),
	gauge("gpu_memory_bytes", "Memory in use on its GPUs together.",
		func(u *membermetric.Usage) *float64 { return u.GPUMemoryBytes }),
	gauge("gpu_memory_limit_bytes", "The memory of its GPUs together.",
		func(u *membermetric.Usage) *float64 { return u.GPUMemoryTotalBytes }),
}

// SeriesOfMember bounds the series of a member, and so those of an answer: membermetric.MaxUsages times as many, and
// one.
const SeriesOfMember = 14

// Collect sends the series.
func (u *usages) Collect(out chan<- prometheus.Metric) {
	left := 0.0
	if u.more {
		left = 1
	}
	out <- prometheus.MustNewConstMetric(partial, prometheus.GaugeValue, left)
	for _, one := range u.found {
		allocation := ""
		if one.AllocationID != nil {
			allocation = string(*one.AllocationID)
		}
		values := []string{string(one.InstanceID), one.ComponentKey, string(one.MemberID), allocation}
		out <- prometheus.MustNewConstMetric(info, prometheus.GaugeValue, 1,
			append(append([]string{}, values...), one.InstanceName, strconv.Itoa(one.Index), string(one.Status))...)
		if one.Stale {
			out <- prometheus.MustNewConstMetric(measured, prometheus.GaugeValue, 0, values...)
			continue
		}
		out <- prometheus.MustNewConstMetric(measured, prometheus.GaugeValue, 1, values...)
		for _, each := range families {
			if value := each.of(one); value != nil {
				out <- prometheus.MustNewConstMetric(each.desc, each.kind, *value, values...)
			}
		}
	}
}
