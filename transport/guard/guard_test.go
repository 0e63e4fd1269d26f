package guard_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gpuaas/app-platform/transport/guard"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
)

func schema() *ast.Schema { return testschema.New().Executable().Schema() }

// small are bounds low enough to be met exactly.
func small() guard.Limits {
	return guard.Limits{
		Bytes: 2000, Tokens: 200, NameLength: 20, Depth: 4, ValueDepth: 4, Aliases: 3, RootFields: 3, Operations: 3,
		Spreads: 6, Directives: 3, ExpandedFields: 30, Repeats: 10, Introspection: true,
	}
}

// check runs the guard's first two steps, as an engine would.
func check(g *guard.Guard, document string) error {
	if refused := g.Lex(document); refused != nil {
		return refused
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: document})
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	if _, refused := g.Analyze(doc); refused != nil {
		return refused
	}
	return nil
}

func TestEachBoundIsMetAndNotPassed(t *testing.T) {
	t.Parallel()
	g := guard.New(schema(), small())
	repeat := func(n int, format string) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, format, i)
		}
		return s.String()
	}
	nest := func(n int) string { return strings.Repeat("{a", n) + strings.Repeat("}", n) }
	for what, build := range map[string]struct {
		at       int // the bound
		document func(n int) string
	}{
		"longer than 2000 bytes": {2000, func(n int) string { return "{a}" + strings.Repeat(" ", n-3) }},
		"200 tokens":             {200, func(n int) string { return "{a(x:[" + strings.Repeat("1 ", n-9) + "])}" }},
		"200 tokens (comments)":  {200, func(n int) string { return "{a}" + strings.Repeat("#\n", n-3) }},
		"name is longer than 20": {20, func(n int) string { return "{" + strings.Repeat("a", n) + "}" }},
		"4 nested selection":     {4, nest},
		"nests deeper than 4": {4, func(n int) string {
			return "{...F} fragment F on Query " + nest(2) +
				" fragment G on Query {...H} fragment H on Query " + nest(3) +
				" query { a { ...I } } fragment I on Query " + nest(n-1)
		}},
		"4 nested values": {4, func(n int) string {
			return "{a(x:" + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + ")}"
		}},
		"4 nested values (objects)": {4, func(n int) string {
			return "{a(x:" + strings.Repeat("{x:", n-1) + "1" + strings.Repeat("}", n-1) + ")}"
		}},
		"3 aliases":                 {3, func(n int) string { return "{a{" + repeat(n, " a%d:b") + "}}" }},
		"3 root fields":             {3, func(n int) string { return "query Q {" + repeat(n, " f%d") + "}" }},
		"3 root fields (anonymous)": {3, func(n int) string { return "{" + repeat(n, " f%d(x:{y:1})@d{z}") + "}" }},
		"3 root fields (fragments)": {3, func(n int) string {
			return "{...F} fragment F on Query {" + repeat(n, " f%d") + "}"
		}},
		"3 root fields (second operation)": {3, func(n int) string {
			return "query A{a b c} mutation B{" + repeat(n, " f%d") + "}"
		}},
		"3 root fields (inline)":   {3, func(n int) string { return "{... on Query{" + repeat(n, " f%d") + "}}" }},
		"3 operations":             {3, func(n int) string { return repeat(n, " query Q%d{a}") }},
		"3 operations (anonymous)": {3, func(n int) string { return repeat(n, " {a%d}") }},
		"6 fragment spreads":       {6, func(n int) string { return "{a{" + repeat(n, " ...F%d") + "}}" }},
		"6 fragment spreads (inline)": {6, func(n int) string {
			return "{a{" + repeat(n, " ...on T%[1]d{x%[1]d}") + "}}"
		}},
		"3 directives":                   {3, func(n int) string { return "{a" + repeat(n, " @d%d") + "}" }},
		"expands to more than 30 fields": {30, func(n int) string { return "{a{" + repeat(n-1, " f%d") + "}}" }},
		// 5*4/2
		"repeats fields in more than 10": {5, func(n int) string { return "{a{" + strings.Repeat(" x", n) + "}}" }},
		"repeats fields in more than 10 in": {5, func(n int) string {
			return "{a{...{" + strings.Repeat(" x", n-1) + "} x}}"
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, check(g, build.document(build.at)), build.document(build.at))
			name, _, _ := strings.Cut(what, " (")
			err := check(g, build.document(build.at+1))
			var refused *guard.Error
			require.ErrorAs(t, err, &refused, build.document(build.at+1))
			require.Equal(t, guard.TooLarge, refused.Kind)
			require.Contains(t, refused.Message, strings.TrimSuffix(name, " in"))
		})
	}
}

