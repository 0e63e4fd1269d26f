package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// schemaOfFull is the configuration schema of the full manifest.
func schemaOfFull(t testing.TB) json.RawMessage {
	t.Helper()
	m, err := Parse(full(t))
	require.NoError(t, err)
	return m.ConfigSchema
}

func TestConfigThatBreaksTheSchemaNamesEveryField(t *testing.T) {
	t.Parallel()
	schema := schemaOfFull(t)
	for name, c := range map[string]struct {
		config string
		want   []string
	}{
		"fits":    {`{"partitionName": "main", "workers": 3, "either": 1}`, nil},
		"empty":   {``, []string{"REQUIRED config.partitionName"}},
		"null":    {`null`, []string{"BAD_VALUE config"}},
		"list":    {`[]`, []string{"BAD_VALUE config"}},
		"pattern": {`{"partitionName": "Main"}`, []string{"BAD_VALUE config.partitionName"}},
		"type":    {`{"partitionName": 1}`, []string{"BAD_VALUE config.partitionName"}},
		"too long": {`{"partitionName": "` + strings.Repeat("a", 21) + `"}`,
			[]string{"TOO_LONG config.partitionName"}},
		"unknown": {`{"partitionName": "a", "colour": 1, "size": 2}`,
			[]string{"UNKNOWN_FIELD config.colour", "UNKNOWN_FIELD config.size"}},
		"enum":    {`{"partitionName": "a", "mode": "wild"}`, []string{"UNKNOWN_VALUE config.mode"}},
		"minimum": {`{"partitionName": "a", "workers": 0}`, []string{"BAD_VALUE config.workers"}},
		"nested by ref": {`{"partitionName": "a", "limits": {"users": [1]}}`,
			[]string{"BAD_VALUE config.limits.users.0"}},
		"duplicate":    {`{"partitionName": "a", "tags": ["x", "x"]}`, []string{"DUPLICATE config.tags"}},
		"format":       {`{"partitionName": "a", "when": "tomorrow"}`, []string{"BAD_VALUE config.when"}},
		"alternatives": {`{"partitionName": "a", "either": true}`, []string{"BAD_VALUE config.either"}},
		"several": {`{"workers": 0, "mode": "x"}`,
			[]string{"UNKNOWN_VALUE config.mode", "REQUIRED config.partitionName", "BAD_VALUE config.workers"}},
		"no JSON": {`{`, []string{"BAD_VALUE config"}},
		"member twice": {`{"partitionName": "a", "partitionName": "b"}`,
			[]string{"DUPLICATE config.partitionName"}},
		"oversized": {`{"partitionName": "` + strings.Repeat("a", MaxConfig) + `"}`,
			[]string{"TOO_LONG config"}},
		"too deep":         {strings.Repeat(`[`, 40), []string{"TOO_DEEP config" + strings.Repeat(".0", 33)}},
		"number as a bomb": {`{"workers": 1e999999999}`, []string{"BAD_VALUE config.workers"}},
		"long member names": {`{"partitionName": "a", "` + strings.Repeat("x", 1000) + `": 1}`,
			[]string{"UNKNOWN_FIELD config." + strings.Repeat("x", 193) + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, reason := range ValidateConfig(schema, json.RawMessage(c.config)) {
				got = append(got, string(reason.Code)+" "+reason.Path)
				require.NotEmpty(t, reason.Message)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestFindingsDoNotRepeatSecretsOrLongValues(t *testing.T) {
	t.Parallel()
	for _, reason := range ValidateConfig(schemaOfFull(t),
		json.RawMessage(`{"partitionName": "S3cret", "when": "S3cret"}`)) {
		require.NotContains(t, reason.Message, "S3cret")
	}
	many := `{"partitionName": "a"`
	for i := range 200 {
		many += `, "x` + strings.Repeat("y", i) + `": 1`
	}
	require.LessOrEqual(t, len(ValidateConfig(schemaOfFull(t), json.RawMessage(many+"}"))), fault.MaxReasons)
}

func TestBrokenSchemaIsTheFinding(t *testing.T) {
	t.Parallel()
	reasons := Validate(json.RawMessage(`{"$ref": "http://example.com"}`), nil, "input")
	require.Len(t, reasons, 1)
	require.Equal(t, fault.SchemaInvalid, reasons[0].Code)
	require.Equal(t, "input", reasons[0].Path)
}

func TestDefaultsFillWhatIsAbsentAndNothingElse(t *testing.T) {
	t.Parallel()
	schema := schemaOfFull(t)
	for name, c := range map[string]struct{ config, want string }{
		"nothing given": {``, `{"limits":{"hours":12.5,"users":["all"]},"mode":"safe","partitionName":"main"}`},
		"given stays": {`{"mode":"fast","partitionName":"x","limits":{"hours":1}}`,
			`{"limits":{"hours":1,"users":["all"]},"mode":"fast","partitionName":"x"}`},
		"null is given": {`{"mode":null,"limits":null,"partitionName":null}`,
			`{"limits":null,"mode":null,"partitionName":null}`},
		"unknown stays": {`{"partitionName":"x","colour":1.50,"limits":{"hours":1,"users":[]}}`,
			`{"colour":1.50,"limits":{"hours":1,"users":[]},"mode":"safe","partitionName":"x"}`},
		"large whole stay": {`{"partitionName":"x","workers":12345678901234567890,"limits":null,"mode":"fast"}`,
			`{"limits":null,"mode":"fast","partitionName":"x","workers":12345678901234567890}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ApplyDefaults(schema, json.RawMessage(c.config))
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			again, err := ApplyDefaults(schema, got)
			require.NoError(t, err)
			require.Equal(t, string(got), string(again))
		})
	}
}

func TestDefaultsOfABadConfigAreAFault(t *testing.T) {
	t.Parallel()
	schema := schemaOfFull(t)
	for _, bad := range []string{`[]`, `{`, `"x"`, `{"a":1,"a":2}`, strings.Repeat(" ", MaxConfig+1) + "{}"} {
		_, err := ApplyDefaults(schema, json.RawMessage(bad))
		require.True(t, fault.Is(err, fault.ConfigInvalid), "%.20s: %v", bad, err)
	}
	_, err := ApplyDefaults(json.RawMessage(`{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}`), nil)
	require.NoError(t, err, "a schema that Parse would refuse still ends")
}

// FuzzValidateConfig proves that no configuration makes validation or defaults do anything but answer.
func FuzzValidateConfig(f *testing.F) {
	schema := schemaOfFull(f)
	f.Add([]byte(`{"partitionName": "main", "limits": {"hours": 1}}`))
	f.Add([]byte(`{"partitionName": 1e300, "tags": [[], {}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, reason := range ValidateConfig(schema, data) {
			require.True(t, strings.HasPrefix(reason.Path, "config"), reason.Path)
			require.LessOrEqual(t, len(reason.Path), maxPath+len("…"))
		}
		filled, err := ApplyDefaults(schema, data)
		if err == nil {
			require.True(t, json.Valid(filled))
		}
	})
}
