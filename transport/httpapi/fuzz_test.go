package httpapi

import (
	"encoding/json"
	"net/http"
	"testing"
	"unicode/utf8"
)

// FuzzBody: what is taken is one JSON object in UTF-8 with a query, and what is refused is a fault of
// the caller.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"query":"{ a }"}`, `{"query":"{ a }","variables":{"n":1e400},"operationName":null}`, `[{"query":"{a}"}]`,
		`{"query":1}`, `{}`, `null`, ``,
		`{"query":"{a}"} x`, `{"query":"{a}","query":"{b}"}`, "{\"query\":\"\xff\"}", `{"variables":[]}`,
		`{"query":"{a}","variables":{"a":{"b":[[[[]]]]}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		params, failed := parse(body)
		if failed != nil {
			if params != nil || failed.status != http.StatusBadRequest {
				t.Fatalf("refused with %d and %v", failed.status, params)
			}
			return
		}
		var object map[string]json.RawMessage
		if !utf8.Valid(body) || json.Unmarshal(body, &object) != nil {
			t.Fatalf("took %q", body)
		}
		if _, given := object["query"]; !given {
			t.Fatal("took a body without a query")
		}
	})
}

// FuzzAccept checks that, whatever a client accepts, negotiate reports true exactly with a type of ours.
func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"", "*/*", "application/graphql-response+json, application/json;q=0.9", "text/html",
		"a/b;q=NaN", "application/*;q=1e9", ",,,", `x/y; p="`, "application/json; charset=latin1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		header := http.Header{"Accept": {accept}}
		media, ok := negotiate(header)
		if ok != (media == MediaJSON || media == MediaResponse) {
			t.Fatalf("%q, %v", media, ok)
		}
		prefersHTML(header)
	})
}
