package workers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// counted returns the value of the series of a name with those values of labels, in the order of their names.
func counted(t testing.TB, set *metrics.Set, name string, values ...string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(set)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "app_platform_"+name {
			continue
		}
		for _, one := range family.GetMetric() {
			if same(one.GetLabel(), values) {
				return one.GetCounter().GetValue() + one.GetGauge().
					GetValue() + float64(one.GetHistogram().GetSampleCount())
			}
		}
	}
	return 0
}

func same(pairs []*dto.LabelPair, values []string) bool {
	for i, value := range values {
		if i >= len(pairs) || pairs[i].GetValue() != value {
			return false
		}
	}
	return true
}

// TestWhatAWorkerMeetsIsCounted: an adapter that knows a newer attempt, a claim that is taken over while it is called,
// its operation taken from a process that is dead, and an adapter that is away.
func TestWhatAWorkerMeetsIsCounted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.metrics = metrics.New(nil)
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodPut {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		switch calls.Add(1) {
		case 1:
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"code":"` + adapter.CodeStaleFence + `","message":"a newer attempt"}`))
			return
		case 2:
			_, _ = l.pool().Exec(context.WithoutCancel(r.Context()),
				`UPDATE operation SET claimed_by = 'wrk_dead', claim_epoch = claim_epoch + 1
					WHERE adapter_name = 'fenced'`)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	l.work()
	l.launch(l.world("fenced", server.URL), time.Hour)
	l.launch(l.world("away", "http://127.0.0.1:1"), time.Hour)
	for _, series := range [][]string{
		{"fence_refusals_total", "dispatch"}, {"fence_refusals_total", "claim"},
		{"engine_attempts_total", "INSTANCE_CREATE", metrics.AttemptFenced},
		{"engine_attempts_total", "INSTANCE_CREATE", metrics.AttemptDone},
		{"engine_leases_total", "taken"}, {"engine_retries_total", "ADAPTER_UNAVAILABLE"},
		{"breakers_open"}, {"breaker_open", "away"}, {"adapter_calls_total", "dispatch", "conflict"},
		{"adapter_calls_total", "dispatch", "unavailable"}, {"engine_claim_latency_seconds"}, {"engine_claim_seconds"},
	} {
		l.until(series[0]+" "+series[len(series)-1], func() bool {
			return counted(t, l.metrics, series[0], series[1:]...) > 0
		})
	}
	require.InDelta(t, 1, counted(t, l.metrics, "fence_refusals_total", "claim"), 0)
	require.InDelta(t, 2, counted(t, l.metrics, "engine_claim_latency_seconds"), 0, "of first claims alone")
}
