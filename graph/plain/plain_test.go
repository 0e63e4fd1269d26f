package plain_test

import (
	"context"
	"errors"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/graph/plain"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Input: `
	type Query { shelf(fail: Boolean = false): Shelf! }
	interface Thing { id: ID! }
	type Shelf implements Thing { id: ID! books(fail: Boolean = false): [Book!]! best(fail: Boolean = false): Book }
	type Book implements Thing { id: ID! title: String! }`})

type shelf struct{ books []*book }

type book struct{ id, title string }

var errBroken = errors.New("broken")

// broken is the error of a field that is called with fail: true.
func broken(args plain.Args) error {
	if args["fail"] == true {
		return errBroken
	}
	return nil
}

// tables answer shelves of books.
func tables() *plain.Type {
	books := &plain.Type{Name: "Book", Implements: []string{"Thing"}, Fields: map[string]plain.Field{
		"id":    plain.Leaf(func(dst []byte, b *book) []byte { return plain.String(dst, b.id) }),
		"title": plain.Leaf(func(dst []byte, b *book) []byte { return plain.String(dst, b.title) }),
	}}
	ofBook := func() *plain.Type { return books }
	shelves := &plain.Type{Name: "Shelf", Implements: []string{"Thing"}, Fields: map[string]plain.Field{
		"id": plain.Leaf(func(dst []byte, _ *shelf) []byte { return plain.String(dst, "s") }),
		"books": plain.Many(ofBook, func(_ context.Context, s *shelf, args plain.Args) ([]*book, error) {
			return s.books, broken(args)
		}),
		"best": plain.One(ofBook, func(_ context.Context, s *shelf, args plain.Args) (*book, error) {
			if len(s.books) == 0 {
				return nil, broken(args)
			}
			return s.books[0], broken(args)
		}),
	}}
	ofShelf := func() *plain.Type { return shelves }
	query := func(_ context.Context, _ *plain.Root, args plain.Args) (*shelf, error) {
		return &shelf{[]*book{{"1", "one"}, {"2", "two"}}}, broken(args)
	}
	return &plain.Type{Name: "Query", Fields: map[string]plain.Field{"shelf": plain.One(ofShelf, query)}}
}

// answer runs a document; false when it is left to the executor.
func answer(t *testing.T, document string) (string, bool) {
	t.Helper()
	doc, errs := gqlparser.LoadQueryWithRules(schema, document, nil)
	require.Empty(t, errs, document)
	ctx := graphql.WithOperationContext(t.Context(), &graphql.OperationContext{
		RawQuery: document, Doc: doc, Operation: doc.Operations[0], Variables: map[string]any{},
	})
	response, ok := plain.New(tables()).Answer(ctx)
	if !ok {
		require.Nil(t, response, document)
		return "", false
	}
	require.Empty(t, response.Errors)
	return string(response.Data), true
}

func TestFragmentsSelectWhereTheirTypeOrItsInterfaceFits(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{ shelf { books { title } } }`:                                  `{"shelf":{"books":[{"title":"one"},{"title":"two"}]}}`,
		`{ shelf { ... on Thing { id } best { ... on Book { id } } } }`:  `{"shelf":{"id":"s","best":{"id":"1"}}}`,
		`{ shelf { ...T best { ...T } } } fragment T on Thing { id }`:    `{"shelf":{"id":"s","best":{"id":"1"}}}`,
		`{ shelf { ... on Thing { ... on Book { title } id } } }`:        `{"shelf":{"id":"s"}}`,
		`{ shelf { ... on Thing { n: __typename } } }`:                   `{"shelf":{"n":"Shelf"}}`,
		`{ ... on Query { ...Q } } fragment Q on Query { shelf { id } }`: `{"shelf":{"id":"s"}}`,
	} {
		got, ok := answer(t, document)
		require.True(t, ok, document)
		require.Equal(t, want, got, document)
	}
}

func TestADirectiveAnywhereIsTheExecutors(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		`{ shelf { id best @include(if: false) { id } } }`,
		`{ shelf { id ... @include(if: false) { best { id } } } }`,
		`{ shelf { id ...F @include(if: false) } } fragment F on Shelf { best { id } }`,
		`{ shelf { id ...F @skip(if: true) } } fragment F on Shelf { best { id } }`,
		`{ shelf { id ...F } } fragment F on Shelf { ...G @skip(if: true) } fragment G on Shelf { best { id } }`,
		`{ shelf { id ... on Shelf { best { ... on Book { id title @skip(if: true) } } } } }`,
		`{ ...Q @include(if: true) } fragment Q on Query { shelf { id } }`,
	} {
		_, ok := answer(t, document)
		require.False(t, ok, document)
	}
}

func TestAnErrorOfAnyResolverLeavesTheQueryToTheExecutor(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		`{ shelf(fail: true) { id } }`,
		`{ shelf { books(fail: true) { id } } }`,
		`{ shelf { best(fail: true) { id } } }`,
		`{ shelf { id a: books { id } b: books(fail: true) { id } } }`,
	} {
		_, ok := answer(t, document)
		require.False(t, ok, document)
	}
	got, ok := answer(t, `{ shelf(fail: false) { books(fail: false) { id } } }`)
	require.True(t, ok)
	require.Equal(t, `{"shelf":{"books":[{"id":"1"},{"id":"2"}]}}`, got)
}
