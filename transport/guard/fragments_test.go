package guard_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/transport/guard"
)

// refusedByLex requires that the pass over the tokens refuses the document by itself: the analysis behind it costs
// a parsed document.
func refusedByLex(t *testing.T, document, message string) {
	t.Helper()
	refused := guard.New(schema(), small()).Lex(document)
	require.NotNil(t, refused, document)
	require.Equal(t, guard.TooLarge, refused.Kind, document)
	require.Contains(t, refused.Message, message, document)
}

func TestRootFieldsAreCountedWhateverComesBefore(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		"fragment F on Query { a } { b c d e }",
		"fragment F on Query { a } query { b c d e }",
		"fragment F on Query { a { b { c } } } fragment G on Query { a } query Q { b c d e }",
		"{ a } fragment F on Query { a b c d e f } { b c d e }",
		"{ a { x: b y: c } d e f }", // aliases below the root take nothing off the count at the root
		"{ x: a { y: b } c d e }",
	} {
		refusedByLex(t, document, "more than 3 root fields")
	}
	for _, document := range []string{
		"fragment F on Query { a b c d e } { b c d }",
		"{ x: a y: b z: c }", // an alias and its field are one
		"fragment F on Query { x: a y: b z: c } { b c d }",
	} {
		require.NoError(t, check(guard.New(schema(), small()), document), document)
	}
}

func TestRepeatsAreCountedThroughNamedFragments(t *testing.T) {
	t.Parallel()
	g := guard.New(schema(), small()) // at most 10 pairs, counted for the operation and for each fragment
	for document, pairs := range map[string]int{
		"{a{...F ...G}} fragment F on T{x x} fragment G on T{x x}":      6 + 1 + 1,
		"{a{...F ...F}} fragment F on T{x x x}":                         3 + 3, // a fragment counts once
		"{a{...F}} fragment F on T{x x ...G} fragment G on T{x x}":      6 + 6 + 1,
		"{a{...F ...G}} fragment F on T{x x x} fragment G on T{x x}":    10 + 3 + 1,
		"{a{...F ...G}} fragment F on T{b{x x}} fragment G on T{b{x}}":  1 + 3 + 1,
		"{...F ...G} fragment F on Q{b{x x x}} fragment G on Q{b{x}}":   1 + 6 + 3,
		"{...F ...G} fragment F on Q{b{x x x}} fragment G on Q{b{x x}}": 1 + 10 + 3 + 1,
	} {
		err := check(g, document)
		if pairs <= 10 {
			require.NoError(t, err, "%s has %d pairs", document, pairs)
			continue
		}
		require.ErrorContains(t, err, "repeats fields in more than 10 pairs", "%s has %d pairs", document, pairs)
	}
}

func TestAnInlineFragmentIsPricedAsItsOwnType(t *testing.T) {
	t.Parallel()
	interfaces := gqlparser.MustLoadSchema(&ast.Source{Input: `
		type Query { found: Node everything: [Node!]! }
		interface Node { id: ID! }
		type Item implements Node { id: ID! parent: Item peers: [Item!]! pages(first: Int = 7): [Item!]! }`})
	g := guard.New(interfaces, guard.Limits{}) // lists of 10 by default
	for document, want := range map[string]int64{
		`{ found { id ... on Item { parent { id } } } }`:                                       1 + 1 + 2,
		`{ found { ... on Item { peers { id } } } }`:                                           1 + (1 + 10),
		`{ found { ... { ... on Item { peers { id } } } } }`:                                   1 + (1 + 10),
		`{ found { ... on Item { ... { pages(first: 4) { id } } } } }`:                         1 + (1 + 4),
		`{ found { ...F } } fragment F on Item { peers { id } }`:                               1 + (1 + 10),
		`{ everything { ... on Item { peers { id } } } }`:                                      1 + 10*(1+10),
		`{ found { ... on Item { peers { ... on Node { ... on Item { peers { id } } } } } } }`: 1 + (1 + 10*(1+10)),
	} {
		p, doc := plan(t, g, document)
		require.Equal(t, want, p.Cost(doc.Operations[0], nil), document)
	}
}
