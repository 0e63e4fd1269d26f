package adapterclient_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A caller that forgets to say that a tenant chose an address would dial it by the policy for the platform's adapters,
// which lets this machine be reached.
func TestEveryTargetSaysWhetherATenantChoseItsAddress(t *testing.T) {
	t.Parallel()
	found := 0
	for _, root := range []string{"../../service", "../../workers", "../../graph", "../../server"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				literal, is := node.(*ast.CompositeLit)
				if of, named := literalType(literal); is && named && of == "Target" {
					found++
					require.True(t, says(literal, "Sandbox"), "%s has a Target that does not say Sandbox", path)
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, found, 5)
}

// literalType is the name of a literal's type, where that is one of adapterclient's.
func literalType(literal *ast.CompositeLit) (name string, ok bool) {
	if literal == nil {
		return "", false
	}
	selector, is := literal.Type.(*ast.SelectorExpr)
	if !is {
		return "", false
	}
	from, is := selector.X.(*ast.Ident)
	return selector.Sel.Name, is && from.Name == "adapterclient"
}

func says(literal *ast.CompositeLit, field string) bool {
	for _, element := range literal.Elts {
		pair, is := element.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		if key, named := pair.Key.(*ast.Ident); named && key.Name == field {
			return true
		}
	}
	return false
}
