package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/metrics"
)

// count returns the series of a set, as Prometheus stores them, and every value of a label.
func count(t *testing.T, set *metrics.Set) (series int, values map[string]bool) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(set))
	families, err := registry.Gather()
	require.NoError(t, err)
	values = map[string]bool{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			series++
			if histogram := one.GetHistogram(); histogram != nil {
				series += len(histogram.GetBucket()) + 2
			}
			for _, pair := range one.GetLabel() {
				values[pair.GetValue()] = true
			}
		}
	}
	return series, values
}

// schema is as many verbs as the product has.
func schema() map[string]string {
	verbs := map[string]string{}
	for i := range 210 {
		verbs[fmt.Sprintf("verb%d", i)] = "query"
	}
	return verbs
}

// TestSeriesAreBoundedWhateverIsCounted counts unknown texts, and more of each kind than there can be.
func TestSeriesAreBoundedWhateverIsCounted(t *testing.T) {
	t.Parallel()
	set := metrics.New(schema())
	set.Works(func() []string {
		var away []string
		for i := range 1_000 {
			away = append(away, fmt.Sprintf("adapter-%d\xff", i))
		}
		return away
	}, func() (int, int) { return 1, 2 })
	var running sync.WaitGroup
	for worker := range 4 {
		running.Go(func() {
			for i := range 5_000 {
				text := fmt.Sprintf("inst_%d_%d", worker, i)
				set.Request(t.Context(), text, []string{text}, text, time.Second)
				set.Request(t.Context(), "query", []string{fmt.Sprintf("verb%d", i%210)},
					[]string{"NOT_FOUND", "FORBIDDEN", "INTERNAL", "CONFLICT", "UNAVAILABLE",
						"INVALID_ARGUMENT"}[i%6], 0)
				set.HTTP(text, i)
				set.Attempt(text, metrics.AttemptDone)
				set.Ended(text, "FAILED")
				set.Step(t.Context(), text, time.Second, metrics.Retried, text)
				set.Call(t.Context(), text, text, time.Second)
				set.TaskEnded(text, "FAILED")
				set.Ends(text, time.Now)
			}
		})
	}
	running.Wait()
	series, values := count(t, set)
	require.LessOrEqual(t, series, set.MaxSeries())
	require.LessOrEqual(t, set.MaxSeries(), 3_750)
	require.True(t, values["other"])
	require.False(t, values["inst_3_4999"])
}

// TestANilSetCountsNothing: code that has no set to count in works as well.
func TestANilSetCountsNothing(t *testing.T) {
	t.Parallel()
	var set *metrics.Set
	set.Request(t.Context(), "query", nil, "", 0)
	set.HTTP("/", 200)
	set.Fenced(metrics.FenceClaim)
	set.Claimed(0, nil)
	set.Waited(1, 0)
	set.Attempt("", "")
	set.Ended("", "")
	set.Step(t.Context(), "", 0, "", "")
	set.LeaseMissed()
	set.LeasesTaken(1)
	set.Works(nil, nil)
	set.Call(t.Context(), "", "", 0)
	set.Webhook(t.Context(), 0)
	set.Delivered(0)
	set.AgentConnected()()
	set.TaskEnded("", "")
	set.Booked(0, nil)
	set.Balanced(0, 0)
	set.Ends("", nil)
}

// TestAnOperationIsCountedByItsRootField: what has several, and what was refused before, have names of their own.
func TestAnOperationIsCountedByItsRootField(t *testing.T) {
	t.Parallel()
	set := metrics.New(map[string]string{"reportNodeTask": "mutation", "viewer": "query"})
	set.Request(t.Context(), "mutation", []string{"reportNodeTask"}, "STALE_FENCE", 3*time.Second)
	set.Request(t.Context(), "query", []string{"viewer", "tenant"}, "", 0)
	set.Request(t.Context(), "", nil, "DOCUMENT_INVALID", 0)
	registry := prometheus.NewRegistry()
	registry.MustRegister(set)
	families, err := registry.Gather()
	require.NoError(t, err)
	found := map[string]float64{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			name := family.GetName()
			for _, pair := range one.GetLabel() {
				name += " " + pair.GetValue()
			}
			found[name] = amount(one)
		}
	}
	for _, name := range []string{"app_platform_request_seconds mutation reportNodeTask",
		"app_platform_request_seconds query several", "app_platform_request_seconds none refused",
		"app_platform_request_errors_total STALE_FENCE reportNodeTask",
		"app_platform_request_errors_total DOCUMENT_INVALID refused",
		"app_platform_fence_refusals_total task"} {
		require.InDelta(t, 1, found[name], 0, name)
	}
	require.Zero(t, found["app_platform_fence_refusals_total claim"])
}

func amount(of *dto.Metric) float64 {
	return of.GetCounter().GetValue() + of.GetGauge().GetValue() + float64(of.GetHistogram().GetSampleCount())
}

func TestWhatAnAttemptCameTo(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	failed := errors.New("broken")
	require.Equal(t, metrics.AttemptDone, metrics.Outcome(t.Context(), nil, false))
	require.Equal(t, metrics.AttemptFailed, metrics.Outcome(t.Context(), failed, false))
	require.Equal(t, metrics.AttemptFenced, metrics.Outcome(t.Context(), failed, true))
	require.Equal(t, metrics.AttemptCut, metrics.Outcome(stopped, failed, false))
}

// BenchmarkRequest is what counting a request costs.
func BenchmarkRequest(b *testing.B) {
	set := metrics.New(schema())
	ctx := context.Background()
	verb := []string{"verb7"}
	for b.Loop() {
		set.Request(ctx, "query", verb, "", 3*time.Millisecond)
	}
}
