package steps_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/workers/parts"
	"github.com/gpuaas/app-platform/workers/steps"
)

// TestEveryStepIsCountedByItsName: a metric's names are bounded, and the product's steps are within the bound.
func TestEveryStepIsCountedByItsName(t *testing.T) {
	t.Parallel()
	set := metrics.New(nil)
	for _, kind := range steps.Kinds(parts.Config{}) {
		for _, step := range kind.Steps {
			set.Step(t.Context(), step.Name, 0, "done", "")
		}
		for _, step := range kind.Undo {
			set.Step(t.Context(), step.Name, 0, "done", "")
		}
		set.Attempt(string(kind.Kind), metrics.AttemptDone)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(set)
	families, err := registry.Gather()
	require.NoError(t, err)
	names := 0
	for _, family := range families {
		for _, one := range family.GetMetric() {
			for _, pair := range one.GetLabel() {
				names++
				require.NotEqual(t, "other", pair.GetValue(), family.GetName())
			}
		}
	}
	require.Greater(t, names, 20)
}
