package manifest

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What publishers copy fits the schema of manifests.
func TestTheRecipesManifestIsOne(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../examples/publish-ci/manifest.json.in")
	require.NoError(t, err)
	digest := "sha256:" + strings.Repeat("0", 64)
	filled := strings.NewReplacer("@VERSION@", "1.0.0", "@DIGEST@", digest, "@REF@",
		"registry.test/your-app@"+digest).Replace(string(text))
	parsed, err := Parse([]byte(filled))
	require.NoError(t, err)
	require.Equal(t, "your-app", parsed.App)
}

func TestTheTypescriptExamplesManifestIsOne(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../examples/typescript-adapter/manifest.json")
	require.NoError(t, err)
	digest := "sha256:" + strings.Repeat("0", 64)
	filled := strings.NewReplacer(`"ref": ""`, `"ref": "registry.test/counter@`+digest+`"`, `"digest": ""`,
		`"digest": "`+digest+`"`).Replace(string(text))
	parsed, err := Parse([]byte(filled))
	require.NoError(t, err)
	require.Equal(t, "counter", parsed.App)
}
