package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// TestMain lets this test binary be the children of the bench.
func TestMain(m *testing.M) {
	if code, child := process.Run(roles); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// tinier is beside Tiny.
var tinier = dataset.Size{Name: "tinier", Tenants: 1, Projects: 1, Instances: 60, Events: 5}

// tiny measures nothing worth knowing, but everything.
func tiny(t *testing.T) kit.Plan {
	return kit.Plan{
		Data: t.TempDir(), Size: dataset.Tiny, Durability: postgres.Throwaway, Rounds: 1, Callers: 2,
		Connections: 2, Pool: 4,
		Catalog: 60, Blob: 1 << 20, Large: 3 << 20, Members: 2, Span: 50 * time.Millisecond, Sockets: []int{9},
		Messages: 90,
		Rate:     50, Operations: 10, Backlog: 12, Long: 30, Waiting: 20, Records: 40, Month: 400,
		Wait: 50 * time.Millisecond, Scale: [2]dataset.Size{dataset.Tiny, tinier},
	}
}

func TestEverySubjectIsMeasuredBesideItsReference(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute) // before go test ends it without a word
	defer cancel()
	sheet, err := measure(ctx, tiny(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var text strings.Builder
	sheet.Print(&text)
	for _, figure := range []string{"permission decision", "policy of a launch", "verification of a signed token",
		"detail query under row-level security", "detail, requests/s at",
		"detail, requests/s beside the frozen reference", "detail, p99 beside the frozen reference",
		"first 50 list, requests/s at",
		"first 50 list, requests/s beside the frozen reference",
		"detail, requests/s beside plain gqlgen", "detail, requests/s with nothing kept, beside plain gqlgen",
		"first 50 list, requests/s beside plain gqlgen",
		"catalog page, requests/s", "artifact by digest, requests/s", "verified pull", "memory of the server",
		"memory of the agent", "start of a member",
		"fan-out to 9 sockets, messages/s",
		"fan-out to 9 sockets, p99", "memory of a socket", "operations/s, p50", "operations/s, p99",
		"accepted to ended",
		"accepted to succeeded, one worker process", "three worker processes, beside one",
		"resident memory after 3, 15 and 30", "20 operations that wait for an adapter: questions",
		"a tenant's only operation", "beside 1 tenants with 4 launches each", "a claim of 8",
		"first 50 events of a timeline",
		"usage records taken", "rated again to the same bytes", "a plan with its price"} {
		require.Contains(t, text.String(), figure)
	}
	for _, figure := range sheet.Figures {
		if strings.HasSuffix(figure.Bar, "×") {
			require.Positive(t, figure.Ratio, figure.Name)
			require.NotEmpty(t, figure.Other, figure.Name)
		}
	}
}

func TestABarThatIsMissedIsSaid(t *testing.T) {
	t.Parallel()
	s := &kit.Sheet{}
	s.AtLeast("fast", "6/s", "10/s", 0.6, 0.5)
	s.AtMost("slow", "2 ms", "1 ms", 2, 2)
	s.Told("aside", "1", "", 0)
	require.False(t, s.Missed())
	s.AtLeast("faster", "4/s", "10/s", 0.4, 0.5)
	require.True(t, s.Missed())
	var text strings.Builder
	s.Print(&text)
	require.Equal(t, 1, strings.Count(text.String(), "MISSED"))
	s = &kit.Sheet{}
	s.AtMost("slower", "5 ms", "1 ms", 5, 4)
	require.True(t, s.Missed())
	s = &kit.Sheet{}
	s.Within("fat", "17 KiB", "≤ 16 KiB", false)
	require.True(t, s.Missed())
	text.Reset()
	for _, of := range []float64{2, 3} {
		s = &kit.Sheet{}
		s.Bounded("written", &kit.Pairs{Platform: []float64{of}, Other: []float64{1}},
			func(v float64) string { return fmt.Sprint(v) }, 2)
		require.Equal(t, of > 2, s.Missed())
		s.Print(&text)
	}
	require.Contains(t, text.String(), "≤ 2")
}

func TestRatiosAreTheMedianOfPairs(t *testing.T) {
	t.Parallel()
	p := kit.Pairs{Platform: []float64{50, 5, 60}, Other: []float64{100, 10, 60}}
	require.InDelta(t, 0.5, p.Ratio(), 1e-9)
	require.Equal(t, 2*time.Second, kit.Median([]time.Duration{3 * time.Second, time.Second}))
	require.Zero(t, kit.Median[float64](nil))
}

func TestUnknownSubjectsAreRefused(t *testing.T) {
	t.Parallel()
	_, err := parse([]string{"-only", "detail,speed"}, &strings.Builder{})
	require.ErrorContains(t, err, `"speed"`)
	p, err := parse([]string{"-short", "-rounds", "3", "-only", "list"}, &strings.Builder{})
	require.NoError(t, err)
	require.Equal(t, 3, p.Rounds)
	require.Equal(t, dataset.Short, p.Size)
}