func TestExpansionIsCountedThroughFragments(t *testing.T) {
	t.Parallel()
	g := guard.New(schema(), small())
	chain := func(n int) string {
		s := "{a{...F0 ...F0}}"
		for i := range n {
			s += fmt.Sprintf(" fragment F%d on T{...F%d b{...F%d}}", i, i+1, i+1)
		}
		return s + fmt.Sprintf(" fragment F%d on T{c}", n)
	}
	require.NoError(t, check(g, chain(1)))
	limits := small()
	limits.Spreads, limits.Tokens, limits.Depth = 1000, 1000, 1000
	require.ErrorContains(t, check(guard.New(schema(), limits), chain(20)), "expands to more than 30 fields")
}

func TestWhatIsNotServedIsInvalid(t *testing.T) {
	t.Parallel()
	limits := small()
	limits.Introspection = false
	g := guard.New(schema(), limits)
	for document, message := range map[string]string{
		"{a @defer}": "incremental delivery", "{... @stream(if: false) {a}}": "incremental delivery",
		"{a(x: \"unterminated)}": "syntax error", "{a ?}": "syntax error", "}": "syntax error", "{a)}": "syntax error",
		"{a}]":                    "syntax error",
		"{__schema{types{name}}}": "introspection", "{x:__type(name:\"Item\"){name}}": "introspection",
		"{...A} fragment A on Q{...B} fragment B on Q{a{...A}}": "circle", "{a} fragment A on Q{...A}": "circle",
		"{...A} fragment A on Q{a} fragment A on Q{b}": "same name",
	} {
		err := check(g, document)
		var refused *guard.Error
		require.ErrorAs(t, err, &refused, document)
		require.Equal(t, guard.Invalid, refused.Kind, document)
		require.Contains(t, refused.Message, message, document)
	}
	for _, document := range []string{"{a(defer: 1) stream}", "query defer($defer: Int = 1) @stuff {a}", "{__typename}",
		"{defer: a}"} {
		require.NoError(t, check(g, document), document)
	}
}

func TestPlaceOfARefusalIsGiven(t *testing.T) {
	t.Parallel()
	err := check(guard.New(schema(), small()), "{\n  a b c\n  dd\n}")
	var refused *guard.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, [2]int{3, 3}, [2]int{refused.Line, refused.Column})
}

func plan(t testing.TB, g *guard.Guard, document string) (*guard.Plan, *ast.QueryDocument) {
	t.Helper()
	doc, err := parser.ParseQuery(&ast.Source{Input: document})
	require.NoError(t, err, document)
	p, refused := g.Analyze(doc)
	require.Nil(t, refused, document)
	return p, doc
}

func TestCostKnowsPagesListsAndFragments(t *testing.T) {
	t.Parallel()
	g := guard.New(schema(), guard.Limits{Introspection: true}) // pages of 50, lists of 10 by default
	for document, want := range map[string]int64{
		`{ hello }`:                                                         1,
		`{ a: hello b: hello }`:                                             2,
		`{ item(id: 1) { id name } }`:                                       3,
		`{ item(id: 1) { tags } }`:                                          2, // a list of scalars is one field
		`{ everything { id name } }`:                                        1 + 10*2,
		`{ everything { peers { id } } }`:                                   1 + 10*(1+10),
		`{ items(first: 3) { totalCount } }`:                                1 + 1,
		`{ items(first: 3) { nodes { id } } }`:                              1 + (1 + 3),
		`{ items(last: 3) { nodes { id name } } }`:                          1 + (1 + 3*2),
		`{ items(first: 3, last: 5) { nodes { id } } }`:                     1 + (1 + 5),
		`{ items { nodes { id } } }`:                                        1 + (1 + 50),
		`{ items(first: null) { nodes { id } } }`:                           1 + (1 + 50),
		`{ items(first: -4) { nodes { id } } }`:                             1 + (1 + 50),
		`{ items(first: 0) { nodes { id } } }`:                              1 + 1,
		`{ items(first: 3) { edges { cursor node { id } } nodes { id } } }`: 1 + (1 + 3*3) + (1 + 3),
		// a page counts once
		`{ items(first: 3) { edges { node { peers { id } } } } }`:                    1 + (1 + 3*(1+(1+10))),
		`{ items(first: 3) { nodes { children(first: 4) { nodes { id } } } } }`:      1 + (1 + 3*(1+(1+4))),
		`{ items(first: 3) { ...F } } fragment F on ItemConnection { nodes { id } }`: 1 + (1 + 3),
		`{ items(first: 3) { ... { ... on ItemConnection { nodes { id } } } } }`:     1 + (1 + 3),
		`{ a: items(first: 3) { ...F } b: items(first: 4) { ...F } } fragment F on ItemConnection { nodes { id } }`: 1 +
			(1 + 3) + 1 + (1 + 4),
		`{ pages(first: 3) { id } }`:                     1 + 3,
		`{ pages { id } }`:                               1 + 7, // the argument's own default
		`query($n: Int) { pages(first: $n) { id } }`:     1 + 7,
		`query($n: Int = 2) { pages(first: $n) { id } }`: 1 + 2,
		`{ nope { id } }`:                                1 + 1, // validation refuses it later
		`{ __schema { types { name } } }`:                2 + 5,
		`mutation { touch(id: 1) { id } }`:               2,
		`subscription { count(to: 5) }`:                  1,
	} {
		p, doc := plan(t, g, document)
		require.Equal(t, want, p.Cost(doc.Operations[0], nil), document)
		require.Equal(t, want, p.Cost(doc.Operations[0], nil), "again: %s", document)
	}
}

