package oci

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

var update = flag.Bool("update", false, "write the golden files anew")

func readManifest(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile("../../manifest.json")
	require.NoError(t, err)
	return raw
}

// digestOf is a digest of one letter.
func digestOf(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

// instanceOf is an instance of a profile, with the artifacts image and weights.
func instanceOf(profile, config string) adapter.Instance {
	return adapter.Instance{
		ID: "ins_1", Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "anything", Version: "1.0.0",
		Config: json.RawMessage(config), RuntimeProfile: json.RawMessage(profile),
		Components: []adapter.ComponentCount{{Key: component, Count: 2}},
		Artifacts: []adapter.Artifact{
			{Name: "image", Digest: digestOf("a"), MediaType: "application/vnd.oci.image.manifest.v1+json"},
			{Name: "weights", Digest: digestOf("b"), MediaType: "application/octet-stream"},
		},
	}
}

func memberOf(index int) adapter.Member {
	return adapter.Member{
		ID: "mem_" + string(rune('a'+index)), ComponentKey: component, Index: index, Status: "pending",
		Node: adapter.Node{ID: "nod_1", Name: "node-1", Address: "10.0.0.1", GPUs: 2},
	}
}

const notebook = `{"image":"image","args":["--listen",":$(PORT_HTTP)","it's \"quoted\" $HOME"],"env":{"GREETING":"Hello","WHERE":"$(GPUAAS_NODE_NAME)"},
	"ports":[{"name":"http","port":8888}],"resources":{"cpus":0.5,"memoryMiB":128},"health":{"http":{"port":8888,"path":"/healthz?deep=1","expectStatus":200}}}`

const modelServer = `{"image":"image","command":["/server","serve"],"args":["--weights","/models"],"ports":[{"name":"api","port":8000}],
	"resources":{"gpus":2},"restart":{"policy":"always","maxRestarts":3},"readOnly":true,"health":{"exec":{"command":["/server","check","a b"]}},
	"volumes":[{"name":"models","path":"/models","artifact":"weights"},{"name":"scratch","path":"/scratch"}]}`

// TestUserDataIsRenderedAsTheGoldenFilesSay requires that nodes get the golden files, to the byte. To change them:
// go test ./internal/oci -run UserData -update
func TestUserDataIsRenderedAsTheGoldenFilesSay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile, config string
		ports           map[string]int
	}{
		"notebook": {notebook, `{"env":{"GREETING":"Welcome"},"restart":{"policy":"never"}}`,
			map[string]int{"http": 8889}},
		"model-server": {modelServer, ``, map[string]int{"api": 8000}},
		"bare":         {`{"image":"image"}`, ``, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := renderRelease(instanceOf(c.profile, c.config), memberOf(1), c.ports, digestOf("c"))
			require.NoError(t, err)
			document, err := r.render()
			require.NoError(t, err)
			golden := filepath.Join("testdata", name+".user-data")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(document), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), document)
		})
	}
}
