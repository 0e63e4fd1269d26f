package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/httpapi"
)

func TestWhatIsAskedDecidesStatusAndMediaType(t *testing.T) {
	t.Parallel()
	url := setup(t, nil)
	for name, c := range map[string]struct {
		body           string
		modern, legacy int    // statuses
		code           string // of the first error
		data           bool   // the data key is present
	}{
		"a query":    {`{"query":"{ hello }"}`, 200, 200, "", true},
		"a mutation": {`{"query":"mutation { touch(id: \"1\") { id } }"}`, 200, 200, "", true},
		"variables": {`{"query":"query($n: String) { hello(name: $n) }","variables":{"n":"x"}}`, 200, 200, "",
			true},
		"null members": {`{"query":"{ hello }","variables":null,"operationName":null,"extensions":null}`, 200,
			200, "", true},
		"unknown members": {`{"query":"{ hello }","id":7}`, 200, 200, "", true},
		"a chosen operation": {`{"query":"query A { hello } query B { whoami }","operationName":"B"}`, 200, 200, "",
			true},
		"a resolver's error": {`{"query":"{ fail(how: KNOWN) }"}`, 200, 200, "CONFLICT", true},
		"a resolver's panic": {`{"query":"{ fail(how: PANIC) }"}`, 200, 200, "INTERNAL", true},
		"bad syntax":         {`{"query":"{ hello "}`, 400, 200, "DOCUMENT_INVALID", false},
		"an empty document":  {`{"query":""}`, 400, 200, "DOCUMENT_INVALID", false},
		"only a fragment":    {`{"query":"fragment F on Item { id }"}`, 400, 200, "DOCUMENT_INVALID", false},
		"an unknown field":   {`{"query":"{ nope }"}`, 400, 200, "DOCUMENT_INVALID", false},
		"too deep": {`{"query":"{ item(id:1) {peers{peers{peers{peers{peers{peers{peers{peers{id}}}}}}}}}}"}`, 400,
			200, "DOCUMENT_TOO_LARGE", false},
		"introspection":  {`{"query":"{ __schema { queryType { name } } }"}`, 400, 200, "DOCUMENT_INVALID", false},
		"a subscription": {`{"query":"subscription { silence }"}`, 400, 200, "DOCUMENT_INVALID", false},
		"no such operation": {`{"query":"query A { hello }","operationName":"B"}`, 400, 200, "DOCUMENT_INVALID",
			false},
		"an ambiguous operation": {`{"query":"query A { hello } query B { hello }"}`, 400,
			200, "DOCUMENT_INVALID", false},
		"a missing variable": {`{"query":"query($i: ID!) { item(id: $i) { id } }"}`, 400, 200, "INVALID_ARGUMENT",
			false},
		"a bad variable": {`{"query":"query($i: EchoInput!) { echo(input: $i) }","variables":{"i":{"text":[]}}}`,
			400, 200, "INVALID_ARGUMENT", false},
		"no query":                  {`{}`, 400, 400, "INVALID_ARGUMENT", false},
		"a null query":              {`{"query":null}`, 400, 400, "INVALID_ARGUMENT", false},
		"a query that is not text":  {`{"query":{"x":1}}`, 400, 400, "INVALID_ARGUMENT", false},
		"variables as a list":       {`{"query":"{ hello }","variables":[]}`, 400, 400, "INVALID_ARGUMENT", false},
		"variables as text":         {`{"query":"{ hello }","variables":"{}"}`, 400, 400, "INVALID_ARGUMENT", false},
		"operationName as a number": {`{"query":"{ hello }","operationName":1}`, 400, 400, "INVALID_ARGUMENT", false},
		"extensions as text":        {`{"query":"{ hello }","extensions":"x"}`, 400, 400, "INVALID_ARGUMENT", false},
		"no body":                   {``, 400, 400, "REQUEST_INVALID", false},
		"null":                      {`null`, 400, 400, "REQUEST_INVALID", false},
		"a batch":                   {`[{"query":"{ hello }"}]`, 400, 400, "REQUEST_INVALID", false},
		"text":                      {`"{ hello }"`, 400, 400, "REQUEST_INVALID", false},
		"half an object":            {`{"query":"{ hello }"`, 400, 400, "REQUEST_INVALID", false},
		"trailing bytes":            {`{"query":"{ hello }"} x`, 400, 400, "REQUEST_INVALID", false},
		"a second object":           {`{"query":"{ hello }"}{"query":"{ hello }"}`, 400, 400, "REQUEST_INVALID", false},
		"not UTF-8": {"{\"query\":\"{ hello(name: \\\"\xff\\\") }\"}", 400, 400,
			"REQUEST_INVALID", false},
	} {
		for media, status := range map[string]int{modern: c.modern, legacy: c.legacy} {
			t.Run(name+" as "+media, func(t *testing.T) {
				t.Parallel()
				a := call(t, url, http.MethodPost, c.body, "Accept", media)
				require.Equal(t, status, a.status, a.text)
				require.Equal(t, media+"; charset=utf-8", a.header.Get("Content-Type"))
				require.Equal(t, c.code, a.code(), a.text)
				require.Equal(t, c.data, strings.Contains(a.text, `"data"`), a.text)
				require.Equal(t, c.code != "", strings.Contains(a.text, `"errors"`), a.text)
				require.NotContains(t, a.text, "secret")
			})
		}
	}
}

