package evidence_test

import (
	"encoding/json"
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
