package server

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/smoke"
)

// evidenceReport is a report that reads well, with the digest of its bytes.
func evidenceReport() (text, digest string) {
	report := conformance.Report{Digested: conformance.Digested{
		Suite: "1.1", Contract: "1.1", App: "mine", Adapter: conformance.AdapterID{Name: "mine", Build: "1"},
		Clauses: []conformance.ClauseOutcome{{ID: "tenancy.names", Outcome: conformance.Passed}},
	}}
	report.Digest, _ = report.Digested.Digest() // of what is made of words alone, which always has one
	data, _ := json.Marshal(report)
	return string(data), platformtest.Digest(data)
}

// smokeReport is a report of a smoke that reads well, with the digest of its bytes.
func smokeReport() (text, digest string) {
	data, _ := json.Marshal(smoke.Report{Schema: smoke.Schema, Artifact: platformtest.Digest(nil), Kind: smoke.Blob,
		Tool: "mine", Checks: []smoke.Check{{Name: "fetched", Outcome: "passed"}}}) // text alone always encodes
	return string(data), platformtest.Digest(data)
}

func TestTheSchemaOfManifestsIsThereForTools(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	response, err := http.Get(b.url + "/schemas/manifest.v1.json")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "application/schema+json", response.Header.Get("Content-Type"))
	require.JSONEq(t, string(manifest.DocumentSchema()), string(body))
}
