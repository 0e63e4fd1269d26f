package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/guard"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
)

func newEngine(t testing.TB, change func(*transport.Config)) *transport.Engine {
	t.Helper()
	config := transport.Config{
		Schema: testschema.New().Executable(), Present: testschema.Present,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if change != nil {
		change(&config)
	}
	engine, err := transport.NewEngine(config)
	require.NoError(t, err)
	return engine
}

// run prepares and runs a document, and returns the answer as JSON.
func run(t testing.TB, e *transport.Engine, query string, variables map[string]any) string {
	t.Helper()
	op, list := e.Prepare(t.Context(), &graphql.RawParams{Query: query, Variables: variables})
	response := &graphql.Response{Errors: list}
	if list == nil {
		response = e.Run(t.Context(), op)
	}
	text, err := transport.Encode(response)
	require.NoError(t, err)
	return string(text)
}

func TestEngineNeedsASchema(t *testing.T) {
	t.Parallel()
	_, err := transport.NewEngine(transport.Config{})
	require.ErrorContains(t, err, "Schema is missing")
}

func TestCachedDocumentAnswersAlikeWithOtherVariables(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	const query = `query($n: String) { hello(name: $n) }`
	for _, name := range []string{"a", "b", "a"} {
		require.JSONEq(t, `{"data":{"hello":"hello `+name+`"}}`, run(t, e, query, map[string]any{"n": name}))
	}
	require.JSONEq(t, `{"data":{"hello":"hello"}}`, run(t, e, query, nil))
}

func TestCachedDocumentIsPricedAgainWithEachVariables(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(c *transport.Config) { c.Limits.Cost = 500 })
	const query = `query($n: Int) { items(first: $n) { nodes { id name } } }`
	require.NotContains(t, run(t, e, query, map[string]any{"n": json.Number("10")}), "errors")
	require.Contains(t, run(t, e, query, map[string]any{"n": json.Number("1000")}), `"DOCUMENT_TOO_LARGE"`)
	require.NotContains(t, run(t, e, query, map[string]any{"n": json.Number("10")}), "errors")
}

func TestRefusedDocumentIsRefusedEveryTime(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	for range 3 {
		require.Contains(t, run(t, e, `{ nope }`, nil), `"DOCUMENT_INVALID"`)
	}
}

func TestIntrospectionIsServedWhenAllowedAndStaysBounded(t *testing.T) {
	t.Parallel()
	on := newEngine(t, func(c *transport.Config) { c.Limits.Introspection = true })
	require.JSONEq(t, `{"data":{"__schema":{"queryType":{"name":"Query"}}}}`,
		run(t, on, `{ __schema { queryType { name } } }`, nil))
	require.Contains(t, run(t, on, `{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }`,
		nil), "introspection depth")
	off := newEngine(t, nil)
	require.Contains(t, run(t, off, `{ __type(name: "Item") { name } }`, nil), "introspection is switched off")
	require.Contains(t, run(t, off, `{ ...F } fragment F on Query { ... { __schema { queryType { name } } } }`, nil),
		"introspection is switched off")
	require.JSONEq(t, `{"data":{"__typename":"Query"}}`, run(t, off, `{ __typename }`, nil))
}

// introspection is the query that GraphiQL and code generators send.
const introspection = `query IntrospectionQuery { __schema { description queryType { name kind } mutationType { name kind } subscriptionType { name kind }
	types { ...FullType } directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } } } }
	fragment FullType on __Type { kind name description specifiedByURL isOneOf fields(includeDeprecated: true) { name description
		args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
		inputFields(includeDeprecated: true) { ...InputValue } interfaces { ...TypeRef }
		enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
	fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
	fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
		ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }`

func TestIntrospectionOfToolsFitsTheDefaultLimits(t *testing.T) {
	t.Parallel()
	on := newEngine(t, func(c *transport.Config) { c.Limits.Introspection = true })
	text := run(t, on, introspection, nil)
	require.NotContains(t, text, `"errors"`)
	require.Contains(t, text, `"ItemConnection"`)
}

func TestOperationRunsOutOfTime(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(c *transport.Config) { c.Timeout = 20 * time.Millisecond })
	require.Contains(t, run(t, e, `{ slow }`, nil), `"DEADLINE_EXCEEDED"`)
}

func TestDeferIsRefused(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	for _, query := range []string{
		`{ item(id: 1) { ... @defer { name } } }`,
		`{ item(id: 1) { ...F @defer(label: "x") } } fragment F on Item { name }`,
		`{ everything @stream { id } }`,
	} {
		require.Contains(t, run(t, e, query, nil), "incremental delivery", query)
	}
}