func TestAcceptDecidesTheMediaType(t *testing.T) {
	t.Parallel()
	url := setup(t, nil)
	for accept, want := range map[string]string{
		"":                                  legacy,
		"*/*":                               legacy,
		"application/*":                     legacy,
		modern:                              modern,
		legacy:                              legacy,
		modern + ", " + legacy:              modern,
		legacy + ", " + modern:              modern,
		legacy + ", " + modern + ";q=0.9":   legacy,
		modern + ";q=0.1, " + legacy:        legacy,
		modern + ";q=0.5, */*;q=0.4":        modern,
		modern + ";q=0, */*":                legacy,
		legacy + ";q=0, " + modern:          modern,
		"text/html, */*;q=0.1":              legacy,
		"TEXT/html, Application/JSON":       legacy,
		legacy + "; charset=utf-8":          legacy,
		modern + `; charset="UTF-8"`:        modern,
		"nonsense, " + modern:               modern,
		"text/html":                         "",
		"application/xml, text/plain;q=0.5": "",
		modern + ";q=0, " + legacy + ";q=0": "",
		legacy + "; charset=latin1":         "",
		legacy + ";q=2":                     "",
	} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			a := call(t, url, http.MethodPost, `{"query":"{ hello }"}`, "Accept", accept)
			if want == "" {
				require.Equal(t, http.StatusNotAcceptable, a.status)
				require.Equal(t, "NOT_ACCEPTABLE", a.code())
				return
			}
			require.Equal(t, http.StatusOK, a.status)
			require.Equal(t, want+"; charset=utf-8", a.header.Get("Content-Type"))
		})
	}
}

func TestOnlyJSONBodiesAreRead(t *testing.T) {
	t.Parallel()
	url := setup(t, nil)
	for contentType, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, `Application/JSON;charset="UTF-8"`: 200,
		"": 415, "text/plain": 415, "application/graphql": 415, "application/x-www-form-urlencoded": 415,
		"multipart/form-data; boundary=x": 415, "application/json; charset=latin1": 415,
		"application/graphql+json": 415,
		"json":                     415,
	} {
		a := call(t, url, http.MethodPost, `{"query":"{ hello }"}`, "Content-Type", contentType)
		require.Equal(t, status, a.status, contentType)
	}
	a := call(t, url, http.MethodPost, `{"query":"{ hello }"}`, "Content-Encoding", "gzip")
	require.Equal(t, http.StatusUnsupportedMediaType, a.status)
}

func TestOnlyPOSTIsServed(t *testing.T) {
	t.Parallel()
	url := setup(t, nil)
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		a := call(t, url+"?query=mutation%7Btouch(id:1)%7Bid%7D%7D", method, "")
		require.Equal(t, http.StatusMethodNotAllowed, a.status, method)
		require.Equal(t, "POST", a.header.Get("Allow"), method)
	}
}

func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	url := setup(t, func(o *httpapi.Options) { o.BodyBytes = 1000 })
	body := func(size int) string {
		return `{"query":"{ hello }","x":"` + strings.Repeat("s", size-len(`{"query":"{ hello }","x":""}`)) + `"}`
	}
	require.Equal(t, http.StatusOK, call(t, url, http.MethodPost, body(1000)).status)
	a := call(t, url, http.MethodPost, body(1001))
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status)
	require.Equal(t, "MESSAGE_TOO_LARGE", a.code())
	// length unknown
	request, err := http.NewRequest(http.MethodPost, url, io.MultiReader(strings.NewReader(body(1001))))
	require.NoError(t, err)
	request.Header.Set("Content-Type", legacy)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
}

