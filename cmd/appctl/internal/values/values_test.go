package values_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
)

func TestBuildLaysPairsOverTheBase(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		base  string
		pairs []string
		want  string
	}{
		"nothing":     {"", nil, ""},
		"only a base": {`[1]`, nil, `[1]`},
		"text, number, truth, null": {"", []string{"a=x y", "b=3", "c=true", "d=null"},
			`{"a":"x y","b":3,"c":true,"d":null}`},
		"quoted text stays text":     {"", []string{`a="3"`}, `{"a":"3"}`},
		"an empty value":             {"", []string{"a="}, `{"a":""}`},
		"a value with equals signs":  {"", []string{"a=b=c"}, `{"a":"b=c"}`},
		"dots nest":                  {"", []string{"a.b.c=1", "a.d=2"}, `{"a":{"b":{"c":1},"d":2}}`},
		"a pair wins over the base":  {`{"a":1,"b":{"c":2}}`, []string{"b.c=3"}, `{"a":1,"b":{"c":3}}`},
		"lists are set and appended": {`{"a":[1,{"b":2}]}`, []string{"a.1.b=5", "a.2=x"}, `{"a":[1,{"b":5},"x"]}`},
		"JSON as a value":            {"", []string{`a=[1,{"b":2}]`}, `{"a":[1,{"b":2}]}`},
		"large numbers stay exact":   {"", []string{"a=9007199254740993"}, `{"a":9007199254740993}`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := values.Build([]byte(test.base), test.pairs)
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

func TestBuildTakesTextsWhereTheSchemaWantsThem(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"properties":{"id":{"type":"string"},"n":{"type":"integer"},"either":{"type":["string","integer"]},
		"list":{"type":"array","items":{"type":"string"}},"deep":{"properties":{"id":{"type":"string"}}}}}`)
	pairs := []string{"id=2", "n=2", "either=2", "list.0=true", "deep.id=null", "unknown=2"}
	require.True(t, values.Guesses(pairs))
	require.False(t, values.Guesses([]string{"id=two", `id="2"`, "no pair"}))
	got, err := values.BuildBy(schema, []byte(`{"list":[]}`), pairs)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"2","n":2,"either":2,"list":["true"],"deep":{"id":"null"},"unknown":2}`, string(got))
	got, err = values.BuildBy(schema, nil, []string{`id="2"`, "n=x"})
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"2","n":"x"}`, string(got))
}

func TestBuildNamesThePairThatCannotBe(t *testing.T) {
	t.Parallel()
	for pair, want := range map[string]string{
		"novalue": "must be key=value", "=x": "must be key=value", "a..b=1": "empty",
		"n.x=1": "parent is not an object", "l.7=1": "not an index from 0 to 1", "l.x=1": "not an index from 0 to 1",
		strings.Repeat("a.", 20) + "a=1": "nests deeper",
	} {
		_, err := values.Build([]byte(`{"n":1,"l":[0]}`), []string{pair})
		require.ErrorContains(t, err, want, pair)
		require.ErrorContains(t, err, "--set", pair)
	}
}

func TestDocumentWantsOneJSONValue(t *testing.T) {
	t.Parallel()
	got, err := values.Document("f", []byte(" {\"b\":1,\"a\":2}\n"))
	require.NoError(t, err)
	require.JSONEq(t, `{"b":1,"a":2}`, string(got))
	for _, text := range []string{"", "{", "{} {}", "x"} {
		_, err := values.Document("f.json", []byte(text))
		require.ErrorContains(t, err, "f.json: not JSON", text)
	}
}

func TestReadFileIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20+1), 0o600))
	_, err := values.ReadFile(path, nil)
	require.ErrorContains(t, err, "larger than 1048576 bytes")
	text, err := values.ReadFile("-", strings.NewReader("in"))
	require.NoError(t, err)
	require.Equal(t, "in", string(text))
}