func TestValidationErrorsAreCounted(t *testing.T) {
	t.Parallel()
	var query strings.Builder
	for i := range 19 {
		fmt.Fprintf(&query, "{ item(id: 1) { x%d y%d } }", i, i)
	}
	text := run(t, newEngine(t, nil), query.String(), nil)
	require.Equal(t, 20, strings.Count(text, `"code":"DOCUMENT_INVALID"`))
}

func TestValuesOfADocumentAreNotShown(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	for query, message := range map[string]string{
		`{ item(id: [{a: "s3cret"}]) { id } }`:      "",
		`{ items(first: "s3cret") { totalCount } }`: "Int cannot represent non-integer value",
		`{ fail(how: S3CRET) }`:                     `The value does not exist in \"Failure!\" enum.`,
		`{ fail(how: "s3cret") }`:                   `Enum \"Failure!\" cannot represent non-enum value`,
		`{ echo(input: "s3cret") }`:                 `Expected value of type \"EchoInput!\"`,
		`{ echo(input: {text: {x: "s3cret"}}) }`:    "",
	} {
		text := run(t, e, query, nil)
		require.Contains(t, text, `"DOCUMENT_INVALID"`)
		require.Contains(t, text, message)
		require.NotContains(t, strings.ToLower(text), "s3cret")
		require.Contains(t, text, `"locations"`)
	}
}

func TestVariablesAreCoercedAsTheSpecificationAsks(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	n := func(text string) json.Number { return json.Number(text) }
	const item, hello, pages = `query($v: ID!) { item(id: $v) { id } }`, `query($v: String) { hello(name: $v) }`,
		`query($v: Int) { pages(first: $v) { id } }`
	const echo, fail = `query($v: EchoInput!) { echo(input: $v) }`, `query($v: Failure!) { fail(how: $v) }`
	for _, c := range []struct {
		query string
		value any
		path  string // of the refusal; "" is accepted
	}{
		{item, "x", ""}, {item, n("7"), ""}, {item, n("7.5"), "v"}, {item, true, "v"}, {item, []any{}, "v"},
		{item, nil, "v"},
		{hello, "7", ""}, {hello, nil, ""}, {hello, n("7"), "v"}, {hello, false, "v"}, {hello, map[string]any{}, "v"},
		{pages, n("2"), ""}, {pages, "2", "v"}, {pages, n("2.0"), "v"}, {pages, n("2147483648"), "v"},
		{pages, true, "v"},
		{pages, n("1e1"), "v"},
		{echo, map[string]any{"text": "x", "times": n("2")}, ""}, {echo, map[string]any{"text": n("1")}, "v.text"},
		{echo, map[string]any{"text": "x", "times": "2"}, "v.times"}, {echo, map[string]any{}, "v.text"},
		{echo, "x", "v"},
		{echo, map[string]any{"text": "x", "how": "known"}, "v.how"},
		{echo, map[string]any{"text": "x", "more": 1}, "v.more"},
		{fail, "KNOWN", ""}, {fail, "known", "v"}, {fail, n("1"), "v"}, {fail, "s3cret", "v"},
	} {
		text := run(t, e, c.query, map[string]any{"v": c.value})
		if c.path == "" {
			require.Contains(t, text, `"data"`, "%s %v: %s", c.query, c.value, text)
			continue
		}
		require.Contains(t, text, `"INVALID_ARGUMENT"`, "%s %v", c.query, c.value)
		require.Contains(t, text, `"path":"`+c.path+`"`, "%s %v", c.query, c.value)
		require.NotContains(t, text, "s3cret")
	}
}

func TestPresentedErrorKeepsItsOwnWords(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(c *transport.Config) {
		c.Present = func(context.Context, error) *gqlerror.Error {
			return &gqlerror.Error{Message: `no. Did you mean "x"?`, Extensions: map[string]any{
				"code": "RATE_LIMITED", "reasons": []any{"why"}, "more": 1,
			}}
		}
	})
	ctx := transport.WithCorrelationID(t.Context(), "c-1")
	shown := e.Present(ctx, errors.New("any"))
	require.Equal(t, "no.", shown.Message)
	require.Equal(t, map[string]any{
		"code": "RATE_LIMITED", "reasons": []any{"why"}, "more": 1, "retryable": true, "correlation_id": "c-1",
	}, shown.Extensions)
}

func TestUnmappedErrorIsHiddenAndLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	var mu sync.Mutex
	e := newEngine(t, func(c *transport.Config) { c.Log = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil)) })
	shown := e.Present(transport.WithCorrelationID(t.Context(), "c-2"), errors.New("pq: secret"))
	require.Equal(t, "internal error", shown.Message)
	require.Equal(t, transport.CodeInternal, transport.Code(shown))
	require.Contains(t, log.String(), "pq: secret")
	require.Contains(t, log.String(), "c-2")
}

