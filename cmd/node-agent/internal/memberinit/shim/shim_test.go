package shim

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the shim imports begins before it, at every command of every member.
func TestTheShimImportsLittle(t *testing.T) {
	t.Parallel()
	const here = "github.com/gpuaas/app-platform/cmd/node-agent/internal/"
	small := []string{"golang.org/x/sys/unix", here + "memberinit/reaper", here + "procfs"}
	large := []string{"net", "net/http", "crypto/tls", "crypto/x509", "log/slog", "regexp", "text/template"}
	for _, folder := range []string{".", "../reaper", "../../procfs"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range file.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				ours := slices.Contains(small, path)
				require.True(t, ours || !strings.Contains(path, ".") && !slices.Contains(large, path), "%s imports %s",
					name, path)
			}
		}
	}
}
