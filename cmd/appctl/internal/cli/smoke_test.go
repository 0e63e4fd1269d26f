package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
	"github.com/gpuaas/app-platform/sdk/smoke"
)

// weights is a file, and their digest.
const (
	weights       = "weights\n"
	weightsDigest = "sha256:1a11d4fb2b0d05c0bb5b3f1ff4b8d8a8dce1bf0c3b8a3ac6c1a5b3b9a1f5f0a4"
)

// A runner runs the smoke where its key is, and brings what it saw: a failure too.
func TestARunnerSmokesAnArtifactAndBringsWhatItSaw(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte(weights))
	}))
	t.Cleanup(files.Close)
	digest := weightsDigest
	r.Handle("node", func(clienttest.Call) (any, error) {
		return object{"__typename": "Artifact", "id": "art_1", "ref": files.URL + "/model", "digest": digest,
			"kind": "BLOB", "sizeBytes": len(weights)}, nil
	})
	r.Handle("submitArtifactSmoke", func(call clienttest.Call) (any, error) {
		return object{"id": "asm_1", "artifactId": call.Input()["artifactId"], "passed": false, "runnerId": "rnr_1",
			"digest": call.Input()["digest"]}, nil
	})
	key, kept := filepath.Join(r.dir, "runner"), filepath.Join(r.dir, "report.json")
	r.must(t, "artifact", "keygen", key, "--algorithm", "ed25519")
	brought := func(n int) (report smoke.Report) {
		t.Helper()
		calls := r.CallsOf("submitArtifactSmoke")
		require.Len(t, calls, n)
		input := calls[n-1].Input()
		text := input["report"].(string)
		signedBy(t, key+".pub", smoke.SignedAs, []byte(text), input["signature"].(string))
		require.NoError(t, json.Unmarshal([]byte(text), &report))
		return report
	}
	got := r.run(t.Context(), "", "artifact", "smoke", "art_1", "--key", key+".key", "--report", kept)
	require.Equal(t, 1, got.code, got.stderr)
	require.Contains(t, got.stderr, `check "digest" of the smoke failed`)
	report := brought(1)
	require.False(t, report.Passed())
	require.Equal(t, weightsDigest, report.Artifact)

	digest = report.Checks[1].Detail[len("its bytes have the digest "):]
	r.must(t, "artifact", "smoke", "art_1", "--key", key+".key", "--report", kept)
	report = brought(2)
	require.True(t, report.Passed(), "%+v", report.Checks)

	signature := r.file(t, "report.sig", r.must(t, "evidence", "sign", kept, "--kind", "smoke", "--key", key+".key"))
	r.must(t, "artifact", "submit-smoke", "art_1", kept, "--signature", signature)
	require.Equal(t, report, brought(3))
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.JSONEq(t, string(text), r.CallsOf("submitArtifactSmoke")[2].Input()["report"].(string))

	refused := r.run(t.Context(), "", "artifact", "smoke", "art_1", "--key", key+".pub")
	require.Equal(t, 2, refused.code, refused.stderr)
	require.NotContains(t, refused.stderr, "PRIVATE KEY")
}