func TestCostTakesPagesFromVariables(t *testing.T) {
	t.Parallel()
	g := guard.New(schema(), guard.Limits{})
	p, doc := plan(t, g, `query($n: Int) { items(first: $n) { ...F } } fragment F on ItemConnection { nodes { id } }`)
	for _, c := range []struct {
		n    any
		want int64
	}{
		{json.Number("3"), 5}, {3, 5}, {int64(3), 5}, {3.0, 5}, {"3", 5}, {nil, 52}, {-1, 52}, {json.Number("x"), 52},
		{true, 52},
		{json.Number("1e3"), 1002}, {json.Number("99999999999999999999"), 1<<31 - 1}, {json.Number("NaN"), 52},
		{[]any{1}, 52},
	} {
		require.Equal(t, c.want, p.Cost(doc.Operations[0], map[string]any{"n": c.n}), "%v", c.n)
	}
	require.EqualValues(t, 52, p.Cost(doc.Operations[0], nil))
}

func TestCostSaturatesInsteadOfOverflowing(t *testing.T) {
	t.Parallel()
	g := guard.New(schema(), guard.Limits{Depth: 1000})
	p, doc := plan(t, g, "{items(first:2000000000)"+strings.Repeat("{nodes{children(first:2000000000)", 50)+
		"{totalCount}"+
		strings.Repeat("}}", 50)+"}")
	require.EqualValues(t, 1<<31-1, p.Cost(doc.Operations[0], nil))
	require.ErrorContains(t, p.Check(doc.Operations[0], nil), "more than 50000 values")
}

func TestCheckRefusesAboveTheLimitOnly(t *testing.T) {
	t.Parallel()
	g := guard.New(schema(), guard.Limits{Cost: 12})
	p, doc := plan(t, g, `query($n: Int) { items(first: $n) { nodes { id } } }`)
	require.Nil(t, p.Check(doc.Operations[0], map[string]any{"n": 10}))
	require.NotNil(t, p.Check(doc.Operations[0], map[string]any{"n": 11}))
}

// FuzzGuard holds the guard to its promise: what it lets pass is validated in bounded
// work, and neither step panics.
func FuzzGuard(f *testing.F) {
	for _, seed := range []string{
		`{ hello }`,
		`query($n: Int = 3) { items(first: $n) { edges { node { ...F } } } } fragment F on Item { id parent { ...G } } fragment G on Item { name }`,
		`{ a: everything @include(if: true) { ... on Item { id } ... { name } } }`,
		`mutation { touch(id: "\u00e9") { id } }`,
		`{ ...A ...A } fragment A on Query { ...B ...B } fragment B on Query { hello }`,
		`{ echo(input: {text: """block""", times: 1}) }`,
		`subscription { count(to: 3) }`, "# comment\n{ hello }", `{...A} fragment A on Query {...A}`,
		`query @defer { hello }`,
	} {
		f.Add(seed, 5)
	}
	g := guard.New(schema(), guard.Limits{Introspection: true})
	f.Fuzz(func(t *testing.T, document string, n int) {
		if g.Lex(document) != nil {
			return
		}
		doc, err := parser.ParseQuery(&ast.Source{Input: document})
		if err != nil {
			return
		}
		p, refused := g.Analyze(doc)
		if refused != nil {
			return
		}
		before := costs(p, doc, n)
		if len(validator.ValidateWithRules(g.Schema(), doc, rules.NewDefaultRules())) > 0 {
			return
		}
		again, _ := g.Analyze(doc)
		require.Equal(t, before, costs(again, doc, n), "validation changes no price")
	})
}

func costs(p *guard.Plan, doc *ast.QueryDocument, n int) (all []int64) {
	for _, op := range doc.Operations {
		variables := map[string]any{}
		for _, v := range op.VariableDefinitions {
			variables[v.Variable] = n
		}
		cost := p.Cost(op, variables)
		if cost < 0 || cost > 1<<31-1 {
			panic(fmt.Sprintf("cost %d", cost))
		}
		all = append(all, cost)
	}
	return all
}
