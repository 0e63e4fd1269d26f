package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// reasonsOf returns code and path of every reason of a refusal; nil without an error.
func reasonsOf(t *testing.T, err error) (found []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	refused, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	return named(refused.Reasons)
}

func named(reasons []fault.Reason) (found []string) {
	for _, reason := range reasons {
		found = append(found, string(reason.Code)+" "+reason.Path)
	}
	return found
}

// padded is a document with white space behind it, of so many bytes.
func padded(document string, bytes int) []byte {
	return []byte(document + strings.Repeat(" ", bytes-len(document)))
}

func TestEveryDocumentMayBeAsLongAsItsBound(t *testing.T) {
	t.Parallel()
	_, err := Parse(padded(string(full(t)), 256<<10))
	require.NoError(t, err)
	_, err = Parse(padded(string(full(t)), 256<<10+1))
	require.Equal(t, []string{"TOO_LONG "}, reasonsOf(t, err))
	const config = `{"partitionName": "a"}`
	require.Empty(t, ValidateConfig(schemaOfFull(t), padded(config, 64<<10)))
	require.Equal(t, []string{"TOO_LONG config"}, named(ValidateConfig(schemaOfFull(t), padded(config, 64<<10+1))))
}

func TestDefaultsMayFillAConfigToItsBound(t *testing.T) {
	t.Parallel()
	for size, want := range map[int][]string{64 << 10: nil, 64<<10 + 1: {"TOO_LONG config"}} {
		long := strings.Repeat("x", size-len(`{"a":""}`))
		filled, err := ApplyDefaults(json.RawMessage(`{"properties": {"a": {"default": "`+long+`"}}}`), nil)
		require.Equal(t, want, reasonsOf(t, err))
		require.Equal(t, want == nil, filled != nil)
		if want == nil {
			require.Len(t, filled, size)
		}
	}
}

