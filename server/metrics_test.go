package server

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/workers/reconcile/stats"
)

func TestWhatTheReconcilersFindIsAMetric(t *testing.T) {
	t.Parallel()
	p := &platform{db: platformtest.New(t).DB, config: Defaults(), metrics: metrics.New(verbs()),
		log: slog.New(slog.DiscardHandler)}
	registry := prometheus.NewRegistry()
	p.count(registry)
	p.found.Overdue.Store(7)
	p.found.TasksEnded.Add(3)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	require.Contains(t, answer.Body.String(), "app_platform_reconcile_overdue_operations 7\n")
	require.Contains(t, answer.Body.String(), "app_platform_reconcile_tasks_ended_total 3\n")
	require.Contains(t, answer.Body.String(), "# TYPE app_platform_reconcile_oldest_due_seconds gauge\n")
}

func TestWhoHoldsBackTheFeedsIsAMetric(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(feedHolder{func() stats.Holder {
		return stats.Holder{Kind: "prepared", Name: "two\xc3", Database: "other", User: "somebody",
			Lag: 90 * time.Second}
	}})
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	require.Contains(t, answer.Body.String(),
		`app_platform_feed_holder_seconds{application="",database="other",kind="prepared",name="two",user="somebody"} 90`)
}
