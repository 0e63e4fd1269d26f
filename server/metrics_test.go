package server

import (
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
)

func TestWhatTheReconcilersFindIsAMetric(t *testing.T) {
	t.Parallel()
	p := &platform{}
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