func TestNothingOfABodyIsRepeated(t *testing.T) {
	t.Parallel()
	url := setup(t, nil)
	for _, body := range []string{
		`secret-token`, `{"query":"secret-token"`, `{"secret-token":1`, `{"query":"{ hello(name: \"secret-token) }"}`,
		`{"query":"{ hello secret-token }"}`, `{"query":"{ hello(name: 7, \"secret-token\") }"}`,
		`{"query":"secret-token"}`,
		`{"query":"{ item(id: [\"secret-token\"]) { id } }"}`, `{"query":"{ pages(first: \"secret-token\") { id } }"}`,
		`{"query":"{ fail(how: \"secret-token\") }"}`,
		`{"query":"query($h: Failure!) { fail(how: $h) }","variables":{"h":"secret-token"}}`,
		`{"query":"query($i: EchoInput!) { echo(input: $i) }","variables":{"i":"secret-token"}}`,
		`{"query":"query($i: Int) { items(first: $i) { totalCount } }","variables":{"i":"secret-token"}}`,
		`{"query":"{ hello }","operationName":"secret-token"}`, `{"query":"{ hello }","variables":"secret-token"}`,
		`{"query":"{ hello(name: \"\\u{secret-token}\") }"}`,
	} {
		a := call(t, url, http.MethodPost, body)
		require.Equal(t, http.StatusBadRequest, a.status, body)
		require.NotContains(t, a.text, "secret-token", body)
	}
}

func TestSuggestionsAreNotMade(t *testing.T) {
	t.Parallel()
	url := setup(t, nil)
	for _, query := range []string{
		`{ hell }`, `{ hello(nam: 1) }`, `{ items { node { id } } }`, `{ item }`, `{ fail(how: KNOW) }`,
		`{ item(id: 1) { ... on Itm { id } } }`,
		`query($x: Strng) { hello(name: $x) }`, `{ echo(input: {text: \"\", tims: 1}) }`,
		`{ items { totalCount { x } } }`,
	} {
		a := call(t, url, http.MethodPost, `{"query":"`+query+`"}`)
		require.Equal(t, "DOCUMENT_INVALID", a.code(), a.text)
		require.NotContains(t, strings.ToLower(a.text), "did you mean", query)
	}
}

func TestOriginAndCredential(t *testing.T) {
	t.Parallel()
	url := setup(t, func(o *httpapi.Options) { o.Origins = []string{"https://console.example"} })
	const who = `{"query":"{ whoami }"}`
	for name, c := range map[string]struct {
		headers    []string
		status     int
		who, code  string
		challenged bool
	}{
		"no credential": {nil, 200, ":", "", false},
		"bearer":        {[]string{"Authorization", "Bearer t"}, 200, "bearer:t", "", false},
		"bearer from any page": {[]string{"Authorization", "Bearer t", "Origin", "https://evil.example"}, 200,
			"bearer:t", "", false},
		"unknown bearer":        {[]string{"Authorization", "Bearer bad"}, 401, "", "UNAUTHENTICATED", true},
		"another scheme":        {[]string{"Authorization", "Basic Zm9v"}, 401, "", "UNAUTHENTICATED", true},
		"an empty bearer":       {[]string{"Authorization", "Bearer "}, 401, "", "UNAUTHENTICATED", true},
		"a bearer of two words": {[]string{"Authorization", "Bearer a b"}, 401, "", "UNAUTHENTICATED", true},
		"forbidden":             {[]string{"Authorization", "Bearer forbidden"}, 403, "", "FORBIDDEN", false},
		"too fast":              {[]string{"Authorization", "Bearer fast"}, 429, "", "RATE_LIMITED", false},
		"cannot be checked":     {[]string{"Authorization", "Bearer unavailable"}, 503, "", "UNAVAILABLE", false},
		"a panic":               {[]string{"Authorization", "Bearer panic"}, 500, "", "INTERNAL", false},
		"cookie alone":          {[]string{"Cookie", "gpuaas_session=c"}, 403, "", "FORBIDDEN", false},
		"cookie, same origin":   {[]string{"Cookie", "gpuaas_session=c", "Origin", url}, 200, "cookie:c", "", false},
		"cookie, fetch says same": {[]string{"Cookie", "gpuaas_session=c", "Sec-Fetch-Site", "same-origin"}, 200,
			"cookie:c", "", false},
		"cookie, fetch says same-site": {[]string{"Cookie", "gpuaas_session=c", "Sec-Fetch-Site", "same-site",
			"Origin", url},
			403, "", "FORBIDDEN", false},
		"cookie, other origin": {[]string{"Cookie", "gpuaas_session=c", "Origin", "https://evil.example"}, 403, "",
			"FORBIDDEN", false},
		"cookie, the two disagree": {[]string{"Cookie", "gpuaas_session=c", "Origin", "https://evil.example",
			"Sec-Fetch-Site", "same-origin"}, 403, "", "FORBIDDEN", false},
		"cookie, allowed page": {[]string{"Cookie", "gpuaas_session=c", "Origin", "https://console.example",
			"Sec-Fetch-Site", "cross-site"}, 200, "cookie:c", "", false},
		"cookie beside bearer": {[]string{"Cookie", "gpuaas_session=c", "Authorization", "Bearer t"}, 200, "bearer:t",
			"", false},
		"cookie beside a bad header": {[]string{"Cookie", "gpuaas_session=c", "Authorization", "t", "Origin",
			url}, 401, "",
			"UNAUTHENTICATED", true},
		"an empty cookie": {[]string{"Cookie", "gpuaas_session=", "Origin", url}, 401, "", "UNAUTHENTICATED",
			true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := call(t, url, http.MethodPost, who, c.headers...)
			require.Equal(t, c.status, a.status, a.text)
			require.Equal(t, c.code, a.code())
			require.Equal(t, c.challenged, a.header.Get("WWW-Authenticate") == "Bearer")
			if c.code == "" {
				require.Equal(t, map[string]any{"whoami": c.who}, a.body["data"])
			}
		})
	}
}

