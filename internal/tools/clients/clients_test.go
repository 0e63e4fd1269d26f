package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

const root = "../../.."

func TestWhatIsGeneratedIsWhatTheSourcesSay(t *testing.T) {
	t.Parallel()
	files, err := generate(root)
	require.NoError(t, err)
	require.Len(t, files, 4)
	for name, text := range files {
		kept, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.True(t, text == string(kept), "%s is not what its sources say: run make generate", name)
	}
}

// TestAnOlderPlatformServesWhatItKnows holds each operation against the frozen SDL. Those that it cannot serve are in
// testdata/newer.txt, which the tool writes.
func TestAnOlderPlatformServesWhatItKnows(t *testing.T) {
	t.Parallel()
	api, err := readAPI(root)
	require.NoError(t, err)
	older, err := readSchema(root, olderSchema)
	require.NoError(t, err)
	var newer []string
	for _, op := range api.doc.Operations {
		switch less := api.older.less[op.Name]; {
		case less != nil:
			requireValid(t, older, api.older.document(less))
			require.NotEqual(t, operationText(op)+fragments(api.doc, op), api.older.document(less), op.Name)
		case api.older.same[op.Name]:
			requireValid(t, older, operationText(op)+fragments(api.doc, op))
		default:
			_, problems := gqlparser.LoadQueryWithRules(older, operationText(op)+fragments(api.doc, op),
				rules.NewDefaultRules())
			require.NotEmpty(t, problems, op.Name)
			newer = append(newer, op.Name)
		}
	}
	kept, err := os.ReadFile("testdata/newer.txt")
	require.NoError(t, err)
	require.Equal(t, strings.Fields(string(kept)), newer)
	for _, name := range []string{"GetInstance", "ListInstances", "LaunchInstance", "GetOperation", "WatchOperation",
		"WatchTimeline"} {
		require.NotContains(t, newer, name, "what everybody does works on an older platform")
	}
}

func requireValid(t *testing.T, schema *ast.Schema, text string) {
	t.Helper()
	_, problems := gqlparser.LoadQueryWithRules(schema, text, rules.NewDefaultRules())
	require.Empty(t, problems, text)
}

func fragments(doc *ast.QueryDocument, op *ast.OperationDefinition) string {
	text := ""
	for _, name := range spreads(op.SelectionSet, doc.Fragments) {
		text += "\n" + fragmentText(doc.Fragments.ForName(name))
	}
	return text
}

// TestAnArgumentThatIsNotKnownIsNotLeftOut: without its filter a list would be another.
func TestAnArgumentThatIsNotKnownIsNotLeftOut(t *testing.T) {
	t.Parallel()
	newer := gqlparser.MustLoadSchema(&ast.Source{
		Input: `type Query { a: A } type A { list(only: Int): [Int!] id: Int new: B } type B { c: Int }`})
	older := gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { a: A } type A { list: [Int!] id: Int }`})
	query := func(text string) *ast.QueryDocument {
		return gqlparser.MustLoadQueryWithRules(newer, text, rules.NewDefaultRules())
	}
	filtered := reduce(older, query(`query Q($n: Int) { a { id list(only: $n) } }`))
	require.Empty(t, filtered.less)
	require.Empty(t, filtered.same)
	grown := reduce(older, query(`query Q { a { id ...F } } fragment F on A { new { c } }`))
	require.Equal(t, "query Q { a { id } }", indentless(grown.document(grown.less["Q"])))
	nothing := reduce(older, query(`query Q { a { new { c } } }`))
	require.Empty(t, nothing.less)
	same := reduce(older, query(`query Q { a { id } }`))
	require.True(t, same.same["Q"])
}