type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

func TestPreparingConcurrentlyIsSafe(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 50 {
				query := fmt.Sprintf(`query($n: Int) { items(first: $n) { nodes { a%d: id } } }`, (n+i)%10)
				text := run(t, e, query, map[string]any{"n": 1})
				require.NotContains(t, text, "errors")
			}
		})
	}
	all.Wait()
}

func TestHostileDocumentsAreRefusedQuickly(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(c *transport.Config) { c.Limits = guard.Limits{Introspection: true} })
	chain := func(root, on, field string) string {
		var s strings.Builder
		fmt.Fprintf(&s, "{ %s }", fmt.Sprintf(root, "...F0 ...F0"))
		for i := range 28 {
			fmt.Fprintf(&s, " fragment F%d on %s { %s { ...F%d ...F%d } }", i, on, field, i+1, i+1)
		}
		return s.String() + " fragment F28 on " + on + " { __typename }"
	}
	for name, query := range map[string]string{
		"doubling fragments": chain("item(id: 1) { %s }", "Item", "parent"),
		"doubling fragments, flat": strings.ReplaceAll(chain("item(id: 1) { %s }", "Item", "..."),
			"...F", " ...F"),
		"doubling fragments of the schema": chain("__schema { types { %s } }", "__Type", "ofType"),
		"3,000 repeats of a field":         "{" + strings.Repeat(" __typename", 3000) + "}",
		"3,000 repeats within":             "{ item(id: 1) {" + strings.Repeat(" id", 3000) + "} }",
		"100 times 50 in inline fragments": "{ item(id: 1) {" +
			strings.Repeat(" ... {"+strings.Repeat(" id", 48)+"}", 100) +
			"} }",
		"repeats through nested selections": "{ item(id: 1) {" +
			strings.Repeat(" parent { parent { id id id } }", 150) +
			"} }",
		"deep connections": "{ items(first: 100) " + strings.Repeat("{ nodes { children(first: 100) ", 10) +
			"{ totalCount }" + strings.Repeat("} }", 10) + " }",
		"one huge page": "{ items(first: 2000000000) { nodes { id } } }",
		"a circle": "{ item(id: 1) { ...A } } fragment A on Item { ...B } fragment B on Item { " +
			"...A }",
		"a long name":   "{ " + strings.Repeat("x", 60_000) + " }",
		"open brackets": strings.Repeat("{", 5000),
		"open lists":    "{ item(id: " + strings.Repeat("[", 5000),
	} {
		start := time.Now()
		text := run(t, e, query, nil)
		took := time.Since(start)
		require.Contains(t, text, `"DOCUMENT_`, name)
		require.Less(t, took, 5*time.Second, name) // without a bound it is minutes
	}
}

// BenchmarkPrepare is the price of the guard on a hot document, and on a new one.
func BenchmarkPrepare(b *testing.B) {
	const query = `query Detail($id: ID!, $n: Int) { item(id: $id) { id name parent { id name } children(first: $n) { totalCount nodes { ...F } edges { cursor node { ...F } } } } }
		fragment F on Item { id name tags parent { id } }`
	variables := map[string]any{"id": "1", "n": 20}
	b.Run("cached", func(b *testing.B) {
		e := newEngine(b, nil)
		b.ReportAllocs()
		for b.Loop() {
			e.Prepare(b.Context(), &graphql.RawParams{Query: query, Variables: variables})
		}
	})
	b.Run("new", func(b *testing.B) {
		e := newEngine(b, nil)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			e.Prepare(b.Context(), &graphql.RawParams{Query: fmt.Sprint(query, "#", i), Variables: variables})
		}
	})
}

func TestSuggestionsAreShownOnlyWhereTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	off := newEngine(t, nil)
	on := newEngine(t, func(c *transport.Config) { c.Suggestions = true })
	for name, c := range map[string]struct{ query, meant string }{
		"a field":        {`{ helo }`, "hello"},
		"an argument":    {`{ hello(nam: "x") }`, "name"},
		"an enum value":  {`{ fail(how: KNOWNN) }`, "KNOWN"},
		"an input field": {`{ echo(input: {text: "x", time: 1}) }`, "times"},
	} {
		shown, hidden := run(t, on, c.query, nil), run(t, off, c.query, nil)
		require.Contains(t, shown, "Did you mean", name)
		require.Contains(t, shown, `\"`+c.meant+`\"`, name)
		require.NotContains(t, hidden, "Did you mean", name)
		require.NotContains(t, hidden, `\"`+c.meant+`\"`, name)
	}
}