func TestBodyOfAnUnknownCallerIsNotRead(t *testing.T) {
	t.Parallel()
	a := call(t, setup(t, nil), http.MethodPost, `not even JSON`, "Authorization", "Bearer bad")
	require.Equal(t, http.StatusUnauthorized, a.status)
}

func TestCorrelationIDIsTakenCheckedMadeAndCarried(t *testing.T) {
	t.Parallel()
	url := setup(t, nil)
	for given, taken := range map[string]bool{
		"req-1_A.b": true, strings.Repeat("x", 64): true, "": false, strings.Repeat("x", 65): false, "a b": false,
		"a\tb": false, "é": false, "a/b": false,
	} {
		a := call(t, url, http.MethodPost, `{"query":"{ correlation fail(how: KNOWN) }"}`, "X-Correlation-ID", given)
		id := a.header.Get("X-Correlation-ID")
		require.True(t, transport.ValidCorrelationID(id))
		require.Equal(t, taken, id == given, "%q", given)
		require.Contains(t, a.text, `"correlation":"`+id+`"`)
		require.Contains(t, a.text, `"correlation_id":"`+id+`"`)
	}
}

func TestEveryErrorHasTheWholeEnvelope(t *testing.T) {
	t.Parallel()
	url := setup(t, nil)
	for _, c := range [][]string{
		{`{"query":"{ nope }"}`}, {`{"query":"{"}`}, {`{}`}, {`{"query":"{ fail(how: UNKNOWN) }"}`},
		{`{"query":"{ fail(how: KNOWN) }"}`},
		{`{"query":"query($i: ID!) { item(id: $i) { id } }"}`}, {``, "Authorization", "x"},
		{``, "Content-Type", "text/plain"}, {``, "Accept", "text/html"},
	} {
		a := call(t, url, http.MethodPost, c[0], c[1:]...)
		require.NotEmpty(t, a.body["errors"], c)
		for _, e := range a.body["errors"].([]any) {
			err := e.(map[string]any)
			require.NotEmpty(t, err["message"])
			extensions := err["extensions"].(map[string]any)
			for _, key := range []string{"code", "correlation_id", "retryable", "reasons"} {
				require.Contains(t, extensions, key, a.text)
			}
			require.Contains(t, append(transport.Codes(), "CONFLICT"), extensions["code"])
		}
	}
}

func TestResolverErrorsCarryTheirPath(t *testing.T) {
	t.Parallel()
	for how, message := range map[string]string{"KNOWN": "it clashes", "UNKNOWN": "internal error",
		"PANIC": "internal error"} {
		a := call(t, setup(t, nil), http.MethodPost, `{"query":"{ it: fail(how: `+how+`) }"}`)
		err := a.body["errors"].([]any)[0].(map[string]any)
		require.Equal(t, []any{"it"}, err["path"], a.text)
		require.Equal(t, message, err["message"])
		require.Equal(t, map[string]any{"it": nil}, a.body["data"])
	}
}

func TestInvalidVariableNamesItsPath(t *testing.T) {
	t.Parallel()
	a := call(t, setup(t, nil), http.MethodPost,
		`{"query":"query($in: EchoInput!) { echo(input: $in) }","variables":{"in":{"text":"x","how":"NOPE"}}}`)
	require.Equal(t, "INVALID_ARGUMENT", a.code())
	require.Contains(t, a.text, `"path":"in.how"`)
}