func TestWhatIsNotReadIsRefusedForWhatItIs(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"a": 1, "a": 2}`: "DUPLICATE config.a", `{`: "BAD_VALUE config", `{1: 2}`: "BAD_VALUE config",
		`{"a" 1}`: "BAD_VALUE config.a",
		`{} {}`:   "BAD_VALUE config", `{} x`: "BAD_VALUE config", `[1`: "BAD_VALUE config",
	} {
		_, err := ApplyDefaults(json.RawMessage(`{}`), json.RawMessage(config))
		require.True(t, fault.Is(err, fault.ConfigInvalid), config)
		require.Equal(t, []string{want}, reasonsOf(t, err), config)
		require.Equal(t, []string{want}, named(Validate(json.RawMessage(`{}`), json.RawMessage(config),
			"config")), config)
	}
	_, err := ApplyDefaults(json.RawMessage(`{`), json.RawMessage(`{}`))
	require.Equal(t, []string{"BAD_VALUE configSchema"}, reasonsOf(t, err))
	_, reason := compile(json.RawMessage(`{`), "s")
	require.Equal(t, &fault.Reason{Code: fault.BadValue, Message: "is not valid JSON", Path: "s"}, reason)
}

func TestNumbersHaveABoundOfTheirOwn(t *testing.T) {
	t.Parallel()
	digits := func(n int) string { return strings.Repeat("1", n) }
	for number, fits := range map[string]bool{
		digits(40): true, digits(41): false, "-" + digits(39): true, "-" + digits(40): false,
		"0." + digits(38): true, "0." + digits(39): false, "0": true,
		"1e308": true, "1E+308": true, "1e309": false, "1e-308": true, "1e-309": false,
		"1e99999999999999999999": false,
	} {
		reason := checkNumber(json.Number(number), "n")
		require.Equal(t, fits, reason == nil, number)
		if !fits {
			want := fault.Reason{Code: fault.BadValue, Message: "the number is too long or too large", Path: "n"}
			require.Equal(t, want, *reason)
		}
	}
}

func TestAPathIsCutAtItsBound(t *testing.T) {
	t.Parallel()
	path, name := strings.Repeat("p", 100), strings.Repeat("n", 100)
	require.Equal(t, path+"."+name, join(path, name))
	require.Equal(t, path+"."+strings.Repeat("n", 99)+"…", join(path, name+"n"))
}

func TestAWholeNumberThatIsWrittenWithAPointIsNotRead(t *testing.T) {
	t.Parallel()
	_, err := Parse(changed(t, `"max": 8`, `"max": 8.0`))
	require.Equal(t, []string{"BAD_VALUE "}, reasonsOf(t, err))
	require.ErrorContains(t, err, "cannot be read as a manifest")
	_, err = Parse(launching(t, `{"image": "nginx", "ports": [{"name": "a", "port": 80.0}]}`))
	require.Equal(t, []string{"BAD_VALUE runtimeProfile"}, reasonsOf(t, err),
		"what cannot be read is not judged further")
}

// What is stored was linted when it was published: a document that is not one is the platform's own failure.
func TestAStoredDocumentIsReadAndCompletedButNotLinted(t *testing.T) {
	t.Parallel()
	m, err := Stored([]byte(`{"app": "x", "compatibility": {"requires_capacity_shape": ["baremetal"]}}`))
	require.NoError(t, err)
	require.Equal(t, "x", m.App)
	require.Equal(t, SpanMultiAllocation, m.Compatibility.NetworkSpan)
	m, err = Stored([]byte(`{"app": 1}`))
	require.True(t, fault.Is(err, fault.Internal), "%v", err)
	require.Nil(t, m)
}

func TestASchemaThatIsNotReadIsTheOnlyFinding(t *testing.T) {
	t.Parallel()
	_, err := Parse(changed(t, `"outputSchema": {"type": "object"}`, `"outputSchema": {"type": "thing"}`))
	require.Equal(t, []string{"SCHEMA_INVALID actions.0.outputSchema"}, reasonsOf(t, err))
	require.ErrorContains(t, err, "does not compile as a JSON Schema: schema.type fits none")
	_, err = Parse(changed(t, `"inputSchema": {"type": "object",`, `"inputSchema": {"type": "thing",`))
	require.Equal(t, []string{"SCHEMA_INVALID actions.0.inputSchema"}, reasonsOf(t, err))
	_, err = Parse(changed(t, `^[a-z]+$`, `^[a-z`))
	require.ErrorContains(t, err, "does not compile as a JSON Schema: schema.properties.partitionName.pattern")
	require.NotContains(t, schemaError(&jsonschema.SchemaValidationError{Err: fault.NoSuch()}), ":")
	require.Equal(t, "does not compile as a JSON Schema: a pattern is not a valid regular expression",
		schemaError(&jsonschema.InvalidRegexError{Err: fault.NoSuch()}))
	_, err = nothingRemote{}.Load("https://example.com/" + strings.Repeat("x", 100))
	require.ErrorContains(t, err, `a schema may not load "https://example.com/`+strings.Repeat("x", 60)+`"`)
}

func TestFindingsAreCutAtTheirBound(t *testing.T) {
	t.Parallel()
	const text = "must match the pattern "
	fits := strings.Repeat("x", 300-len(text))
	require.Equal(t, text+fits, describe(&kind.Pattern{Want: fits}))
	require.Equal(t, text+fits+"…", describe(&kind.Pattern{Want: fits + "x"}))
	before := "does not compile as a JSON Schema: schema " + text
	fits = strings.Repeat("x", 300-len(before))
	complaint := func(want string) error {
		return &jsonschema.SchemaValidationError{Err: &jsonschema.ValidationError{ErrorKind: &kind.Pattern{Want: want}}}
	}
	require.Equal(t, before+fits, schemaError(complaint(fits)))
	require.Equal(t, before+fits+"…", schemaError(complaint(fits+"x")))
}

// costOf is what a schema comes to, and why it comes to nothing.
func costOf(t *testing.T, schema string) (int, error) {
	t.Helper()
	var value map[string]any
	require.NoError(t, json.Unmarshal([]byte(schema), &value))
	defs, _ := value["$defs"].(map[string]any)
	checker := schemaChecker{defs: defs, open: map[string]bool{}, costs: map[string]int{}}
	return checker.cost(value, "")
}

func TestASchemaCostsItsSubschemasWithReferencesWrittenOut(t *testing.T) {
	t.Parallel()
	many := func(n int) string { return `{"allOf": [` + strings.Repeat(`{},`, n-1) + `{}]}` }
	for schema, want := range map[string]int{
		`{}`: 1, `{"minimum": 1}`: 2, `{"allOf": []}`: 1, `{"allOf": [{}, {}]}`: 3,
		`{"allOf": [true, {"minimum": 1}]}`: 4,
		`{"properties": {}}`:                2, `{"properties": {"a": {}, "b": true}}`: 4,
		`{"enum": [1, 2], "default": {"a": 1}}`:     1,
		`{"$defs": {"a": {}, "b": {"minimum": 1}}}`: 1, `{"$ref": "#/$defs/a", "$defs": {"a": {"minimum": 1}}}`: 3,
		`{"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}}`: 5,
		many(1999): 2000, many(2000): 2001, many(3000): 2001, `{"items": ` + many(3000) + `}`: 2001,
	} {
		cost, err := costOf(t, schema)
		require.NoError(t, err)
		require.Equal(t, want, cost, "%.100s", schema)
	}
	_, reason := compile(json.RawMessage(many(1999)), "s")
	require.Nil(t, reason)
	_, reason = compile(json.RawMessage(many(2000)), "s")
	require.Contains(t, reason.Message, "may have at most 2000 subschemas")
}

func TestASchemaRefersToItsOwnDefinitionsAlone(t *testing.T) {
	t.Parallel()
	const foreign = `must be to one of the schema's own $defs`
	for schema, message := range map[string]string{
		`[]`: "a schema must be an object", `true`: "a schema must be an object", `null`: "a schema must be an object",
		`{"$ref": "#/$defs/b", "$defs": {"a": {}}}`:          `the reference "#/$defs/b" ` + foreign,
		`{"$ref": "a", "$defs": {"a": {}}}`:                  `the reference "a" ` + foreign,
		`{"$ref": "#/$defs/a"}`:                              `the reference "#/$defs/a" ` + foreign,
		`{"$ref": 7, "$defs": {"": {}}}`:                     `the reference "" ` + foreign,
		`{"allOf": [{"$ref": "x"}]}`:                         `the reference "x" ` + foreign,
		`{"allOf": [{}, {"$id": "x"}]}`:                      "the keyword $id is not allowed in a schema",
		`{"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}`: `the definition "a" refers to itself`,
	} {
		_, reason := compile(json.RawMessage(schema), "s")
		require.NotNil(t, reason, schema)
		require.Equal(t, fault.SchemaInvalid, reason.Code, schema)
		require.Equal(t, message, reason.Message, schema)
	}
}
