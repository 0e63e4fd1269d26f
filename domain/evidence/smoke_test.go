package evidence_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

const anyDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// smoke is a report that reads well.
func smoke(kind lifecycle.ArtifactKind, checks ...string) evidence.SmokeReport {
	out := evidence.SmokeReport{Schema: evidence.SmokeSchema, Artifact: anyDigest, Kind: kind, Tool: "a test"}
	for _, one := range checks {
		name, outcome, _ := strings.Cut(one, " ")
		out.Checks = append(out.Checks, evidence.SmokeCheck{Name: name, Outcome: outcome})
	}
	return out
}

func TestASmokeIsOfItsKind(t *testing.T) {
	t.Parallel()
	whole := []string{"fetched passed", "digest passed"}
	runs := append(whole, "started passed", "answered passed")
	for _, one := range []struct {
		kind    lifecycle.ArtifactKind
		checks  []string
		missing []string
	}{
		{lifecycle.ArtifactBlob, whole, []string{}}, {lifecycle.ArtifactOCI, whole, []string{}},
		{lifecycle.ArtifactImage, runs, []string{}}, {lifecycle.ArtifactImage, whole, []string{"started", "answered"}},
		{lifecycle.ArtifactBlob, []string{"digest passed"}, []string{"fetched"}},
		{lifecycle.ArtifactBlob, []string{"fetched passed", "digest failed"}, []string{"digest"}},
		{lifecycle.ArtifactBlob, append(whole, "digest failed"), []string{"digest"}},
	} {
		data, err := json.Marshal(smoke(one.kind, one.checks...))
		require.NoError(t, err)
		got, err := evidence.ParseSmoke(data)
		require.NoError(t, err)
		require.Equal(t, one.missing, got.Missing(), "%s %v", one.kind, one.checks)
		require.NoError(t, got.Of(one.kind, anyDigest))
		require.True(t, fault.Is(got.Of(one.kind, "sha256:1"), fault.InvalidArgument))
		require.True(t, fault.Is(got.Of("OTHER", anyDigest), fault.InvalidArgument))
	}
}

func TestEveryKindHasASmoke(t *testing.T) {
	t.Parallel()
	for _, kind := range lifecycle.ArtifactKind("").Values() {
		require.NotEmpty(t, evidence.SmokeChecks(lifecycle.ArtifactKind(kind)), kind)
	}
}

func TestAReportOfASmokeIsBounded(t *testing.T) {
	t.Parallel()
	good := func() evidence.SmokeReport { return smoke(lifecycle.ArtifactBlob, "fetched passed") }
	for text, change := range map[string]func(*evidence.SmokeReport){
		"schema":                func(r *evidence.SmokeReport) { r.Schema = "v2" },
		"of kind":               func(r *evidence.SmokeReport) { r.Kind = "FLOPPY" },
		"the artifact's digest": func(r *evidence.SmokeReport) { r.Artifact = "latest" },
		"what ran it":           func(r *evidence.SmokeReport) { r.Tool = "" },
		"1 to 50 checks":        func(r *evidence.SmokeReport) { r.Checks = nil },
		"must name each check":  func(r *evidence.SmokeReport) { r.Checks[0].Name = "" },
		"neither passed nor":    func(r *evidence.SmokeReport) { r.Checks[0].Outcome = "skipped" },
		"with a detail":         func(r *evidence.SmokeReport) { r.Checks[0].Detail = strings.Repeat("x", 2001) },
		"at most as many words": func(r *evidence.SmokeReport) { r.Command = make([]string, 51) },
		"at most 65536 bytes":   func(r *evidence.SmokeReport) { r.Platform = strings.Repeat("x", evidence.MaxSmoke) },
	} {
		report := good()
		change(&report)
		data, err := json.Marshal(report)
		require.NoError(t, err)
		_, err = evidence.ParseSmoke(data)
		require.True(t, fault.Is(err, fault.InvalidArgument), text)
		require.ErrorContains(t, err, text)
	}
	_, err := evidence.ParseSmoke([]byte("{"))
	require.True(t, fault.Is(err, fault.InvalidArgument))
}

func TestAReportOfASmokeMayReachEachBound(t *testing.T) {
	t.Parallel()
	checks := func(count int) []evidence.SmokeCheck {
		return slices.Repeat([]evidence.SmokeCheck{{Name: "fetched", Outcome: "passed"}}, count)
	}
	long := func(bytes int) string { return strings.Repeat("x", bytes) }
	for what, bound := range map[string]struct {
		most   int
		change func(r *evidence.SmokeReport, size int)
		reason string
	}{
		"tool": {200, func(r *evidence.SmokeReport, size int) { r.Tool = long(size) },
			"must name what ran it, in at most 200 bytes"},
		"platform": {200, func(r *evidence.SmokeReport, size int) { r.Platform = long(size) },
			"must name what ran it, in at most 200 bytes"},
		"checks": {50, func(r *evidence.SmokeReport, size int) { r.Checks = checks(size) },
			"must have 1 to 50 checks, and a command of at most as many words"},
		"command": {50, func(r *evidence.SmokeReport, size int) { r.Command = make([]string, size) },
			"must have 1 to 50 checks, and a command of at most as many words"},
		"name of a check": {200, func(r *evidence.SmokeReport, size int) { r.Checks[0].Name = long(size) },
			"must name each check in at most 200 bytes, with a detail of at most 2000"},
		"detail of a check": {2000, func(r *evidence.SmokeReport, size int) { r.Checks[0].Detail = long(size) },
			"must name each check in at most 200 bytes, with a detail of at most 2000"},
	} {
		for _, size := range []int{bound.most, bound.most + 1} {
			report := smoke(lifecycle.ArtifactBlob, "fetched passed")
			bound.change(&report, size)
			data, err := json.Marshal(report)
			require.NoError(t, err)
			got, err := evidence.ParseSmoke(data)
			if size > bound.most {
				refusedSmoke(t, err, bound.reason)
				continue
			}
			require.NoError(t, err, what)
			require.Equal(t, report, *got, what)
		}
	}
	data, err := json.Marshal(smoke(lifecycle.ArtifactBlob, "fetched passed"))
	require.NoError(t, err)
	data = append(data, strings.Repeat(" ", 65_536-len(data))...) // spaces after a document count too
	_, err = evidence.ParseSmoke(data)
	require.NoError(t, err)
	_, err = evidence.ParseSmoke(append(data, ' '))
	refusedSmoke(t, err, "must be at most 65536 bytes")
}

// refusedSmoke requires that a report was refused for the reason.
func refusedSmoke(t *testing.T, err error, reason string) {
	t.Helper()
	found, ok := fault.As(err)
	require.True(t, ok && found.Code == fault.InvalidArgument, "%v", err)
	require.Len(t, found.Reasons, 1)
	require.Equal(t, "input.report", found.Reasons[0].Path)
	require.Equal(t, "the report "+reason, found.Reasons[0].Message)
}
